// Links in the texts of a form's author, written as in Markdown: [privacy notice](https://…). The
// rules are those of app/domain/forms/definition/fields/links.py: all other text stays text.
import { el } from "../shared/dom.js";

const CHARACTER = "\\x01-\\x20\\x7f-\\xa0()<>\"'\\\\";
const LINK = new RegExp(
  `\\[([^\\[\\]\\n]+)\\]\\((https?://[^${CHARACTER}@/?#]+(?:[/?#][^${CHARACTER}]*)?` +
    `|mailto:[^${CHARACTER}]+)\\)`,
  "gu",
);

// Returns the texts and links of a text, in turns: { text, url }, with a url for links.
/** @type {(text: string) => { text: string; url?: string }[]} */
export function splitLinks(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(LINK)) {
    parts.push({ text: text.slice(end, match.index) }, { text: match[1], url: match[2] });
    end = match.index + match[0].length;
  }
  return [...parts, { text: text.slice(end) }].filter((part) => part.text);
}

// Returns a text with the texts of its links.
/** @type {(text: string) => string} */
export function toPlainText(text) {
  return text.replace(LINK, "$1");
}

/** @type {(text: string) => (Node | string)[]} */
export function buildText(text) {
  return splitLinks(text).map((part) =>
    part.url
      ? el("a", { href: part.url, target: "_blank", rel: "noopener noreferrer" }, part.text)
      : part.text
  );
}

// A text of an author with its links, in any language.
/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string | null | undefined} text
 * @param {Attributes} attributes
 */
export function linkedProse(tag, text, attributes = {}) {
  return text ? el(tag, { dir: "auto", ...attributes }, buildText(text)) : null;
}
