// What went wrong, in words for a visitor, and what to do about it.
import { button, el, icon } from "../shared/dom.js";
import { ChatError } from "./session.js";

// Trying again does not help against these.
const FINAL = new Set(["daily", "origin", "revoked", "signIn"]);
// These are no faults, and pass by themselves.
const CALM = new Set(["offline", "limited"]);
const MAX_WAIT_SECONDS = 3600;

export class Notice {
  /** @type {string | null} */
  kind = null;
  text = "";
  /** @type {ReturnType<typeof setInterval> | undefined} */
  timer;
  retry = () => {};

  /** @param {Texts} texts */
  constructor(texts) {
    this.texts = texts;
    this.element = el("div", { class: "notice", role: "alert", hidden: true });
  }

  /** @type {(error: unknown, retry?: () => void) => void} */
  show(error, retry = () => {}) {
    this.clear();
    const known = error instanceof ChatError ? error : new ChatError("failed");
    const kind = known.kind === "hidden" ? "failed" : known.kind;
    this.kind = kind;
    this.retry = () => {
      this.clear();
      retry();
    };
    this.element.hidden = false;
    this.element.classList.toggle("calm", CALM.has(kind));
    const seconds = Math.min(known.seconds, MAX_WAIT_SECONDS);
    if (kind === "limited" && seconds) this.countDown(seconds);
    else this.draw(this.texts[kind], !this.isFinal && kind !== "offline");
  }

  get isFinal() {
    return this.kind !== null && FINAL.has(this.kind);
  }

  /** @type {(text: string, canRetry: boolean) => void} */
  draw(text, canRetry) {
    this.text = text;
    const again = canRetry &&
      button([icon("retry"), this.texts.retry], this.retry, { class: "retry" });
    this.element.replaceChildren(el("p", { dir: "auto" }, text), ...(again ? [again] : []));
  }

  // The sentence is said once; the seconds change silently.
  /** @type {(seconds: number) => void} */
  countDown(seconds) {
    const [before, after] = this.texts.limited.split("{seconds}");
    const left = el("span", { "aria-hidden": "true" }, String(seconds));
    this.text = this.texts.limited.replace("{seconds}", String(seconds));
    this.element.replaceChildren(el("p", { dir: "auto" }, before, left, after ?? ""));
    const until = Date.now() + seconds * 1000;
    this.timer = setInterval(() => {
      const rest = Math.ceil((until - Date.now()) / 1000);
      left.textContent = String(Math.max(0, rest));
      if (rest > 0) return;
      clearInterval(this.timer);
      this.draw(this.texts.limited.replace("{seconds}", "0"), true);
    }, 500);
  }

  clear() {
    clearInterval(this.timer);
    this.kind = null;
    this.text = "";
    this.element.hidden = true;
    this.element.replaceChildren();
  }
}
