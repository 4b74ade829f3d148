// The messages of the chat.
import { el } from "../shared/dom.js";
import { buildText, toPlainText } from "./links.js";
import { formatMoment, formatStored, getText } from "./texts.js";

const SIGNATURE_START = "data:image/png;base64,";
const FILE_ID = /^fil_[A-Za-z0-9]+$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

export class ChatLog {
  constructor() {
    this.element = el("div", {
      class: "log",
      role: "log",
      "aria-live": "off",
      "aria-label": getText("conversation"),
      tabindex: "0",
    });
    // Screen readers hear whole messages, not their parts.
    this.spoken = el("p", { class: "unseen", "aria-live": "polite" });
    // The answers below it change its height.
    new ResizeObserver(() => this.scroll()).observe(this.element);
  }

  // Returns the message as an element, which can grow and be removed.
  /** @type {(role: "user" | "assistant", content: string) => LogEntry} */
  add(role, content) {
    const speaker = el("span", { class: "unseen" }, getText(role === "user" ? "you" : "form"));
    // Only the form has links: what a visitor says stays text.
    const show = role === "user" ? showContent : buildText;
    const bubble = el("div", { class: `bubble ${role}`, dir: "auto" }, ...show(content));
    const turn = el("div", { class: `turn ${role}` }, speaker, bubble);
    this.element.append(turn);
    this.scroll();
    return {
      show: (text) => {
        bubble.replaceChildren(...show(text));
        this.scroll();
      },
      setTyping: (isTyping) => bubble.classList.toggle("typing", isTyping),
      remove: () => turn.remove(),
    };
  }

  /** @type {(messages: FormMessage[]) => void} */
  replace(messages) {
    this.element.replaceChildren();
    for (const { role, content } of messages) this.add(role, content);
  }

  /** @type {(text: string) => void} */
  speak(text) {
    this.spoken.textContent = toPlainText(text);
  }

  scroll() {
    this.element.scrollTop = this.element.scrollHeight;
  }
}

// Answers that are no texts are shown as what they stand for.
/** @type {(content: string) => (Node | string)[]} */
function showContent(content) {
  if (content.startsWith(SIGNATURE_START)) {
    return [el("img", { src: content, alt: getText("yourSignature") })];
  }
  if (FILE_ID.test(content)) return [getText("yourFile")];
  if (DATE.test(content)) return [formatStored(content)];
  if (!TIME.test(content)) return [content];
  return [formatMoment(new Date(content), { dateStyle: "long", timeStyle: "short" })];
}
