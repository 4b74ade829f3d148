// The line of a page that says how things are, which screen readers announce.
import { required } from "../shared/dom.js";

/** @type {HTMLElement} */
export const status = required(document.querySelector("[role=status]"));

/** @type {(text: string, isError?: boolean) => void} */
export function showStatus(text, isError = false) {
  // A text that stays is not announced again.
  if (status.textContent !== text) status.textContent = text;
  status.className = isError ? "bad" : "";
}
