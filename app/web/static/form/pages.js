// The pages of a form: page breaks divide it, and a visitor sees one page at a time. Each page that
// was turned is an entry of the browser's history.
import { button, el } from "../shared/dom.js";
import { typeOf } from "./controls/registry.js";
import { moveTo } from "./frame.js";
import { linkedProse } from "./links.js";
import { listPages } from "./page-breaks.js";
import { getText } from "./texts.js";

export class Pages {
  /** @type {FormPage[]} */
  #pages = [];
  #current = "";
  // The pages that lead to this one, as the history of the browser has them.
  /** @type {string[]} */
  #trail = [];
  bar = el("progress", { "aria-hidden": "true" });
  heading = el("h2", { tabindex: "-1" });
  help = el("div", {});
  element = el("div", { class: "steps" }, this.bar, this.heading, this.help);
  backButton = button(getText("back"), () => this.#back(), { class: "quiet" });

  /** @param {FieldView[]} views @param {() => void} turned */
  constructor(views, turned) {
    this.views = views;
    this.turned = turned;
    this.isDivided = views.some(({ field }) => typeOf(field).startsPage);
    if (this.isDivided) addEventListener("popstate", ({ state }) => this.#follow(state));
  }

  get #index() {
    return Math.max(this.#pages.findIndex(({ id }) => id === this.#current), 0);
  }

  get id() {
    return this.#current;
  }

  get isLast() {
    return this.#index === this.#pages.length - 1;
  }

  // Shows the fields of the current page, once it is known which fields the form shows.
  update() {
    const byId = new Map(this.views.map((view) => [view.field.id, view]));
    const before = this.#pages.slice(0, this.#index + 1);
    this.#pages = listPages(
      this.views.map(({ field }) => field),
      ({ id }) => Boolean(byId.get(id)?.isShown),
    );
    if (!this.#pages.some(({ id }) => id === this.#current)) {
      // A page that is gone is replaced by the one before it.
      const left = before.reverse().find(({ id }) => this.#pages.some((page) => page.id === id));
      this.#current = (left ?? this.#pages[0]).id;
    }
    this.#show();
  }

  #show() {
    const index = this.#index;
    const { start, fields } = this.#pages[index];
    const members = new Set([start, ...fields]);
    for (const view of this.views) view.setOnPage(members.has(view.field));
    const [step, total] = [index + 1, this.#pages.length];
    this.element.hidden = total === 1 && !start;
    this.bar.hidden = total === 1;
    this.backButton.hidden = index === 0;
    this.bar.max = total;
    this.bar.value = step;
    const title = linkedProse("span", start?.label, { class: "title" });
    const place = total > 1 && el("span", { class: "step" }, getText("step", { step, total }));
    this.heading.replaceChildren(place || "", " ", title ?? "");
    this.help.replaceChildren(linkedProse("p", start?.help_text, { class: "help" }) ?? "");
  }

  /** @type {(view: FieldView) => boolean} */
  has(view) {
    return this.#pages[this.#index].fields.includes(view.field);
  }

  // Turns to the page of a field, without moving the focus.
  /** @type {(view: FieldView) => void} */
  turnTo(view) {
    const page = this.#pages.find(({ fields }) => fields.includes(view.field));
    if (page && page.id !== this.#current) this.#open(page.id);
  }

  next() {
    this.#turn(this.#pages[this.#index + 1].id);
  }

  // Opens a page where a visitor goes on: the page with this id, or else that of the last of
  // `answered`, but none after the page of the first of `wrong`.
  /** @type {(id: string | null, answered: FieldView[], wrong: FieldView[]) => void} */
  resume(id, answered, wrong) {
    const find = (/** @type {FieldView | undefined} */ view) =>
      this.#pages.findIndex(({ fields }) => view && fields.includes(view.field));
    const wanted = this.#pages.findIndex((page) => page.id === id);
    const reached = wanted >= 0 ? wanted : Math.max(find(answered.at(-1)), 0);
    const first = find(wrong[0]);
    this.#current = this.#pages[first >= 0 ? Math.min(first, reached) : reached].id;
    history.replaceState({ page: this.#current, trail: [] }, "");
    this.#show();
    this.turned();
  }

  #back() {
    const { id } = this.#pages[this.#index - 1];
    if (this.#trail.at(-1) === id) history.back();
    else this.#turn(id);
  }

  /** @type {(id: string) => void} */
  #turn(id) {
    this.#open(id);
    this.turned();
    moveTo(this.heading);
  }

  /** @type {(id: string) => void} */
  #open(id) {
    this.#trail = [...this.#trail, this.#current];
    this.#current = id;
    history.pushState({ page: id, trail: this.#trail }, "");
    this.#show();
  }

  // The visitor has gone back or forward.
  /** @type {(state: { page?: string; trail?: string[] } | null) => void} */
  #follow(state) {
    if (!this.element.isConnected) return;
    const id = state?.page ?? "";
    this.#trail = state?.trail ?? [];
    const isKnown = this.#pages.some((page) => page.id === id);
    this.#current = isKnown ? id : this.#pages[0].id;
    this.#show();
    this.turned();
    moveTo(this.heading);
  }
}
