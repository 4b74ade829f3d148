// Lists what is wrong with the answers, above the form.
import { el } from "../shared/dom.js";
import { ownDirection } from "./own.js";
import { getText } from "./texts.js";

const MAX_LABEL_CHARACTERS = 80;

// `problems` are { name, problem, view }; those with a view link to it. Returns the element, which
// the focus moves to.
/** @type {(problems: FieldProblem[], show: (view: FieldView) => void) => HTMLElement} */
export function buildSummary(problems, show) {
  const title = getText("problemCount", { count: problems.length });
  return el(
    "div",
    { class: "summary", role: "group", "aria-labelledby": "summary-title", tabindex: "-1" },
    el("h2", { id: "summary-title" }, title),
    el("ul", {}, ...problems.map((problem) => buildItem(problem, show))),
  );
}

/** @type {(problem: FieldProblem, show: (view: FieldView) => void) => HTMLElement} */
function buildItem({ name, problem, view }, show) {
  const [before, after] = problem.splitAtLabel();
  const text = el("span", { dir: ownDirection() }, before, el("bdi", {}, shorten(name)), after);
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
