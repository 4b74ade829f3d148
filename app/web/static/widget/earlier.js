// The earlier conversations of this browser, in the place of the chat.
import { button, el, icon } from "../shared/dom.js";
import { formatTime } from "./message.js";

export class EarlierList {
  /** @param {EarlierOptions} options */
  constructor({ texts, lang, items, onOpen, onClose }) {
    this.back = button([icon("back"), texts.back], onClose, { class: "back" });
    const entries = items.map(({ id, title, at }) => {
      const date = new Date(at);
      const time = formatTime(date, lang, { dateStyle: "medium", timeStyle: "short" });
      const entry = button(
        [
          el("span", { class: "name", dir: "auto" }, title),
          el("time", { datetime: date.toISOString(), dir: "auto" }, time),
        ],
        () => onOpen(id),
        { class: "entry" },
      );
      return el("li", {}, entry);
    });
    this.element = el(
      "section",
      { class: "earlier", "aria-labelledby": "earlier" },
      this.back,
      el("h3", { id: "earlier" }, texts.history),
      el("ul", {}, entries),
    );
  }

  focus() {
    this.back.focus();
  }
}
