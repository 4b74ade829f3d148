// The field for the next message, and the button that sends it or stops the answer.
import { button, el, icon, setAttribute } from "../shared/dom.js";

const MAX_CHARS = 32_000;
const MAX_INPUT_PX = 140;

export class Composer {
  isRunning = false;
  hasFiles = false;

  /** @param {ComposerOptions} options */
  constructor({ texts, onSend, onAct }) {
    this.texts = texts;
    this.onSend = onSend;
    this.input = el("textarea", {
      id: "message",
      rows: 1,
      maxlength: MAX_CHARS,
      placeholder: texts.placeholder,
      dir: "auto",
      autocomplete: "off",
      enterkeyhint: "send",
      on: { keydown: (event) => this.handleKey(event), input: () => this.fit() },
    });
    this.action = button(icon("send"), onAct, {
      class: "send",
      "aria-label": texts.send,
      title: texts.send,
    });
    this.element = el(
      "form",
      { class: "composer", on: { submit: (event) => this.submit(event) } },
      el("label", { class: "hidden-text", for: "message" }, texts.message),
      this.input,
      this.action,
    );
  }

  get text() {
    return this.input.value.trim();
  }

  get isFilled() {
    return Boolean(this.text) || this.hasFiles;
  }

  focus() {
    this.input.focus();
  }

  clear() {
    this.input.value = "";
    this.fit();
  }

  /** @type {(event: Event) => void} */
  submit(event) {
    event.preventDefault();
    if (this.isFilled && !this.isRunning) this.onSend();
  }

  /** @type {(event: KeyboardEvent) => void} */
  handleKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.submit(event);
  }

  fit() {
    this.input.style.setProperty("height", "auto");
    this.input.style.setProperty("height", `${Math.min(this.input.scrollHeight, MAX_INPUT_PX)}px`);
  }

  /** @type {(isRunning: boolean) => void} */
  setRunning(isRunning) {
    this.isRunning = isRunning;
    const label = isRunning ? this.texts.stop : this.texts.send;
    this.action.replaceChildren(icon(isRunning ? "stop" : "send"));
    setAttribute(this.action, "aria-label", label);
    setAttribute(this.action, "title", label);
    this.action.classList.toggle("stopping", isRunning);
  }
}
