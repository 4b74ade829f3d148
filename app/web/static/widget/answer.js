// What belongs to an answer that is over: what became of it, its sources, and what can be done with
// it. Loaded beside the first conversation, since a panel opens without it.
import { button, icon, setAttribute } from "../shared/dom.js";
import { addStyles } from "./late-styles.js";
import { copyText } from "./message.js";
import { rate } from "./requests.js";
import { addSources } from "./sources.js";

const COPIED_MS = 2000;

/** @type {(shadow: ShadowRoot) => Promise<void>} */
export function loadStyles(shadow) {
  return addStyles(shadow, new URL("./answer.css", import.meta.url));
}

/** @type {(chat: Chat, view: MessageView, outcome: Outcome) => void} */
export function finishAnswer(chat, view, { status, sources, feedback, isNew }) {
  const { texts } = chat;
  const wasStopped = status === "interrupted" && chat.stopped.has(view.id);
  const isBroken = status !== "complete" && !wasStopped;
  const isLast = chat.last?.answer === view;
  addSources(view, sources);
  if (status !== "complete") {
    const broken = view.text ? texts.brokenOff : texts.failed;
    const note = view.setNote(wasStopped ? texts.stopped : broken);
    if (isBroken) {
      if (isNew) chat.announcer.say(broken);
      if (isLast) view.addRepeater(buildRetry(chat), note);
    }
  }
  if (view.text) addCopy(chat, view);
  if (view.text && view.id && chat.agent.allow_feedback) addRating(chat, view, feedback);
  if (view.text && chat.agent.allow_voice) addPlayer(chat, view);
  if (isLast && !isBroken) offerAgain(chat, view);
}

// Offers to write the last answer again.
/** @type {(chat: Chat, view: MessageView) => void} */
export function offerAgain(chat, view) {
  const again = view.buildIconButton("retry", chat.texts.regenerate, () => chat.repeat());
  view.addRepeater(again, view.footer);
}

/** @type {(chat: Chat) => HTMLElement} */
function buildRetry(chat) {
  return button([icon("retry"), chat.texts.retry], () => chat.repeat(), { class: "retry" });
}

/** @type {(chat: Chat, view: MessageView) => void} */
function addCopy(chat, view) {
  const { copied, copyAnswer } = chat.texts;
  const copy = view.buildIconButton("copy", copyAnswer, async () => {
    await copyText(view.text);
    copy.replaceChildren(icon("check"));
    chat.announcer.say(copied);
    setTimeout(() => copy.replaceChildren(icon("copy")), COPIED_MS);
  });
  view.footer.append(copy);
}

// Pressing a rating again withdraws it.
/** @type {(chat: Chat, view: MessageView, feedback: Feedback | null | undefined) => void} */
function addRating(chat, view, feedback) {
  const { bad, good, notRated } = chat.texts;
  /** @type {Rating | null} */
  let rating = feedback?.rating ?? null;
  const press = async (/** @type {Rating} */ pressed) => {
    const before = rating;
    show(rating === pressed ? null : pressed);
    view.extras.querySelector(".comment")?.remove();
    try {
      await rate(chat.session, view.id, rating);
      if (rating === pressed) await openComment(pressed);
    } catch {
      show(before);
      chat.announcer.say(notRated);
      view.setNote(notRated);
    }
  };
  const openComment = async (/** @type {Rating} */ given) => {
    const { askForComment } = await import("./comment.js");
    view.extras.querySelector(".comment")?.remove();
    if (rating === given) askForComment(chat, view, given, given === "up" ? up : down);
  };
  const up = view.buildIconButton("thumbUp", good, () => press("up"));
  const down = view.buildIconButton("thumbDown", bad, () => press("down"));
  const show = (/** @type {Rating | null} */ value) => {
    rating = value;
    setAttribute(up, "aria-pressed", String(rating === "up"));
    setAttribute(down, "aria-pressed", String(rating === "down"));
  };
  show(rating);
  view.footer.append(up, down);
}

/** @type {(chat: Chat, view: MessageView) => void} */
function addPlayer(chat, view) {
  const play = view.buildIconButton("speaker", chat.texts.play, async () => {
    const { play: playText } = await import("./player.js");
    await playText(chat, view, play);
  });
  view.footer.append(play);
}
