// Saves the answers for later. Who has the link can go on with them, so the page says so.
import { setDraft } from "./address.js";
import { ApiProblem } from "./api.js";
import { hasValue } from "./checks.js";
import { button, el } from "../shared/dom.js";
import { moveTo } from "./frame.js";
import { ownDirection } from "./own.js";
import { listServerProblems } from "./problems.js";
import { Sending } from "./sending.js";
import { formatMoment, getText } from "./texts.js";

// A shorter form is filled in sooner than its draft is found again.
const MIN_FIELDS = 5;

export class Draft {
  /** @param {FormView} view */
  constructor(view) {
    this.view = view;
    this.token = view.address.draft;
    this.sending = new Sending(view.api, "/drafts");
    this.element = el("div", { class: "draft", role: "status" });
    const isLong = view.form.fields.filter(hasValue).length >= MIN_FIELDS;
    this.button = isLong || this.token
      ? button(getText("saveDraft"), () => this.#save(), { class: "link" })
      : null;
  }

  // Returns the answers of the draft that the address names.
  /** @type {() => Promise<Answers>} */
  async load() {
    if (!this.token) return {};
    try {
      /** @type {{ data: { data: Answers } }} */
      const { data } = await this.view.api.get("/drafts", { "x-draft-token": this.token });
      this.element.replaceChildren(getText("draftRestored"));
      return data.data;
    } catch (problem) {
      if (!(problem instanceof ApiProblem)) throw problem;
      if (!problem.isLost) this.token = null;
      this.view.showNotice(problem, problem.isLost ? () => this.view.restore() : null);
      return {};
    }
  }

  async #save() {
    const { view } = this;
    if (!view.check({ isComplete: false })) return;
    this.element.replaceChildren(getText("saving"));
    const body = { data: view.readVisible(), version: view.form.version, token: this.token };
    try {
      /** @type {{ data: SavedDraft }} */
      const { data } = await this.sending.send(body);
      this.token = data.token;
      const step = view.pages.id;
      setDraft(data.token, step);
      this.#show({ ...data, url: step ? `${data.url}&step=${step}` : data.url });
    } catch (problem) {
      this.element.replaceChildren();
      this.#refuse(problem);
    }
  }

  /** @type {(problem: unknown) => void} */
  #refuse(problem) {
    if (!(problem instanceof ApiProblem)) throw problem;
    if (problem.errors.length) {
      this.view.showProblems(listServerProblems(problem.errors));
    } else {
      // A draft that has expired is saved as a new one.
      if (problem.code === "draft_not_found") this.token = null;
      this.view.showNotice(problem, () => this.#save());
    }
  }

  /** @type {(draft: SavedDraft) => void} */
  #show({ url, expires_at: expiresAt }) {
    const link = el("input", {
      type: "text",
      readonly: true,
      value: url,
      "aria-label": getText("draftLinkLabel"),
      dir: "ltr",
    });
    link.addEventListener("focus", () => link.select());
    const copied = el("span", { class: "copied", role: "status" });
    const copy = button(getText("copyLink"), () => copyText(link, copied), { class: "quiet" });
    const until = formatMoment(new Date(expiresAt), { dateStyle: "long" });
    this.element.replaceChildren(
      el(
        "p",
        { dir: ownDirection() },
        el("strong", {}, getText("saved")),
        ` ${getText("draftLink", { date: until })}`,
      ),
      el("div", { class: "row" }, link, copy, copied),
    );
    moveTo(link, "nearest");
  }
}

/** @type {(input: HTMLInputElement, status: HTMLElement) => Promise<void>} */
async function copyText(input, status) {
  input.select();
  try {
    await navigator.clipboard.writeText(input.value);
  } catch {
    // In a frame or without https, only this way works.
    document.execCommand("copy");
  }
  status.textContent = getText("copied");
}
