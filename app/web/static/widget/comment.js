// The form for a comment on a rating. Loaded when a visitor rates an answer.
import { button, el } from "../shared/dom.js";
import { rate } from "./requests.js";

const MAX_CHARS = 2000;

// Shows the form below an answer. The focus stays where it is: the comment is optional.
/** @type {(chat: Chat, view: MessageView, rating: Rating, thumb: HTMLElement) => void} */
export function askForComment(chat, view, rating, thumb) {
  const { comment, commented, notRated, sendComment, skipComment } = chat.texts;
  const area = el("textarea", { rows: 2, maxlength: MAX_CHARS, dir: "auto" });
  const close = () => {
    if (form.contains(view.getFocused())) thumb.focus();
    form.remove();
  };
  const send = async () => {
    if (!area.value.trim()) {
      close();
      return;
    }
    try {
      await rate(chat.session, view.id, rating, area.value.trim());
      close();
      chat.announcer.say(commented);
      view.setNote(commented);
    } catch {
      chat.announcer.say(notRated);
      view.setNote(notRated);
    }
  };
  const form = el(
    "form",
    {
      class: "comment",
      on: {
        submit: (/** @type {Event} */ event) => {
          event.preventDefault();
          send();
        },
        keydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Escape") return;
          // The panel stays open.
          event.stopPropagation();
          close();
        },
      },
    },
    el("label", {}, el("span", { dir: "auto" }, comment), area),
    el(
      "div",
      { class: "choices" },
      el("button", { type: "submit" }, sendComment),
      button(skipComment, close),
    ),
  );
  view.footer.after(form);
  chat.announcer.say(comment);
}
