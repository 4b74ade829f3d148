// A field on the page: its label, help, control and the message about what is wrong.
import { typeOf } from "./controls/registry.js";
import { el, own, prose, setAttribute } from "../shared/dom.js";
import { toSentence } from "./text.js";

export class FieldView {
  // `context` has the api, `loadOptions(field)`, and `changed(view)` for every change.
  constructor(field, context) {
    this.field = field;
    this.isVisible = true;
    this.problem = "";
    const { buildControl, buildStatic, isHidden } = typeOf(field);
    if (buildControl) this.#addControl(buildControl, context);
    if (buildStatic) this.element = buildStatic(field);
    else this.element = isHidden ? null : this.#build();
    this.element?.addEventListener("input", () => context.changed(this));
  }

  #addControl(build, context) {
    this.control = build(this.field, {
      ...context,
      changed: () => context.changed(this),
      showProblem: (problem) => this.showProblem(problem),
    });
  }

  read() {
    return this.control?.read();
  }

  setVisible(isVisible) {
    this.isVisible = isVisible;
    if (this.element) this.element.hidden = !isVisible;
  }

  focus() {
    this.control.focus();
    this.element?.scrollIntoView({ block: "nearest" });
  }

  // An empty text removes the message.
  showProblem(problem) {
    this.problem = problem;
    if (!this.message) return;
    this.message.replaceChildren(...(problem ? [prose("span", toSentence(problem))] : []));
    this.element.classList.toggle("wrong", problem !== "");
    for (const element of this.#listDescribed()) {
      setAttribute(element, "aria-invalid", problem ? "true" : null);
    }
  }

  #listDescribed() {
    return this.control.role ? [this.element, ...this.control.inputs] : this.control.inputs;
  }

  #build() {
    const element = this.control.role ? this.#buildGroup() : this.#buildSingle();
    this.#describe();
    return element;
  }

  #buildSingle() {
    const { control, field } = this;
    const label = el("label", { for: `field-${field.id}` }, ...this.#listLabel());
    const top = control.isBox ? el("div", { class: "box" }, ...control.inputs, label) : label;
    return el(
      "div",
      { class: "field" },
      top,
      ...this.#listHelp(),
      control.element,
      this.#addMessage(),
    );
  }

  #buildGroup() {
    const { control, field } = this;
    const isRequired = field.required && control.role === "radiogroup";
    this.element = el(
      "fieldset",
      {
        class: "field",
        id: control.inputs.length ? null : `field-${field.id}`,
        role: control.role,
        "aria-required": isRequired ? "true" : null,
      },
      el("legend", {}, ...this.#listLabel()),
      ...this.#listHelp(),
      control.element,
      this.#addMessage(),
    );
    return this.element;
  }

  #listLabel() {
    const mark = el("span", { class: "mark", "aria-hidden": "true" }, "*");
    const spoken = this.control.role === "group"
      ? el("span", { class: "unseen" }, "(required)")
      : null;
    return [prose("span", this.field.label), ...(this.field.required ? [mark, spoken] : [])];
  }

  #listHelp() {
    const { id, help_text: help } = this.field;
    this.help = prose("p", help, { class: "help", id: `help-${id}` });
    const { hint } = this.control;
    this.hint = hint ? el("p", { class: "help", id: `hint-${id}` }, own(hint)) : null;
    return [this.help, this.hint];
  }

  #addMessage() {
    this.message = el("p", { class: "problem", id: `problem-${this.field.id}` });
    return this.message;
  }

  #describe() {
    const ids = [this.help, this.hint, this.message].filter(Boolean).map(({ id }) => id);
    for (const element of this.#listDescribed()) {
      element.setAttribute("aria-describedby", ids.join(" "));
    }
  }
}
