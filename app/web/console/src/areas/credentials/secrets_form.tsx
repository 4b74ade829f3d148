// The secrets of a credential, by the schema of its type. They are in memory alone until they are
// sent.
import { useRead } from "../../api/queries";
import { t } from "../../texts";
import { PairsField } from "../../ui/pairs_field";
import type { Fields } from "../../ui/schema";
import { SchemaForm } from "../../ui/schema_form";
import { Loaded } from "../../ui/states";
import type { Validity } from "../../ui/validity";
import { type CredentialType, formSchema, isOpen, isSecret, type TypeInfo } from "./types";

export function useTypes() {
  return useRead("/v1/credentials/types", {}, { staleTime: 600_000 });
}

interface Props {
  type: CredentialType;
  value: Fields;
  onChange: (value: Fields) => void;
  errors: Record<string, string>;
  validity: Validity;
}

export function SecretsForm(props: Props) {
  const types = useTypes();
  return (
    <Loaded query={types} rows={2}>
      {({ data }) => {
        const info = data.find(({ type }) => type === props.type);
        return info && <SecretFields {...props} info={info} />;
      }}
    </Loaded>
  );
}

function SecretFields({ info, value, onChange, errors, validity }: Props & { info: TypeInfo }) {
  const texts = t().credentials;
  return (
    <>
      {isOpen(info)
        ? (
          <PairsField
            name="secrets"
            label={texts.secrets}
            hint={texts.customHint}
            error={errors.secrets}
            value={value as Record<string, string>}
            onChange={onChange}
            validity={validity}
            add={texts.addSecret}
            isSecret
          />
        )
        : (
          <SchemaForm
            schema={formSchema(info)}
            name="secrets"
            value={value}
            onChange={onChange}
            errors={errors}
            validity={validity}
            isSecret={isSecret}
            labels={texts.fields}
          />
        )}
    </>
  );
}
