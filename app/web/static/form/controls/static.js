// What a form shows between its questions.
import { el, prose } from "../../shared/dom.js";

/** @type {(field: Field) => HTMLElement} */
export function section({ label, help_text: help }) {
  return el("div", { class: "section" }, prose("h2", label), prose("p", help, { class: "help" }));
}

/** @type {(field: Field) => HTMLElement} */
export function paragraph({ label, help_text: help }) {
  return el("div", { class: "paragraph" }, prose("p", label), prose("p", help, { class: "help" }));
}
