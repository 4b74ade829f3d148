// Ready answers to a question of the chat: buttons for options, and controls for what is hard to
// type, such as a date or a file.
import { check, isEmpty } from "./checks.js";
import { listChosen } from "./controls/choices.js";
import { CONTROLS } from "./controls/registry.js";
import { button, el, prose } from "../shared/dom.js";
import { toSentence } from "./text.js";

const MAX_RATING = 10;
const WITH_CONTROL = new Set([
  "multi_select",
  "checkbox_group",
  "date",
  "datetime",
  "slider",
  "file",
  "signature",
]);

// Calls `say(content, shown)` with the answer and what the visitor sees of it.
export function buildReplies(field, context, say) {
  const replies = [buildAnswers(field, context, say)];
  if (!field.required) {
    replies.push(button("Skip", () => say("skip", "Skip"), { class: "chip quiet" }));
  }
  return replies.filter(Boolean);
}

function buildAnswers(field, context, say) {
  if (WITH_CONTROL.has(field.type)) return buildWithControl(field, context, say);
  if (field.type === "select" || field.type === "radio") return buildOptions(field, context, say);
  return buildChips(listWords(field), say);
}

function listWords(field) {
  if (field.type === "checkbox") return ["Yes", "No"];
  const most = field.type === "rating" ? (field.validation.max ?? 5) : 0;
  return most <= MAX_RATING ? Array.from({ length: most }, (_, index) => String(index + 1)) : [];
}

function buildChips(words, say) {
  const chips = words.map((word) =>
    button(prose("span", word), () => say(word, word), { class: "chip" })
  );
  return chips.length ? el("div", { class: "chips" }, ...chips) : null;
}

function buildOptions(field, context, say) {
  const place = el("div", { class: "chips-place" });
  const show = (options) => {
    place.replaceChildren(
      buildChips(
        options.map(({ label }) => label),
        say,
      ) ?? "",
    );
  };
  // Without the options, the answer can still be typed.
  if (field.has_data_source) context.loadOptions(field).then(show, () => {});
  else show(field.options);
  return place;
}

function buildWithControl(field, context, say) {
  const problem = el("p", { class: "problem", role: "alert" });
  const showProblem = (text) => {
    problem.textContent = text ? toSentence(text) : "";
  };
  const control = CONTROLS[field.type](field, {
    ...context,
    changed: () => showProblem(""),
    showProblem,
  });
  for (const input of control.inputs) {
    if (field.type !== "signature") input.setAttribute("aria-label", field.label);
  }
  const send = button("Send this answer", () => {
    const value = control.read();
    const wrong = control.findProblem?.() || findProblem(field, value);
    if (wrong) showProblem(wrong);
    else say(...describe(field, value, control.element));
  });
  const role = control.role ?? null;
  return el(
    "div",
    { class: "control", role, "aria-label": role ? field.label : null },
    control.element,
    problem,
    send,
  );
}

function findProblem(field, value) {
  return isEmpty(value) ? "is required" : check(field, value).problem;
}

// Returns the message, and what the visitor sees of it.
function describe(field, value, element) {
  switch (field.type) {
    case "file":
      return [value, element.querySelector(".name").textContent];
    case "signature":
      return [value, value];
    case "multi_select":
    case "checkbox_group":
      return Array(2).fill(listChosen(element).join(", "));
    default:
      return Array(2).fill(String(value));
  }
}
