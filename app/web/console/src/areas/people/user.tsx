import { Check, X } from "lucide-preact";
import type { ComponentChildren } from "preact";

import { toCurl } from "../../api/client";
import { useRead } from "../../api/queries";
import { session } from "../../api/session";
import { t } from "../../texts";
import { LinkButton } from "../../ui/button";
import { CopyButton, CopyText } from "../../ui/copy";
import { formatTime } from "../../ui/format";
import { RecordHistory } from "../../ui/history";
import { Card, Facts, Page, Section } from "../../ui/page";
import { RecordName } from "../../ui/record_picker";
import { Ago, Avatar, Badge } from "../../ui/small";
import { Loaded } from "../../ui/states";
import { isWithinReach, nameOf, type User } from "./roles";
import { UserActions } from "./user_actions";
import { UserStatus, useTenantNames } from "./users";

export function UserScreen({ id }: { id: string }) {
  const user = useRead("/users/{user_id}", { path: { user_id: id } });
  const isMe = id === session.value?.user.id;
  const data = user.data;
  return (
    <Page
      title={data ? nameOf(data) : t().people.users.user}
      parents={[{ label: t().rail.people, to: "/people" }]}
      beside={data && (
        <>
          <UserStatus user={data} />
          {isMe && <Badge tone="accent">{t().people.users.you}</Badge>}
        </>
      )}
      actions={data && !isMe && isWithinReach(data.role) && <UserActions user={data} />}
    >
      <Loaded query={user}>{(loaded) => <Account user={loaded} isMe={isMe} />}</Loaded>
    </Page>
  );
}

function Account({ user, isMe }: { user: User; isMe: boolean }) {
  const texts = t().people.users;
  return (
    <>
      {isMe && (
        <div class="note">
          <span>{texts.ownAbout}</span>
          <LinkButton to="/people/me">{texts.toAccount}</LinkButton>
        </div>
      )}
      {!isMe && !isWithinReach(user.role) && <p class="soft">{texts.higher}</p>}
      <Card>
        <AccountFacts user={user} />
      </Card>
      <div class="actions">
        <CopyButton
          text={toCurl("GET", "/users/{user_id}", { path: { user_id: user.id } })}
          label={t().common.copyCurl}
        />
      </div>
      <Section title={t().history.title}>
        <RecordHistory
          kind="user"
          recordId={user.id}
          labels={{ role: t().common.role, status: t().common.status }}
        />
      </Section>
    </>
  );
}

function AccountFacts({ user }: { user: User }) {
  const texts = t().people;
  const names = useTenantNames();
  const tenantName = names.get(user.tenant_id) ??
    <RecordName key="tenant" kind="tenant" id={user.tenant_id} />;
  return (
    <Facts
      rows={[
        [
          texts.email,
          <span class="row" key="email">
            <Avatar name={nameOf(user)} />
            <CopyText text={user.email} />
            {!user.email_verified && <Badge tone="warn">{texts.users.unverified}</Badge>}
          </span>,
        ],
        [t().common.role, t().roles[user.role]],
        ...(names.size ? [[texts.users.tenant, tenantName] as [string, ComponentChildren]] : []),
        [
          texts.users.mfa,
          <span class="row" key="mfa">
            {user.mfa_enabled ? <Check aria-hidden="true" /> : <X aria-hidden="true" />}
            {user.mfa_enabled ? texts.users.mfaOn : texts.users.mfaOff}
          </span>,
        ],
        [
          texts.users.lastSignIn,
          user.last_login_at ? <Ago key="seen" at={user.last_login_at} /> : texts.users.never,
        ],
        [texts.users.joined, formatTime(user.created_at)],
        [texts.users.id, <CopyText key="id" text={user.id} />],
      ]}
    />
  );
}
