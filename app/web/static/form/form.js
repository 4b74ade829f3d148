// The form as a page: shows its fields, checks the answers and sends them.
import { evaluate } from "./answers.js";
import { ApiProblem } from "./api.js";
import { isUntouched } from "./checks.js";
import { button, el } from "../shared/dom.js";
import { Draft } from "./drafts.js";
import { FieldView } from "./field.js";
import { isFramed, moveTo } from "./frame.js";
import { toPlainText } from "./links.js";
import { OptionLoader } from "./options.js";
import { showOutcome } from "./outcome.js";
import { own } from "./own.js";
import { Pages } from "./pages.js";
import { selectValues } from "./prefill.js";
import { listServerProblems } from "./problems.js";
import { Sending } from "./sending.js";
import { buildSummary } from "./summary.js";
import { getText, TEXTS } from "./texts.js";

const CLOSED_CODES = new Set(["form_closed", "form_not_published", "form_not_found"]);

export class FormView {
  #startedAt = new Date().toISOString();
  #isSending = false;
  top = el("div", { class: "top" });
  notice = el("div", { class: "notice-line", role: "alert" });
  trap = el("input", { name: "contact_fax", tabindex: "-1", autocomplete: "off" });

  /** @param {PageContext} context */
  constructor({ form, api, address, place }) {
    this.form = form;
    this.api = api;
    this.address = address;
    this.place = place;
    this.sending = new Sending(api, "/submit");
    const options = new OptionLoader(api);
    /** @type {FieldContext} */
    const context = {
      api,
      changed: (view) => this.#changed(view),
      loadOptions: (field) => options.load(field),
    };
    this.views = form.fields.map((field) => new FieldView(field, context));
    this.byId = new Map(this.views.map((view) => [view.field.id, view]));
    this.pages = new Pages(this.views, () => this.#showPage());
    this.draft = new Draft(this);
    // A double click must not send the page that follows.
    this.submitButton = el("button", {
      type: "submit",
      on: { click: (event) => event.detail > 1 && event.preventDefault() },
    });
    this.element = this.#build();
    place.replaceChildren(this.top, this.element);
    this.#write(selectValues(form.fields, address.values));
  }

  #build() {
    return el(
      "form",
      {
        novalidate: true,
        on: { submit: (event) => this.#submit(event), focusout: (event) => this.#leave(event) },
      },
      this.pages.element,
      this.form.fields.some((field) => field.required)
        ? el("p", { class: "legend" }, own(getText("requiredLegend")))
        : null,
      ...this.views.map((view) => view.element),
      // People do not see it; programs that fill in everything do.
      el(
        "div",
        { class: "trap", "aria-hidden": "true" },
        el("label", {}, getText("leaveEmpty"), this.trap),
      ),
      this.notice,
      el("div", { class: "actions" }, this.pages.backButton, this.submitButton, this.draft.button),
      this.draft.element,
    );
  }

  // Restores answers, such as those of a draft.
  async restore() {
    const answers = await this.draft.load();
    this.#write(answers);
    if (Object.keys(answers).length) this.#resume(answers);
  }

  // Opens the page where a visitor stopped.
  /** @type {(answers: Answers) => void} */
  #resume(answers) {
    const { problems } = this.#evaluate();
    const answered = this.views.filter(({ field }) => field.id in answers);
    const wrong = this.views.filter(({ field }) => problems.has(field.id));
    this.pages.resume(this.address.step, answered, wrong);
  }

  #showPage() {
    this.top.replaceChildren();
    this.notice.replaceChildren();
    this.#nameButton();
  }

  #nameButton() {
    const { submit_button_text: submitText } = this.form.settings;
    const text = this.pages.isLast ? translateDefault(submitText) : getText("next");
    this.submitButton.replaceChildren(el("span", { dir: "auto" }, text));
  }

  /** @type {(values: Answers) => void} */
  #write(values) {
    for (const [id, value] of Object.entries(values)) this.byId.get(id)?.control?.write(value);
    this.#changed();
  }

  // Answers of all fields, also of those that are not shown.
  #readAll() {
    const answers = this.views.map((view) => [view.field.id, view.read()]);
    return Object.fromEntries(answers.filter(([, value]) => value !== undefined));
  }

  readVisible() {
    return Object.fromEntries(
      Object.entries(this.#readAll()).filter(([id]) => this.byId.get(id)?.isVisible),
    );
  }

  /** @type {(options?: { isComplete?: boolean }) => ReturnType<typeof evaluate>} */
  #evaluate(options) {
    const state = evaluate(this.form.fields, this.#readAll(), options);
    for (const view of this.views) {
      const problem = state.visible.has(view.field.id) && view.control?.findProblem?.();
      if (problem) state.problems.set(view.field.id, problem);
    }
    return state;
  }

  /** @type {(view?: FieldView | null) => void} */
  #changed(view = null) {
    if (!this.views) return;
    const state = this.#evaluate();
    for (const item of this.views) item.setVisible(state.visible.has(item.field.id));
    this.#updatePages();
    if (view?.problem) view.showProblem(state.problems.get(view.field.id) ?? null);
  }

  #updatePages() {
    const before = this.pages.isLast;
    this.pages.update();
    if (!this.submitButton.firstChild || before !== this.pages.isLast) this.#nameButton();
  }

  // Says what is wrong with an answer when the visitor leaves its field.
  /** @type {(event: FocusEvent) => void} */
  #leave({ target, relatedTarget }) {
    const view = this.views.find(({ element }) => isWithin(target, element));
    if (!view?.control || isWithin(relatedTarget, view.element)) return;
    if (isUntouched(view.field, view.read())) return;
    const problem = this.#evaluate().problems.get(view.field.id);
    if (problem) view.showProblem(problem);
  }

  // Returns true when nothing is wrong; otherwise shows it and moves the focus there.
  /** @type {(options?: { isComplete?: boolean }) => boolean} */
  check(options) {
    const { problems } = this.#evaluate(options);
    this.showProblems(problems);
    return problems.size === 0;
  }

  // Turns to the next page when nothing is wrong on this one.
  #turnPage() {
    const { problems } = this.#evaluate();
    const wrong = [...problems].filter(([id]) => {
      const view = this.byId.get(id);
      return view && this.pages.has(view);
    });
    this.showProblems(new Map(wrong));
    if (!wrong.length) this.pages.next();
  }

  // `problems` has what is wrong, by the ids of fields.
  /** @type {(problems: Map<string, AnswerProblem>) => void} */
  showProblems(problems) {
    for (const view of this.views) {
      view.control && view.showProblem(problems.get(view.field.id) ?? null);
    }
    const items = [...problems].map(([id, problem]) => this.#describe(id, problem));
    this.top.replaceChildren();
    if (!items.length) return;
    const sorted = this.#sort(items);
    if (sorted[0].view) this.pages.turnTo(sorted[0].view);
    this.#nameButton();
    const summary = buildSummary(sorted, (view) => this.#focus(view));
    this.top.append(summary);
    moveTo(summary);
  }

  /** @type {(view: FieldView) => void} */
  #focus(view) {
    this.pages.turnTo(view);
    this.#nameButton();
    view.focus();
  }

  /** @type {(id: string, problem: AnswerProblem) => FieldProblem} */
  #describe(id, problem) {
    const view = this.byId.get(id);
    const isReachable = view?.isVisible && view.element && view.control;
    return {
      name: view ? toPlainText(view.field.label) : id,
      problem,
      view: isReachable ? view : undefined,
    };
  }

  /** @type {(items: FieldProblem[]) => FieldProblem[]} */
  #sort(items) {
    const position = (
      /** @type {FieldProblem} */ { view },
    ) => (view ? this.views.indexOf(view) : this.views.length);
    return items.sort((one, two) => position(one) - position(two));
  }

  /** @type {(event: Event) => Promise<void>} */
  async #submit(event) {
    event.preventDefault();
    if (this.#isSending) return;
    this.notice.replaceChildren();
    if (!this.pages.isLast) {
      this.#turnPage();
      return;
    }
    if (!this.check()) return;
    this.#setSending(true);
    try {
      this.#finish(await this.sending.send(this.#buildBody()));
    } catch (problem) {
      this.#refuse(problem);
    } finally {
      this.#setSending(false);
    }
  }

  #buildBody() {
    return {
      data: this.readVisible(),
      version: this.form.version,
      started_at: this.#startedAt,
      metadata: isFramed ? { source: "embed" } : {},
      honeypot: this.trap.value,
      draft_token: this.draft.token,
    };
  }

  // The button keeps the focus, which a disabled one would lose.
  /** @type {(isSending: boolean) => void} */
  #setSending(isSending) {
    this.#isSending = isSending;
    this.element.setAttribute("aria-busy", String(isSending));
    this.submitButton.setAttribute("aria-disabled", String(isSending));
  }

  /** @type {(answer: { data: { submission_id: string }; message: string }) => void} */
  #finish({ data, message }) {
    document.documentElement.classList.add("finished");
    showOutcome(this.place, {
      message: translateDefault(message),
      submissionId: data.submission_id,
      redirectUrl: this.form.settings.redirect_url,
      isEmbedded: this.address.isEmbedded,
    });
  }

  // Shows a refusal of the server; anything else is an error of this page.
  /** @type {(problem: unknown) => void} */
  #refuse(problem) {
    if (!(problem instanceof ApiProblem)) throw problem;
    if (problem.errors.length) {
      this.showProblems(listServerProblems(problem.errors));
      return;
    }
    this.showNotice(problem, () => this.element.requestSubmit());
  }

  // Without `retry`, trying again would not help.
  /** @type {(problem: ApiProblem, retry: (() => void) | null) => void} */
  showNotice(problem, retry) {
    const text = problem.isLost
      ? getText("answersKept", { message: problem.message })
      : problem.message;
    const canRetry = retry && !CLOSED_CODES.has(problem.code);
    this.notice.replaceChildren(
      el("p", { dir: "auto" }, text),
      ...(canRetry ? [button(getText("tryAgain"), retry, { class: "quiet" })] : []),
    );
  }
}

// A form without texts of its own has those of the server, which are English.
/** @type {(text: string) => string} */
function translateDefault(text) {
  if (text === TEXTS.submit) return getText("submit");
  return text === TEXTS.received ? getText("received") : text;
}

/** @type {(target: EventTarget | null, element: HTMLElement | null) => boolean} */
function isWithin(target, element) {
  return target instanceof Node && Boolean(element?.contains(target));
}
