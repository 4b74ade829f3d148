// @ts-nocheck Its types would not fit into the panel's 25 kB.
// What went wrong, in words for a visitor, and what to do about it.
import { button, el, icon } from "../shared/dom.js";

// Trying again does not help against these.
const FINAL = new Set(["daily", "origin", "revoked", "signIn"]);
const MAX_WAIT_SECONDS = 3600;

export class Notice {
  constructor(texts) {
    this.texts = texts;
    this.kind = null;
    this.text = "";
    this.timer = 0;
    this.element = el("div", { class: "notice", role: "alert", hidden: true });
  }

  show(error, retry) {
    this.clear();
    this.kind = this.texts[error.kind] ? error.kind : "failed";
    this.retry = () => {
      this.clear();
      retry();
    };
    this.element.hidden = false;
    const seconds = Math.min(error.seconds ?? 0, MAX_WAIT_SECONDS);
    if (this.kind === "limited" && seconds) this.countDown(seconds);
    else this.draw(this.texts[this.kind], !FINAL.has(this.kind));
  }

  draw(text, canRetry) {
    this.text = text;
    const again = canRetry &&
      button([icon("retry"), this.texts.retry], this.retry, { class: "retry" });
    this.element.replaceChildren(el("p", { dir: "auto" }, text), ...(again ? [again] : []));
  }

  // The sentence is said once; the seconds change silently.
  countDown(seconds) {
    const [before, after] = this.texts.limited.split("{seconds}");
    const left = el("span", { "aria-hidden": "true" }, seconds);
    this.text = this.texts.limited.replace("{seconds}", seconds);
    this.element.replaceChildren(el("p", { dir: "auto" }, before, left, after ?? ""));
    const until = Date.now() + seconds * 1000;
    this.timer = setInterval(() => {
      const rest = Math.ceil((until - Date.now()) / 1000);
      left.textContent = Math.max(0, rest);
      if (rest > 0) return;
      clearInterval(this.timer);
      this.draw(this.texts.limited.replace("{seconds}", 0), true);
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
