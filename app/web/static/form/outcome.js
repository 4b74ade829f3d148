// What a visitor sees when the form is submitted.
import { el, icon, prose, required } from "../shared/dom.js";
import { isFramed, moveTo, notify } from "./frame.js";
import { getText } from "./texts.js";
import { toWebAddress } from "./web-address.js";

/** @type {(message: string) => HTMLElement} */
export function buildOutcome(message) {
  return el(
    "div",
    { class: "outcome", tabindex: "-1", role: "status" },
    el("span", { class: "seal" }, icon("check")),
    prose("p", message),
  );
}

// Replaces the form by its success message, or goes to the page that follows it.
/** @type {(place: HTMLElement, outcome: FormOutcome) => void} */
export function showOutcome(place, { message, submissionId, redirectUrl, isEmbedded }) {
  const outcome = buildOutcome(message);
  place.replaceChildren(outcome);
  moveTo(outcome);
  notify("submitted", { submissionId });
  const url = toWebAddress(redirectUrl);
  if (!url) return;
  outcome.append(el("a", { href: url, target: "_top", rel: "noreferrer" }, getText("goOn")));
  follow(url, isEmbedded);
}

/** @type {(url: string, isEmbedded: boolean) => void} */
function follow(url, isEmbedded) {
  if (!isFramed) window.location.assign(url);
  else if (isEmbedded) notify("redirect", { url });
  else leaveFrame(url);
}

// A browser may forbid it; then the visitor follows the link.
/** @type {(url: string) => void} */
function leaveFrame(url) {
  try {
    required(window.top).location.href = url;
  } catch {
    // The link is there.
  }
}
