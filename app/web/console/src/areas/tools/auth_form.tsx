// The authentication of a tool: a credential of the vault, or secrets of its own.
import { may } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { PasswordField, SelectField, TextField } from "../../ui/field";
import { Section } from "../../ui/page";
import { RecordField } from "../../ui/record_picker";
import { PairsField } from "../../ui/pairs_field";
import type { Validity } from "../../ui/validity";
import { AccessNote } from "./access_note";
import type { Auth } from "./auth";
import { AUTH_TYPES, type AuthType, PLACE, type SecretField } from "./types";

interface Props {
  id: string | undefined;
  auth: Auth;
  errors: Record<string, string>;
  validity: Validity;
}

export function AuthForm(props: Props) {
  const { auth, errors, id } = props;
  const texts = t().tools;
  const types: AuthType[] = [
    "none",
    ...Object.keys(AUTH_TYPES) as Exclude<AuthType, "none">[],
  ];
  return (
    <Section title={texts.auth} about={texts.authAbout}>
      <div class="columns">
        <SelectField
          label={texts.authType}
          value={auth.type}
          choices={types.map((type) => [type, texts.authTypes[type]])}
          onChange={(type) => auth.set({ type: type as AuthType, values: {} })}
          error={errors.auth_type}
        />
        {auth.type !== "none" && (
          <SelectField
            label={texts.secretsFrom}
            value={auth.source}
            choices={[["credential", texts.fromVault], [
              "own",
              texts.ownSecrets,
            ]]}
            onChange={(source) => auth.set({ source: source as Auth["source"], values: {} })}
          />
        )}
      </div>
      {auth.type !== "none" &&
        (auth.source === "credential" ? <CredentialPart {...props} /> : <OwnPart {...props} />)}
      {errors.auth_config && <p class="problem" role="alert" dir="auto">{errors.auth_config}</p>}
      {id && !auth.isTouched && auth.source === "credential" && (
        <AccessNote
          toolId={id}
          credentialId={auth.values.credential_id as string | undefined}
        />
      )}
    </Section>
  );
}

function CredentialPart({ auth, errors, validity }: Props) {
  const texts = t().tools;
  const spec = AUTH_TYPES[auth.type as Exclude<AuthType, "none">];
  const chosen = auth.values.credential_id as string | undefined;
  const set = (key: string, value: unknown) =>
    auth.set({ values: { ...auth.values, [key]: value } });
  const error = errors["auth_config.credential_id"];
  return (
    <div class="stack">
      {may("credentials:read")
        ? (
          <RecordField
            kind="credential"
            types={spec.credentials}
            label={texts.credential}
            hint={
              <a href={href("/credentials", { new: "1" })}>
                {texts.newCredential}
              </a>
            }
            error={error}
            value={chosen ?? ""}
            none={texts.chooseCredential}
            onChange={(value) => set("credential_id", value)}
          />
        )
        : (
          <TextField
            label={texts.credentialId}
            error={error}
            value={chosen ?? ""}
            onInput={(value) => set("credential_id", value)}
          />
        )}
      {auth.type === "api_key" && auth.isTouched &&
        PLACE.map((field) => (
          <SecretInput
            key={field.key}
            {...{ field, auth, errors, validity }}
          />
        ))}
    </div>
  );
}

function OwnPart({ auth, errors, validity }: Props) {
  const texts = t().tools;
  if (auth.isStored) {
    return (
      <div class="note">
        <span>{texts.secretsStored}</span>
        <Button onClick={() => auth.set({ values: {} })}>
          {texts.replaceSecrets}
        </Button>
      </div>
    );
  }
  return (
    <div class="columns">
      {AUTH_TYPES[auth.type as Exclude<AuthType, "none">].fields.map((
        field,
      ) => <SecretInput key={field.key} {...{ field, auth, errors, validity }} />)}
    </div>
  );
}

function SecretInput(
  {
    field: { key, kind, choices = [], isOptional = false },
    auth,
    errors,
    validity,
  }:
    & Omit<Props, "id">
    & { field: SecretField },
) {
  const texts = t().tools;
  const value = auth.values[key];
  const text = typeof value === "string" ? value : "";
  const common = {
    label: texts.authFields[key],
    error: errors[`auth_config.${key}`],
    isOptional,
  };
  const set = (next: unknown) => auth.set({ values: { ...auth.values, [key]: next } });
  switch (kind) {
    case "secret":
      return (
        <PasswordField
          {...common}
          value={text}
          onInput={set}
          autocomplete="new-password"
        />
      );
    case "choice":
      return (
        <SelectField
          {...common}
          value={text || (choices[0] ?? "")}
          choices={choices.map((
            choice,
          ) => [choice, texts.places[choice as "header" | "query"]])}
          onChange={set}
        />
      );
    case "pairs":
      return (
        <PairsField
          {...common}
          name={`auth_config.${key}`}
          value={(value ?? {}) as Record<string, string>}
          onChange={set}
          validity={validity}
          add={texts.addHeader}
          isSecret
        />
      );
    default:
      return (
        <TextField
          {...common}
          dir="ltr"
          value={text}
          onInput={set}
          autocomplete="off"
        />
      );
  }
}
