import { may } from "../../api/session";
import { t } from "../../texts";
import { Page } from "../../ui/page";
import { Tabs } from "../../ui/small";
import { useSubPath } from "../../ui/state";
import { InvitationList } from "./invitations";
import { RoleMatrix } from "./matrix";
import { Me } from "./me";
import { TenantScreen } from "./tenant";
import { TenantList } from "./tenants";
import { UserScreen } from "./user";
import { UserList } from "./users";

export default function People() {
  const [first, second] = useSubPath();
  if (!may("admin:users")) return <Me title={first ? t().people.me.title : t().rail.people} />;
  if (first === "me") return <Me title={t().people.me.title} isBelow />;
  if (first === "tenants" && second) return <TenantScreen key={second} id={second} />;
  return first ? <UserScreen key={first} id={first} /> : <Everybody />;
}

function Everybody() {
  const texts = t().people;
  return (
    <Page title={t().rail.people}>
      <Tabs
        label={texts.sections}
        tabs={[
          ["users", texts.tabs.users],
          ["invitations", texts.tabs.invitations],
          ["roles", texts.tabs.roles],
          ...(may("admin:tenants") ? [["tenants", texts.tabs.tenants] as const] : []),
        ]}
      >
        {(open) => ({
          users: <UserList />,
          invitations: <InvitationList />,
          roles: <RoleMatrix />,
          tenants: <TenantList />,
        }[open])}
      </Tabs>
    </Page>
  );
}
