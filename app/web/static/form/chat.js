// The form as a chat: it asks one question after the other.
import { ApiProblem } from "./api.js";
import { ChatLog } from "./chat-log.js";
import { typeOf } from "./controls/registry.js";
import { Conversation } from "./conversation.js";
import { button, el, icon } from "../shared/dom.js";
import { OptionLoader } from "./options.js";
import { showOutcome } from "./outcome.js";
import { selectValues } from "./prefill.js";
import { buildReplies } from "./replies.js";
import { getText } from "./texts.js";

// The conversation went on without this page: it shows what the server has.
const OUTDATED_CODES = new Set(["message_conflict", "invalid_state"]);

export class ChatView {
  #isBusy = false;
  // Messages that the server has stored, and one of which this page does not know it.
  #count = 0;
  /** @type {LogEntry | null} */
  #unsent = null;
  bar = el("progress", { max: 1, value: 0, "aria-label": getText("progress") });
  count = el("span", {});
  log = new ChatLog();
  replies = el("div", { class: "replies" });
  failure = el("div", { class: "notice-line", role: "alert" });
  input = el("textarea", {
    rows: 1,
    dir: "auto",
    placeholder: getText("typeAnswer"),
    "aria-label": getText("yourAnswer"),
    on: { keydown: (event) => this.#press(event), input: () => this.#grow() },
  });
  composer = el(
    "form",
    { class: "composer", on: { submit: (event) => this.#submit(event) } },
    this.input,
    el("button", { class: "send", "aria-label": getText("send") }, icon("send")),
  );
  bottom = el("div", { class: "bottom" });

  /** @param {PageContext} context */
  constructor({ form, api, address, place }) {
    this.form = form;
    this.api = api;
    this.address = address;
    this.place = place;
    this.conversation = new Conversation(api, form.slug);
    this.fields = new Map(form.fields.map((field) => [field.id, field]));
    this.options = new OptionLoader(api);
    this.#showEmpty();
    place.replaceChildren(
      el("div", { class: "progress" }, this.bar, this.count),
      this.log.element,
      this.log.spoken,
      this.bottom,
    );
  }

  // The chat before its first question.
  #showEmpty() {
    this.bar.max = 1;
    this.bar.value = 0;
    this.count.textContent = "";
    this.log.replace([]);
    this.log.speak("");
    this.failure.replaceChildren();
    this.replies.replaceChildren();
    this.input.value = "";
    this.#grow();
    this.bottom.replaceChildren(this.failure, this.replies, this.composer, this.#buildLinks());
  }

  #buildLinks() {
    const asForm = new URL(window.location.href);
    asForm.searchParams.set("mode", "form");
    return el(
      "p",
      { class: "links" },
      el("a", { href: asForm.href }, getText("showAll")),
      button(getText("startOver"), () => this.#startOver(), { class: "link" }),
    );
  }

  async start() {
    this.#setBusy(true);
    try {
      const { form, address } = this;
      const hidden = form.fields.filter((field) => typeOf(field).isHidden);
      this.#showState(await this.conversation.open(selectValues(hidden, address.values)));
    } catch (problem) {
      this.#fail(problem, () => this.start());
    } finally {
      this.#setBusy(false);
    }
  }

  #startOver() {
    if (this.#isBusy) return;
    this.conversation.forget();
    this.#unsent = null;
    document.documentElement.classList.remove("finished");
    this.#showEmpty();
    this.start();
  }

  /** @type {(state: ConversationState) => void} */
  #showState({ view, messages }) {
    this.#count = messages.length;
    this.log.replace(messages);
    this.#showProgress(view);
    if (view.status === "completed") this.#finish();
    else this.#ask(messages[messages.length - 1]);
  }

  /** @type {(progress: { fields_completed: number; fields_total: number }) => void} */
  #showProgress({ fields_completed: completed, fields_total: total }) {
    this.bar.max = Math.max(total, 1);
    this.bar.value = completed;
    this.count.textContent = getText("answered", { completed, total });
  }

  // Offers what answers the question of a message.
  /** @type {(question: { content: string; field_id?: string | null }) => void} */
  #ask({ content, field_id: id }) {
    const field = this.fields.get(id ?? "");
    this.log.speak(content);
    this.input.inputMode = (field && typeOf(field).inputMode) ?? "text";
    /** @type {ReplyContext} */
    const context = { api: this.api, loadOptions: (item) => this.options.load(item) };
    /** @type {Say} */
    const say = (text, shown) => void this.#say(text, shown);
    this.replies.replaceChildren(...(field ? buildReplies(field, context, say) : []));
    this.log.scroll();
  }

  /** @type {(event: KeyboardEvent) => void} */
  #press(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.composer.requestSubmit();
  }

  #grow() {
    this.input.rows = Math.min(this.input.value.split("\n").length, 5);
  }

  /** @type {(event: Event) => void} */
  #submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text || this.#isBusy) return;
    this.input.value = "";
    this.#grow();
    this.#say(text, text);
  }

  /** @type {(content: string, shown: string) => Promise<void>} */
  async #say(content, shown) {
    if (this.#isBusy) return;
    this.#setBusy(true);
    this.failure.replaceChildren();
    this.replies.replaceChildren();
    try {
      if (this.#unsent && await this.#settle()) {
        this.#giveBack(shown);
        return;
      }
      this.#unsent = this.log.add("user", shown);
      await this.#receive(content);
      this.#unsent = null;
    } catch (problem) {
      const isOutdated = problem instanceof ApiProblem && OUTDATED_CODES.has(problem.code);
      if (isOutdated) await this.#reload();
      else this.#fail(problem, () => this.#retry(content, shown));
    } finally {
      this.#setBusy(false);
    }
    this.#focusNext();
  }

  /** @type {(content: string) => Promise<void>} */
  async #receive(content) {
    const message = this.log.add("assistant", "");
    message.setTyping(true);
    let text = "";
    /** @type {ReplyData | null} */
    let progress = null;
    try {
      for await (const { event, data } of this.conversation.send(content)) {
        if (event === "content_delta") message.show(text += data.delta);
        else if (event === "form_progress") progress = data;
      }
      if (!progress) throw new ApiProblem(0, { message: getText("connectionLost") });
    } catch (problem) {
      message.remove();
      throw problem;
    }
    message.setTyping(false);
    this.#count += 2;
    this.#showProgress(progress);
    if (progress.form_completed) this.#finish(progress.submission_id, text);
    else this.#ask({ content: text, field_id: progress.field_id });
  }

  /** @type {(content: string, shown: string) => Promise<void>} */
  async #retry(content, shown) {
    if (this.#isBusy) return;
    this.#setBusy(true);
    this.failure.replaceChildren();
    let isStored = false;
    try {
      isStored = await this.#settle();
    } catch (problem) {
      this.#fail(problem, () => this.#retry(content, shown));
      return;
    } finally {
      this.#setBusy(false);
    }
    if (!isStored) await this.#say(content, shown);
  }

  // What was typed was not meant for the question that is shown now.
  /** @type {(text: string) => void} */
  #giveBack(text) {
    this.input.value = [text, this.input.value].filter(Boolean).join("\n");
    this.#grow();
    this.input.focus({ preventScroll: true });
  }

  // A message may have arrived although its reply did not. Returns true when it did.
  async #settle() {
    const state = await this.conversation.load();
    const isStored = state.messages.length > this.#count;
    if (isStored) this.#showState(state);
    else this.#unsent?.remove();
    this.#unsent = null;
    return isStored;
  }

  async #reload() {
    try {
      this.#showState(await this.conversation.load());
    } catch (problem) {
      this.#fail(problem, () => this.#reload());
    }
  }

  /** @type {(problem: unknown, retry: () => void) => void} */
  #fail(problem, retry) {
    if (!(problem instanceof ApiProblem)) throw problem;
    this.failure.replaceChildren(
      el("p", { dir: "auto" }, problem.message),
      button(getText("tryAgain"), retry, { class: "quiet" }),
    );
  }

  /** @type {(isBusy: boolean) => void} */
  #setBusy(isBusy) {
    this.#isBusy = isBusy;
    this.composer.setAttribute("aria-busy", String(isBusy));
  }

  // A button that was pressed is gone. On a phone, the keyboard would cover the question.
  #focusNext() {
    if (document.activeElement !== document.body) return;
    /** @type {HTMLElement | null} */
    const next = this.replies.querySelector("button, input, summary");
    if (next) next.focus({ preventScroll: true });
    else if (!window.matchMedia("(pointer: coarse)").matches) {
      this.input.focus({ preventScroll: true });
    }
  }

  // With a submission, it has just been made.
  /** @type {(submissionId?: string | null, text?: string) => void} */
  #finish(submissionId = null, text = "") {
    this.log.speak(text);
    this.bar.value = this.bar.max;
    document.documentElement.classList.add("finished");
    const place = el("div", {});
    this.bottom.replaceChildren(
      place,
      button(getText("answerAgain"), () => this.#startOver(), { class: "link" }),
    );
    showOutcome(place, {
      message: getText("answersSent"),
      submissionId,
      redirectUrl: submissionId ? this.form.settings.redirect_url : null,
      isEmbedded: this.address.isEmbedded,
    });
    this.log.scroll();
  }
}
