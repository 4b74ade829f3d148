// A field on the page: its label, help, control and the message about what is wrong.
import { el, setAttribute } from "../shared/dom.js";
import { typeOf } from "./controls/registry.js";
import { linkedProse } from "./links.js";
import { own } from "./own.js";
import { getText } from "./texts.js";

export class FieldView {
  // By its conditional; it may be on another page.
  isVisible = true;
  #isOnPage = true;
  /** @type {AnswerProblem | null} */
  problem = null;
  /** @type {Control | null} */
  control = null;
  /** @type {HTMLElement | null} */
  element = null;
  #message;
  // What the message and the help belong to.
  /** @type {HTMLElement[]} */
  #described = [];

  // `context` has the api, `loadOptions(field)`, and `changed(view)` for every change.
  /** @param {Field} field @param {FieldContext} context */
  constructor(field, context) {
    const { buildControl, buildStatic, isHidden } = typeOf(field);
    this.field = field;
    this.#message = el("p", { class: "problem", id: `problem-${field.id}` });
    if (buildControl) {
      this.control = buildControl(field, {
        ...context,
        changed: () => context.changed(this),
        showProblem: (problem) => this.showProblem(problem),
      });
      if (!isHidden) this.#build(this.control);
    }
    if (buildStatic) this.element = buildStatic(field);
    this.element?.addEventListener("input", () => context.changed(this));
  }

  read() {
    return this.control?.read();
  }

  /** @type {(isVisible: boolean) => void} */
  setVisible(isVisible) {
    this.isVisible = isVisible;
    this.#show();
  }

  /** @type {(isOnPage: boolean) => void} */
  setOnPage(isOnPage) {
    this.#isOnPage = isOnPage;
    this.#show();
  }

  #show() {
    if (this.element) this.element.hidden = !(this.isVisible && this.#isOnPage);
  }

  // True when there is something to see on its page.
  get isShown() {
    return this.isVisible && this.element !== null;
  }

  focus() {
    this.control?.focus();
    this.element?.scrollIntoView({ block: "nearest" });
  }

  // Null removes the message.
  /** @type {(problem: AnswerProblem | null) => void} */
  showProblem(problem) {
    this.problem = problem;
    const text = problem ? [el("span", { dir: "auto" }, problem.sentence)] : [];
    this.#message.replaceChildren(...text);
    this.element?.classList.toggle("wrong", problem !== null);
    for (const element of this.#described) {
      setAttribute(element, "aria-invalid", problem ? "true" : null);
    }
  }

  /** @type {(control: Control) => void} */
  #build(control) {
    const { id, help_text: text } = this.field;
    const help = linkedProse("p", text, { class: "help", id: `help-${id}` });
    const { hint: tip } = control;
    const hint = tip ? el("p", { class: "help", id: `hint-${id}` }, own(tip)) : null;
    const parts = [help, hint, control.element, this.#message];
    if (control.role) {
      this.element = this.#buildGroup(control, parts);
      this.#described = [this.element, ...control.inputs];
    } else {
      this.element = this.#buildSingle(control, parts);
      this.#described = control.inputs;
    }
    const ids = [help, hint, this.#message].flatMap((item) => item?.id ?? []);
    for (const element of this.#described) {
      element.setAttribute("aria-describedby", ids.join(" "));
    }
  }

  /** @type {(control: Control, parts: Child[]) => HTMLElement} */
  #buildSingle(control, parts) {
    const label = el("label", { for: `field-${this.field.id}` }, this.#listLabel(control));
    const top = control.isBox ? el("div", { class: "box" }, control.inputs, label) : label;
    return el("div", { class: "field" }, top, parts);
  }

  /** @type {(control: Control, parts: Child[]) => HTMLElement} */
  #buildGroup(control, parts) {
    const { field } = this;
    const isRequired = field.required && control.role === "radiogroup";
    return el(
      "fieldset",
      {
        class: "field",
        id: control.inputs.length ? null : `field-${field.id}`,
        role: control.role,
        "aria-required": isRequired ? "true" : null,
      },
      el("legend", {}, this.#listLabel(control)),
      parts,
    );
  }

  /** @type {(control: Control) => Child[]} */
  #listLabel({ role }) {
    const label = linkedProse("span", this.field.label);
    if (!this.field.required) return [label];
    const mark = el("span", { class: "mark", "aria-hidden": "true" }, "*");
    return [
      label,
      mark,
      role === "group" && el("span", { class: "unseen" }, getText("requiredMark")),
    ];
  }
}
