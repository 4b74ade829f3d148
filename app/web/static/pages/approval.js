// Shows the question of an approval, and sends the decision of its reader.
import { button, el, icon, prose, required } from "../shared/dom.js";
import { describe, post, Refusal } from "./api.js";
import { showStatus, status } from "./status.js";

const PATH = "/api/v1/public/approvals";
const MAX_COMMENT_CHARS = 2000;
const page = required(document.querySelector("main"));
const address = new URL(location.href);
const token = address.searchParams.get("token") ?? "";
/** @type {ApprovalDecision} */
const decision = address.searchParams.get("decision") === "rejected" ? "rejected" : "approved";
const VERBS = { approved: "Approve", rejected: "Reject" };

/** @type {(moment: string) => string} */
function formatMoment(moment) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "short" });
  return format.format(new Date(moment));
}

// Replaces the page. The status stays, so that a screen reader reads what is written to it.
/** @type {(title: string, ...children: Child[]) => void} */
function show(title, ...children) {
  document.title = title;
  const heading = el("h1", { dir: "auto", tabindex: -1 }, title);
  page.replaceChildren(heading, ...children.filter((child) => child instanceof Node), status);
  showStatus("");
}

// An end of the page, which is read aloud.
/** @type {(mark: Icon, title: string, ...texts: (string | null)[]) => void} */
function showEnd(mark, title, ...texts) {
  show(title, ...texts.map((text) => prose("p", text)));
  page.prepend(el("p", { class: "mark" }, icon(mark)));
  page.classList.add("end");
  page.querySelector("h1")?.focus();
}

/** @type {(approval: LinkedApproval) => string} */
function describeOrigin(approval) {
  if (!approval.workflow_name) return "Somebody is waiting for your decision.";
  const workflow = `The workflow ${approval.workflow_name}`;
  return `${workflow}, started by ${approval.started_by}, waits for your decision.`;
}

/** @type {(details: ApprovalDetail[]) => HTMLElement | null} */
function buildDetails(details) {
  if (details.length === 0) return null;
  const rows = details.map(({ name, value }) =>
    el("div", {}, prose("dt", name), el("dd", { dir: "auto" }, value || "–"))
  );
  return el("dl", {}, ...rows);
}

/** @type {() => HTMLElement} */
function buildOtherLink() {
  const other = decision === "approved" ? "rejected" : "approved";
  const url = new URL(address);
  url.searchParams.set("decision", other);
  return el("a", { href: `${url.pathname}${url.search}` }, `${VERBS[other]} instead`);
}

/** @type {(approval: LinkedApproval) => HTMLFormElement} */
function buildForm(approval) {
  const comment = el("textarea", {
    id: "comment",
    name: "comment",
    rows: 3,
    maxlength: MAX_COMMENT_CHARS,
    dir: "auto",
  });
  const send = el("button", { type: "submit" }, VERBS[decision]);
  const form = el(
    "form",
    {},
    el("label", { for: "comment" }, "Comment ", el("span", { class: "soft" }, "(optional)")),
    comment,
    el("div", { class: "bar" }, send, buildOtherLink()),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    showStatus("");
    try {
      await decide(comment.value.trim(), approval);
    } catch (error) {
      showProblem(error);
    } finally {
      send.disabled = false;
    }
  });
  return form;
}

/** @type {(approval: LinkedApproval) => void} */
function showQuestion(approval) {
  const until = approval.expires_at
    ? ` The decision is due by ${formatMoment(approval.expires_at)}.`
    : "";
  show(
    approval.title,
    prose("p", describeOrigin(approval), { class: "soft" }),
    prose("p", approval.message.trim(), { class: "message" }),
    buildDetails(approval.details),
    buildForm(approval),
    prose("p", `You decide as ${approval.user_name}.${until}`, { class: "soft note" }),
  );
}

/** @type {(comment: string, approval: LinkedApproval) => Promise<void>} */
async function decide(comment, approval) {
  await post(`${PATH}/decide`, { token, decision, comment: comment || null });
  // Removes the used token from the browser's history.
  history.replaceState(null, "", address.pathname);
  const workflow = approval.workflow_name
    ? `The workflow ${approval.workflow_name}`
    : "The workflow";
  const next = decision === "approved"
    ? `${workflow} continues now.`
    : `${workflow} continues as planned for a rejection, or ends.`;
  showEnd(
    "check",
    "Thank you",
    `You have ${decision}: ${approval.title}`,
    `${next} You can close this page.`,
  );
}

/** @type {(approval: LinkedApproval) => void} */
function showDecided(approval) {
  const at = approval.decided_at ? formatMoment(approval.decided_at) : "";
  if (approval.status === "approved" || approval.status === "rejected") {
    const name = approval.decided_by ?? "Somebody";
    const text = `${name} ${approval.status} this on ${at}: ${approval.title}`;
    showEnd("check", "Already decided", text, approval.comment && `Comment: ${approval.comment}`);
  } else if (approval.status === "timed_out") {
    showEnd("close", "Too late", `Nobody had decided by ${at}: ${approval.title}`);
  } else {
    showEnd("close", "No longer needed", `The workflow ended on ${at}: ${approval.title}`);
  }
}

/** @type {(error: unknown) => void} */
function showProblem(error) {
  if (!(error instanceof Refusal)) {
    showStatus(describe(error), true);
  } else if (error.code === "already_decided") {
    load();
  } else if (error.code === "approval_expired") {
    showEnd(
      "close",
      "This link has expired",
      `It worked until ${formatMoment(error.details.expires_at)}.`,
      "If the decision is still needed, ask for it where the workflow is run.",
    );
  } else if (error.code === "approval_link_not_found" || error.details.token) {
    showEnd(
      "close",
      "This link is not valid",
      "It may be incomplete: copy the whole link of the mail. It is also not valid when you are " +
        "no longer asked for this decision, or your account has changed.",
    );
  } else {
    showStatus(error.message, true);
  }
}

async function load() {
  try {
    /** @type {{ data: LinkedApproval }} */
    const { data } = await post(`${PATH}/look-up`, { token });
    if (data.status === "pending") showQuestion(data);
    else showDecided(data);
  } catch (error) {
    showProblem(error);
    // Nothing else is on the page yet.
    if (page.querySelector("h1") === null) showRetry();
  }
}

function showRetry() {
  const text = status.textContent ?? "";
  show("The question cannot be shown", button("Try again", load));
  showStatus(text, true);
}

load();
