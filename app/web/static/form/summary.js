// Lists what is wrong with the answers, above the form.
import { el } from "../shared/dom.js";

const MAX_LABEL_CHARACTERS = 80;

// `problems` are { name, message, view }; those with a view link to it. Returns the element, which
// the focus moves to.
/** @type {(problems: FieldProblem[]) => HTMLElement} */
export function buildSummary(problems) {
  const title = problems.length === 1
    ? "There is 1 problem"
    : `There are ${problems.length} problems`;
  return el(
    "div",
    { class: "summary", role: "group", "aria-labelledby": "summary-title", tabindex: "-1" },
    el("h2", { id: "summary-title" }, title),
    el("ul", {}, ...problems.map(buildItem)),
  );
}

/** @type {(problem: FieldProblem) => HTMLElement} */
function buildItem({ name, message, view }) {
  const text = el("span", { dir: "ltr" }, "“", el("bdi", {}, shorten(name)), `” ${message}`);
  return el("li", {}, view ? buildLink(view, text) : text);
}

// The address of the page stays as it is: its fragment may be a draft.
/** @type {(view: FieldView, text: HTMLElement) => HTMLElement} */
function buildLink(view, text) {
  const follow = (/** @type {Event} */ event) => {
    event.preventDefault();
    view.focus();
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
