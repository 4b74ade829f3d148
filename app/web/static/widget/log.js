// The log of messages, and which part of it is visible.
import { button, el, icon } from "../shared/dom.js";

const NEAR_END_PX = 60;
const MARGIN_PX = 12;
const SCROLLING_KEYS = new Set(["ArrowDown", "ArrowUp", "End", "Home", "PageDown", "PageUp", " "]);

// `view` says what the log shows while it grows: its end, an exchange from its start on, or what the
// visitor has scrolled to.
export class Log {
  /** @type {"end" | "start" | "free"} */
  view = "end";
  /** @type {HTMLElement | null} */
  anchor = null;
  /** @type {HTMLElement | null} */
  status = null;
  messages = el("div", { class: "messages" });

  /** @param {Texts} texts */
  constructor(texts) {
    this.texts = texts;
    const release = () => this.release();
    /** @type {HTMLElement} */
    this.box = el(
      "div",
      {
        class: "log",
        role: "log",
        "aria-live": "off",
        "aria-label": texts.conversation,
        tabindex: 0,
        on: {
          scroll: () => this.handleScroll(),
          wheel: release,
          touchmove: release,
          // The scroll bar.
          pointerdown: (event) => event.target === this.box && release(),
          keydown: ({ key, target }) => target === this.box && SCROLLING_KEYS.has(key) && release(),
        },
      },
      this.messages,
    );
    this.newer = button(icon("down"), () => this.showEnd(true), {
      class: "newer",
      "aria-label": texts.newer,
      title: texts.newer,
      hidden: true,
    });
    this.element = el("div", { class: "scroller" }, this.box, this.newer);
    // Messages grow, and what stands below the log takes room from it.
    const observer = new ResizeObserver(() => this.settle());
    observer.observe(this.box);
    observer.observe(this.messages);
  }

  /** @type {(element: HTMLElement) => void} */
  add(element) {
    this.messages.append(element);
    if (this.status) this.messages.append(this.status);
  }

  clear() {
    this.hideStatus();
    this.messages.replaceChildren();
  }

  // Shows the shapes of messages while they are loaded.
  showLoading() {
    this.messages.setAttribute("aria-busy", "true");
    if (this.messages.childElementCount) return;
    const shapes = ["long", "user", "short"].map((name) => el("i", { class: `shape ${name}` }));
    const text = el("span", { class: "hidden-text" }, this.texts.loading);
    this.messages.append(el("div", { class: "skeleton" }, text, shapes));
  }

  hideLoading() {
    this.messages.removeAttribute("aria-busy");
    this.messages.querySelector(".skeleton")?.remove();
  }

  /** @type {(text: string) => void} */
  showStatus(text) {
    this.hideStatus();
    this.status = el(
      "p",
      { class: "typing" },
      el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")),
      el("span", { dir: "auto" }, text),
    );
    this.messages.append(this.status);
  }

  hideStatus() {
    this.status?.remove();
    this.status = null;
  }

  // Scrolling

  // Keeps the start of an exchange visible while its answer grows.
  /** @type {(question: HTMLElement) => void} */
  follow(question) {
    this.view = "start";
    this.anchor = question;
    this.settle();
  }

  showEnd(isSmooth = false) {
    this.view = "end";
    const top = this.box.scrollHeight;
    this.box.scrollTo({ top, behavior: isSmooth ? "smooth" : "auto" });
  }

  release() {
    this.view = "free";
  }

  settle() {
    const end = this.box.scrollHeight - this.box.clientHeight;
    if (this.view === "end") this.box.scrollTop = end;
    if (this.view === "start") this.box.scrollTop = Math.min(end, this.findStart());
    this.newer.hidden = this.isAtEnd();
  }

  // A question that takes most of the room gives it to the answer.
  findStart() {
    const { box, anchor } = this;
    if (!anchor?.isConnected) return Infinity;
    const isLong = anchor.offsetHeight > box.clientHeight / 2;
    const first = isLong ? anchor.nextElementSibling ?? anchor : anchor;
    const distance = first.getBoundingClientRect().top - box.getBoundingClientRect().top;
    return box.scrollTop + distance - MARGIN_PX;
  }

  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    return scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  }

  handleScroll() {
    const isAtEnd = this.isAtEnd();
    if (isAtEnd && this.view === "free") this.view = "end";
    this.newer.hidden = isAtEnd;
  }
}
