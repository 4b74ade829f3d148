// Who may use a credential.
import { Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { Button, IconButton } from "../../ui/button";
import { Section } from "../../ui/page";
import { Ago } from "../../ui/small";
import { Empty, Loaded, Problem } from "../../ui/states";
import { type Column, Table } from "../../ui/table";
import { notify } from "../../ui/toast";
import { GrantAccess } from "./grant_access";
import type { Credential } from "./types";

type Rule = Schemas["AccessRule"];

const RULES = "/v1/credentials/{credential_id}/access";
const RULE = "/v1/credentials/{credential_id}/access/{access_id}";

export function AccessRules({ credential }: { credential: Credential }) {
  const [isOpen, setOpen] = useState(false);
  const path = { credential_id: credential.id };
  const query = useRead(RULES, { path });
  const refreshes = [RULES, "/v1/credentials/{credential_id}/audit"] as const;
  const grant = useChange(
    ({ integration_type, integration_id }: Rule) =>
      api.post(RULES, { path, body: { integration_type, integration_id } }),
    [...refreshes],
  );
  const revoke = useChange(
    ({ id }: Rule) => api.delete(RULE, { path: { ...path, access_id: id } }),
    [...refreshes],
  );
  const texts = t().credentials;
  const add = may("credentials:write") && (
    <Button icon={Plus} onClick={() => setOpen(true)}>{texts.grant}</Button>
  );
  const remove = async (rule: Rule) => {
    await revoke.mutateAsync(rule).catch(() => null).then((done) => {
      if (done === null) return;
      notify(texts.revoked(nameOf(rule)), () => grant.mutate(rule));
    });
  };
  return (
    <Section title={texts.access} about={texts.accessAbout} actions={add}>
      <Problem error={revoke.error ?? grant.error} />
      <Loaded query={query} rows={3}>
        {({ data }) =>
          data.length
            ? (
              <Table
                label={texts.access}
                rows={data}
                keyOf={({ id }) => id}
                columns={columns()}
                {...(may("credentials:write")
                  ? {
                    actionsOf: (rule: Rule) => (
                      <IconButton
                        icon={Trash2}
                        label={texts.revoke(nameOf(rule))}
                        onClick={() => void remove(rule)}
                      />
                    ),
                  }
                  : {})}
              />
            )
            : <Empty title={texts.noRules}>{texts.noRulesAbout}</Empty>}
      </Loaded>
      {isOpen && <GrantAccess credential={credential} onClose={() => setOpen(false)} />}
    </Section>
  );
}

function nameOf({ integration_name, integration_id }: Rule): string {
  return integration_name ?? integration_id;
}

const SCREENS: Partial<Record<Rule["integration_type"], string>> = {
  tool: "/tools",
  agent: "/agents",
};

function columns(): Column<Rule>[] {
  const texts = t().credentials;
  return [
    {
      key: "name",
      label: t().common.name,
      cell: (rule) => {
        const screen = SCREENS[rule.integration_type];
        return screen && rule.integration_name
          ? <a href={href(`${screen}/${rule.integration_id}`)}>{rule.integration_name}</a>
          : nameOf(rule);
      },
    },
    {
      key: "kind",
      label: texts.kind,
      width: "128px",
      cell: ({ integration_type }) => texts.actors[integration_type],
    },
    {
      key: "at",
      label: texts.granted,
      width: "160px",
      isSecondary: true,
      cell: ({ created_at }) => <Ago at={created_at} />,
    },
  ];
}
