// Lists what is wrong with the answers, above the form.
import { el } from "../shared/dom.js";

const MAX_LABEL_CHARACTERS = 80;

// `problems` are { name, message, view }; those with a view link to it. Returns the element, which
// the focus moves to.
/** @type {(problems: FieldProblem[], show: (view: FieldView) => void) => HTMLElement} */
export function buildSummary(problems, show) {
  const title = problems.length === 1
    ? "There is 1 problem"
    : `There are ${problems.length} problems`;
  return el(
    "div",
    { class: "summary", role: "group", "aria-labelledby": "summary-title", tabindex: "-1" },
    el("h2", { id: "summary-title" }, title),
    el("ul", {}, ...problems.map((problem) => buildItem(problem, show))),
  );
}

/** @type {(problem: FieldProblem, show: (view: FieldView) => void) => HTMLElement} */
function buildItem({ name, message, view }, show) {
  const text = el("span", { dir: "ltr" }, "“", el("bdi", {}, shorten(name)), `” ${message}`);
  return el("li", {}, view ? buildLink(view, text, show) : text);
}

// The address of the page stays as it is: its fragment may be a draft.
/** @type {(view: FieldView, text: HTMLElement, show: (view: FieldView) => void) => HTMLElement} */
function buildLink(view, text, show) {
  const follow = (/** @type {Event} */ event) => {
    event.preventDefault();
    show(view);
  };
  return el("a", { href: `#field-${view.field.id}`, on: { click: follow } }, text);
}

/** @type {(name: string) => string} */
function shorten(name) {
  const letters = [...name];
  return letters.length > MAX_LABEL_CHARACTERS
    ? `${letters.slice(0, MAX_LABEL_CHARACTERS).join("")}…`
    : name;
}
