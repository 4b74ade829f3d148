// Tells screen readers what a reply says, in whole sentences instead of tokens.
import { el } from "../shared/dom.js";
import { toPlainText } from "../shared/markdown.js";

const SENTENCE_END = /[.!?…]["'”’)\]]{0,3}(?=\s)|[。！？\n]/gu;
// After this, a sentence is read from the log alone, so that nobody meets it twice.
const SPOKEN_MS = 10_000;

export class Announcer {
  constructor() {
    this.element = el("div", {
      class: "hidden-text",
      "aria-live": "polite",
      "aria-relevant": "additions",
    });
    this.position = 0;
  }

  /** @type {(text: string) => void} */
  say(text) {
    const words = toPlainText(text);
    if (!words) return;
    const line = el("p", { dir: "auto" }, words);
    this.element.append(line);
    setTimeout(() => line.remove(), SPOKEN_MS);
  }

  begin() {
    this.position = 0;
  }

  // Says the sentences of a growing text that are complete by now.
  /** @type {(text: string) => void} */
  follow(text) {
    const rest = text.slice(this.position);
    let end = 0;
    for (const match of rest.matchAll(SENTENCE_END)) end = match.index + match[0].length;
    if (end) this.say(rest.slice(0, end));
    this.position += end;
  }

  /** @type {(text: string) => void} */
  finish(text) {
    this.say(text.slice(this.position));
    this.position = text.length;
  }
}
