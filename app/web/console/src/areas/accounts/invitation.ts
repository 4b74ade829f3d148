// What the link of an invitation leads to.
import { api } from "../../api/client";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import type { End } from "./card";
import { type LinkState, orNull, toReset } from "./link";

export type Invitation = Schemas["InvitationLink"];

export async function lookUpInvitation(token: string): Promise<LinkState<Invitation>> {
  const link = await orNull(
    api.post("/auth/invitations/look-up", { body: { token } }, { isPublic: true }),
  );
  const texts = t().accounts;
  if (!link) {
    return {
      end: { title: texts.invitationInvalid, text: `${texts.incomplete} ${texts.askInviter}` },
    };
  }
  return link.state === "open" ? { link } : { end: endOf(link, link.state) };
}

function endOf(link: Invitation, state: Exclude<Invitation["state"], "open">): End {
  const texts = t().accounts;
  const inviter = link.inviter ?? texts.anAdministrator;
  return {
    used: { title: texts.joinedBefore, text: texts.signInAs(link.email), link: toReset() },
    expired: { title: texts.invitationExpired, text: texts.askFor(inviter, link.email) },
    superseded: { title: texts.invitationNewer, text: texts.openNewest(link.email) },
    revoked: { title: texts.invitationRevoked, text: texts.askFor(inviter, link.email) },
  }[state];
}
