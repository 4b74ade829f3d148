// Texts of the page itself, among those of the form's author.
import { el } from "../shared/dom.js";

// Their direction is that of the language, also where those of the author have another one.
/** @type {() => string} */
export function ownDirection() {
  return document.documentElement.dir || "ltr";
}

/** @type {(text: string) => HTMLElement} */
export function own(text) {
  return el("span", { dir: ownDirection() }, text);
}
