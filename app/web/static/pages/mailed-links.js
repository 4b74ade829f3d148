// What the link of a mail leads to, before anything is typed.
import { post, Refusal } from "./api.js";

const RESET = { href: "/forgot-password", text: "Get a mail to choose a new password" };
const INCOMPLETE = "It may be incomplete: copy the whole link of the mail.";

/** @type {(link: InvitationLink) => string} */
function nameInviter(link) {
  return link.inviter ?? "an administrator";
}

/** @type {Record<string, (link: InvitationLink) => LinkEnd>} */
const INVITATION_ENDS = {
  used: (link) => ({
    title: "You have joined already",
    text: `Sign in as ${link.email}. If you do not know your password, choose a new one.`,
    link: RESET,
  }),
  expired: (link) => ({
    title: "This invitation has expired",
    text: `Ask ${nameInviter(link)} for a new one to ${link.email}.`,
  }),
  superseded: (link) => ({
    title: "There is a newer invitation",
    text: `Open the link in the newest mail to ${link.email}.`,
  }),
  revoked: (link) => ({
    title: "This invitation was withdrawn",
    text: `Ask ${nameInviter(link)} for a new one to ${link.email}.`,
  }),
};

/** @type {Record<string, Record<string, LinkEnd>>} */
const LINK_ENDS = {
  verify_email: {
    used: {
      title: "This link was used",
      text: "Your e-mail address is verified. There is nothing left to do here.",
    },
    expired: {
      title: "This link has expired",
      text: "Choose a new password by mail instead: that verifies your address, too.",
      link: RESET,
    },
  },
  reset_password: {
    used: {
      title: "This link no longer works",
      text: "It was used, or your account has changed since. Sign in, or ask for another mail.",
      link: RESET,
    },
    expired: { title: "This link has expired", text: "Ask for another mail.", link: RESET },
  },
};

/** @type {Record<string, LinkEnd>} */
const INVALID = {
  invitation: {
    title: "This invitation is not valid",
    text: `${INCOMPLETE} Otherwise ask whoever invited you for a new one.`,
  },
  verify_email: { title: "This link is not valid", text: INCOMPLETE },
  reset_password: { title: "This link is not valid", text: INCOMPLETE, link: RESET },
};

/** @type {(role: string) => string} */
function nameRole(role) {
  return role.replaceAll("_", " ");
}

/** @type {(token: string) => Promise<LinkView>} */
async function lookUpInvitation(token) {
  /** @type {InvitationLink} */
  const link = await post("/auth/invitations/look-up", { token });
  if (link.state !== "open") return { end: INVITATION_ENDS[link.state](link) };
  const by = link.inviter ? `${link.inviter} invites you` : "You are invited";
  return {
    email: link.email,
    title: `Join ${link.tenant_name}`,
    about: `${by} to join ${link.tenant_name} as ${nameRole(link.role)}.`,
  };
}

/** @type {(purpose: string, token: string) => Promise<LinkView>} */
async function lookUpLink(purpose, token) {
  /** @type {{ email: string; state: string }} */
  const link = await post("/auth/links/look-up", { purpose, token });
  return link.state === "open" ? { email: link.email } : { end: LINK_ENDS[purpose][link.state] };
}

// Returns what the form shows, or why there is none. Rejects when the server cannot be asked.
/** @type {(kind: string, token: string) => Promise<LinkView>} */
export async function lookUp(kind, token) {
  if (!token) return { end: INVALID[kind] };
  try {
    return await (kind === "invitation" ? lookUpInvitation(token) : lookUpLink(kind, token));
  } catch (error) {
    const isUnknown = error instanceof Refusal && [404, 422].includes(error.status);
    if (isUnknown) return { end: INVALID[kind] };
    throw error;
  }
}
