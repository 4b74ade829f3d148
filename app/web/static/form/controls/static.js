// What a form shows between its questions.
import { el } from "../../shared/dom.js";
import { linkedProse } from "../links.js";

/** @type {(field: Field) => HTMLElement} */
export function section({ label, help_text: help }) {
  return el(
    "div",
    { class: "section" },
    linkedProse("h2", label),
    linkedProse("p", help, { class: "help" }),
  );
}

// The title of the page and its help are shown above the page.
/** @type {() => HTMLElement} */
export function pageBreak() {
  return el("div", { class: "page-break" });
}

/** @type {(field: Field) => HTMLElement} */
export function paragraph({ label, help_text: help }) {
  return el(
    "div",
    { class: "paragraph" },
    linkedProse("p", label),
    linkedProse("p", help, { class: "help" }),
  );
}
