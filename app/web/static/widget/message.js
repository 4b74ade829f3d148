// One message: who wrote it, its text, its time, and the room for what belongs to it.
import { button, el, icon, prose } from "../shared/dom.js";
import { MarkdownView } from "../shared/markdown.js";
import { fill } from "./texts.js";

const COPIED_MS = 2000;

export class MessageView {
  id = "";
  text = "";
  frame = 0;
  wasQueued = false;
  /** @type {Source[]} */
  sources = [];
  /** @type {HTMLElement[]} */
  repeaters = [];

  /** @param {MessageOptions} options */
  constructor({ role, texts, name, isGreeting = false }) {
    this.texts = texts;
    this.body = el("div", { class: "body" });
    this.footer = el("div", { class: "footer" });
    this.extras = el("div", { class: "extras" }, this.footer);
    const speaker = fill(texts.speaker, { name: role === "user" ? texts.you : name });
    this.element = el(
      "article",
      { class: isGreeting ? `message ${role} greeting` : `message ${role}` },
      el("span", { class: "hidden-text" }, `${speaker} `),
      this.body,
      this.extras,
    );
    this.markdown = role === "user"
      ? null
      : new MarkdownView(this.body, (code) => this.wrapCode(code));
    this.tables = new ResizeObserver((entries) => {
      for (const { target } of entries) showEdges(target);
    });
  }

  // What a visitor wrote is shown as it is.
  /** @type {(text: string) => void} */
  setText(text) {
    this.text = text;
    this.body.hidden = !text;
    if (this.markdown) this.markdown.update(text);
    else this.body.replaceChildren(prose("p", text) ?? "");
    for (const table of this.body.querySelectorAll(".table:not(.watched)")) this.watch(table);
  }

  // Draws at most once a frame, however fast the words come.
  /** @type {(text: string) => void} */
  addText(text) {
    this.text += text;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.setText(this.text);
    });
  }

  /** @type {(isStreaming: boolean) => void} */
  setStreaming(isStreaming) {
    this.element.classList.toggle("streaming", isStreaming);
    if (isStreaming) return;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.setText(this.text);
  }

  // The time of today, or the date before; the exact time is its title.
  /** @type {(at: Date, lang: string | undefined) => void} */
  setTime(at, lang) {
    if (Number.isNaN(at.valueOf())) return;
    const isToday = at.toDateString() === new Date().toDateString();
    /** @type {Intl.DateTimeFormatOptions} */
    const shown = isToday ? { timeStyle: "short" } : { dateStyle: "medium" };
    const title = formatTime(at, lang, { dateStyle: "full", timeStyle: "medium" });
    const text = formatTime(at, lang, shown);
    this.footer.prepend(el("time", { datetime: at.toISOString(), title, dir: "auto" }, text));
  }

  // A sentence about the message, and what can be done about it.
  /** @type {(text: string) => HTMLElement} */
  setNote(text) {
    this.extras.querySelector(".note")?.remove();
    const note = el("p", { class: "note" }, el("span", { dir: "auto" }, text));
    this.extras.prepend(note);
    return note;
  }

  clearNote() {
    this.extras.querySelector(".note")?.remove();
  }

  // Asks the question of this answer again. Only the last answer can be replaced.
  /** @type {(repeater: HTMLElement, place: HTMLElement) => void} */
  addRepeater(repeater, place) {
    this.repeaters.push(repeater);
    place.append(repeater);
  }

  removeRepeaters() {
    for (const repeater of this.repeaters.splice(0)) repeater.remove();
  }

  // Code with its copy button above it.
  /** @type {(code: HTMLElement) => HTMLElement} */
  wrapCode(code) {
    const copy = button(this.texts.copy, async () => {
      await copyText(code.textContent);
      copy.textContent = this.texts.copied;
      setTimeout(() => {
        copy.textContent = this.texts.copy;
      }, COPIED_MS);
    }, { class: "copy" });
    return el("div", { class: "code" }, el("div", { class: "bar" }, copy), code);
  }

  /** @type {(table: Element) => void} */
  watch(table) {
    table.classList.add("watched");
    table.addEventListener("scroll", () => showEdges(table), { passive: true });
    this.tables.observe(table);
  }

  // The element that has the focus within the panel.
  getFocused() {
    return /** @type {ShadowRoot} */ (this.element.getRootNode()).activeElement;
  }

  /** @type {(name: Icon, label: string, listener: () => void) => HTMLButtonElement} */
  buildIconButton(name, label, listener) {
    return button(icon(name), listener, { class: "plain", "aria-label": label, title: label });
  }
}

// Fades the edges beyond which a table goes on.
/** @type {(table: Element) => void} */
function showEdges(table) {
  const position = Math.abs(table.scrollLeft);
  const rest = table.scrollWidth - table.clientWidth - position;
  table.classList.toggle("more-before", position > 1);
  table.classList.toggle("more-after", rest > 1);
}

/** @type {(at: Date, lang: string | undefined, options: Intl.DateTimeFormatOptions) => string} */
export function formatTime(at, lang, options) {
  try {
    return new Intl.DateTimeFormat(lang || undefined, options).format(at);
  } catch {
    // The page names a language that there is not.
    return new Intl.DateTimeFormat(undefined, options).format(at);
  }
}

/** @type {(text: string) => Promise<void>} */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page without https, or one that forbids the clipboard.
    const area = el("textarea", { class: "hidden-text" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
