// Ready answers to a question of the chat: buttons for options, and controls for what is hard to
// type, such as a date or a file.
import { check, isEmpty } from "./checks.js";
import { typeOf } from "./controls/registry.js";
import { button, el, prose, required } from "../shared/dom.js";
import { toPlainText } from "./links.js";
import { Problem } from "./problems.js";
import { formatNumber, getText, getWord } from "./texts.js";

// More buttons than this are shown on request.
const MAX_CHIPS = 12;

// Calls `say(content, shown)` with the answer and what the visitor sees of it.
/** @type {(field: Field, context: ReplyContext, say: Say) => HTMLElement[]} */
export function buildReplies(field, context, say) {
  const answers = buildAnswers(field, context, say);
  // The conversation understands the word of its language.
  const skipQuestion = () => say(getWord("skip").toLowerCase(), getText("skip"));
  const skip = button(getText("skip"), skipQuestion, { class: "chip quiet" });
  return [...(answers ? [answers] : []), ...(field.required ? [] : [skip])];
}

/** @type {(field: Field, context: ReplyContext, say: Say) => HTMLElement | null} */
function buildAnswers(field, context, say) {
  const { inChat, listWords } = typeOf(field);
  if (inChat === "control") return buildWithControl(field, context, say);
  if (inChat === "options") return buildOptions(field, context, say);
  return buildChips(listWords?.(field) ?? [], say);
}

/** @type {(words: [content: string, shown: string][], say: Say) => HTMLElement | null} */
function buildChips(words, say) {
  const build = (/** @type {[string, string]} */ [content, shown]) =>
    button(prose("span", shown), () => say(content, shown), { class: "chip" });
  const hidden = words.length > MAX_CHIPS ? words.slice(MAX_CHIPS - 1) : [];
  const chips = el(
    "div",
    { class: "chips" },
    words.slice(0, words.length - hidden.length).map(build),
  );
  if (hidden.length) {
    const more = button(getText("showMore", { count: hidden.length }), () => {
      const others = hidden.map(build);
      more.replaceWith(...others);
      others[0].focus();
    }, { class: "chip quiet" });
    chips.append(more);
  }
  return words.length ? chips : null;
}

/** @type {(field: Field, context: ReplyContext, say: Say) => HTMLElement} */
function buildOptions(field, context, say) {
  const place = el("div", { class: "chips-place" });
  const show = (/** @type {FieldOption[]} */ options) => {
    place.replaceChildren(
      buildChips(
        options.map(({ label }) => [toPlainText(label), toPlainText(label)]),
        say,
      ) ?? "",
    );
  };
  // Without the options, the answer can still be typed.
  if (field.has_data_source) context.loadOptions(field).then(show, () => {});
  else show(field.options);
  return place;
}

/** @type {(field: Field, context: ReplyContext, say: Say) => HTMLElement} */
function buildWithControl(field, context, say) {
  const problem = el("p", { class: "problem", role: "alert" });
  const showProblem = (/** @type {AnswerProblem | null} */ wrong) => {
    problem.textContent = wrong?.sentence ?? "";
  };
  const control = required(typeOf(field).buildControl)(field, {
    ...context,
    changed: () => showProblem(null),
    showProblem,
  });
  const label = toPlainText(field.label);
  for (const input of control.inputs) {
    if (!input.hasAttribute("aria-label")) input.setAttribute("aria-label", label);
  }
  const send = button(getText("sendAnswer"), () => {
    const value = control.read();
    const wrong = control.findProblem?.() || findProblem(field, value);
    if (wrong) showProblem(wrong);
    else say(...(control.toMessage?.() ?? toMessage(value)));
  });
  const role = control.role ?? null;
  return el(
    "div",
    { class: "control", role, "aria-label": role ? label : null },
    control.element,
    problem,
    send,
  );
}

// The conversation reads numbers as its language writes them.
/** @type {(value: unknown) => [content: string, shown: string]} */
function toMessage(value) {
  const text = typeof value === "number" ? formatNumber(value) : String(value);
  return [text, text];
}

/** @type {(field: Field, value: unknown) => AnswerProblem | undefined} */
function findProblem(field, value) {
  return isEmpty(value) ? new Problem("required") : check(field, value).problem;
}
