// The conversation: loads it, shows its messages, and asks for answers.
import { button, el, prose } from "../shared/dom.js";
import { Composer } from "./composer.js";
import { Log } from "./log.js";
import { MessageView } from "./message.js";
import { Notice } from "./notice.js";
import { ChatError } from "./session.js";
import { StoredList } from "./storage.js";
import { fill } from "./texts.js";

const MAX_TITLE = 120;
// Voice and files are loaded only where the agent allows them.
const loadFiles = () => import("./attachments.js");

export class Chat {
  /** @type {AbortController | null} */
  running = null;
  /** @type {Voice | null} */
  voice = null;
  /** @type {Player | null} */
  player = null;
  /** @type {Attachments | null} */
  attachments = null;
  isLoaded = false;
  /** @type {Promise<void> | null} */
  loading = null;
  // The last question and its answer.
  /** @type {Exchange | null} */
  last = null;
  // The question that waits for the connection.
  /** @type {Exchange | null} */
  held = null;
  suggestions = el("div", { class: "suggestions", hidden: true });
  // Whether a customer has other conversations.
  hasOthers = false;
  listeners = new AbortController();

  /** @param {ChatOptions} context */
  constructor({ session, storage, shadow, texts, options, announcer, onAgent, onReply }) {
    this.session = session;
    this.shadow = shadow;
    this.texts = texts;
    this.options = options;
    this.announcer = announcer;
    this.onAgent = onAgent;
    this.onReply = onReply;
    /** @type {Agent} */
    this.agent = { name: options.title || "" };
    this.conversations = new StoredList(storage, "conversations");
    this.stopped = new StoredList(storage, "stopped");
    this.notice = new Notice(texts);
    this.log = new Log(texts);
    this.composer = new Composer({
      texts,
      onSend: () => this.submit(),
      onAct: () => this.act(),
    });
    this.element = el(
      "div",
      { class: "chat", tabindex: -1 },
      this.log.element,
      this.suggestions,
      this.notice.element,
      this.composer.element,
      prose("p", this.buildSmallPrint(), { class: "small-print" }),
    );
    const { signal } = this.listeners;
    addEventListener("online", () => this.goOn(), { signal });
    addEventListener("offline", () => this.notice.show(new ChatError("offline")), { signal });
  }

  buildSmallPrint() {
    const { aiNotice, note } = this.options;
    return note || (aiNotice === "off" ? "" : this.texts.aiNotice);
  }

  destroy() {
    this.stop();
    this.listeners.abort();
  }

  // Loading

  start() {
    if (!this.isLoaded) this.load();
    this.log.showEnd();
  }

  /** @type {() => Promise<void>} */
  load() {
    const loading = this.loading ??= this.loadOnce().finally(() => {
      if (this.loading === loading) this.loading = null;
    });
    return loading;
  }

  // Shows nothing of a conversation that was left meanwhile.
  async loadOnce() {
    const { generation } = this.session;
    const isLeft = () => generation !== this.session.generation;
    this.element.classList.remove("refused");
    this.log.showLoading();
    // What answers need is loaded meanwhile; without it, they are shown all the same.
    this.loadAnswerParts().catch(() => {});
    try {
      const state = await this.session.load();
      if (isLeft()) return;
      this.isLoaded = true;
      this.notice.clear();
      this.showState(state);
    } catch (error) {
      if (isLeft()) return;
      this.notice.show(error, () => this.load());
      if (this.notice.isFinal) this.showRefusal();
    } finally {
      if (!isLeft()) this.log.hideLoading();
    }
  }

  // Leaves nothing but the reason why there is no chat.
  showRefusal() {
    const hadFocus = this.shadow.activeElement === this.composer.input;
    this.element.classList.add("refused");
    if (hadFocus) this.element.focus();
  }

  async loadAnswerParts() {
    const [{ Turn }, answer] = await Promise.all([import("./turn.js"), import("./answer.js")]);
    await answer.loadStyles(this.shadow);
    return { Turn, finishAnswer: answer.finishAnswer };
  }

  /** @type {(state: SessionState) => void} */
  showState({ agent, messages, visitor_name: visitor, has_earlier: hasEarlier = false }) {
    this.agent = agent;
    this.hasOthers = hasEarlier;
    this.last = null;
    this.held = null;
    this.log.clear();
    this.greet(visitor);
    for (const message of messages) this.showMessage(message);
    const first = messages.find(({ role }) => role === "user");
    if (first && !this.conversations.has(this.session.id)) this.remember(first.content);
    this.showSuggestions(messages.length === 0);
    if (agent.allow_voice) import("./voice.js").then((voice) => voice.addVoice(this));
    if (agent.allow_attachments) loadFiles().then((files) => files.addAttachments(this));
    else this.attachments?.forbid();
    this.log.showEnd();
    this.onAgent(agent);
  }

  /** @type {(visitor: string | null | undefined) => void} */
  greet(visitor) {
    const { greeting } = this.texts;
    const text = greeting.replaceAll("{name}", visitor ?? "").replace(/\s+([!,.])/g, "$1");
    this.addMessage("assistant", text, { isGreeting: true });
  }

  /** @type {(isNew: boolean) => void} */
  showSuggestions(isNew) {
    const questions = (this.options.suggestions ?? "")
      .split("|")
      .map((text) => text.trim())
      .filter(Boolean);
    this.suggestions.replaceChildren(
      ...questions.map((text) =>
        button(text, () => this.ask(text), { class: "suggestion", dir: "auto" })
      ),
    );
    this.suggestions.hidden = !isNew || !questions.length;
  }

  // The connection is back.
  async goOn() {
    if (this.notice.kind === "offline") this.notice.clear();
    const { held } = this;
    if (!this.isLoaded && !this.element.closest("[hidden]")) await this.load();
    if (!held || held !== this.held || !this.isLoaded || this.running) return;
    this.held = null;
    await this.answer(held);
  }

  /** @type {(userToken: string | null) => Promise<void>} */
  async identify(userToken) {
    this.leave();
    this.session.identify(userToken);
    this.log.clear();
    this.isLoaded = false;
    if (!this.element.closest("[hidden]")) await this.load();
  }

  // Begins a new conversation.
  restart() {
    this.leave();
    this.session.choose();
    this.showState({ agent: this.agent, messages: [], has_earlier: true });
    this.composer.focus();
  }

  // Keeps the conversation reachable. The server lists those of a customer.
  /** @type {(title: string) => void} */
  remember(title) {
    if (this.session.isAnonymous) {
      this.conversations.add(this.session.id, title.slice(0, MAX_TITLE));
    }
  }

  get hasEarlier() {
    return this.session.isAnonymous ? this.listEarlier().length > 0 : this.hasOthers;
  }

  // The other conversations of this browser.
  listEarlier() {
    const current = this.session.currentId;
    return this.conversations.list().filter((item) => item.id !== current);
  }

  // Comes before every choice of another conversation: nothing of this one goes into that.
  leave() {
    this.stop();
    if (this.running) this.endTurn(this.running);
    this.silence();
    this.loading = this.held = this.last = null;
    this.log.hideLoading();
    this.suggestions.hidden = true;
    this.attachments?.clear();
    this.notice.clear();
  }

  // Messages

  /** @type {(role: Role, text: string, details?: { at?: string; isGreeting?: boolean }) => MessageView} */
  addMessage(role, text, { at, isGreeting = false } = {}) {
    const view = new MessageView({ role, texts: this.texts, name: this.agent.name, isGreeting });
    view.setText(text);
    if (!isGreeting) view.setTime(at ? new Date(at) : new Date(), this.options.lang);
    this.log.add(view.element);
    return view;
  }

  // Shows a message of the past.
  /** @type {(message: ChatMessage) => void} */
  showMessage(message) {
    const { id, role, content, created_at: at, status, sources, feedback } = message;
    const files = message.attachments ?? [];
    const view = this.addMessage(role, content, { at });
    view.id = id;
    if (role === "user") {
      this.last = { text: content, question: view, answer: null, files };
      this.showFiles(view, files);
      return;
    }
    if (this.last) this.last.answer = view;
    this.finish(view, { status, sources, feedback });
  }

  // Adds what belongs to an answer that is over.
  /** @type {(view: MessageView, outcome: Outcome) => Promise<void>} */
  async finish(view, outcome) {
    const { finishAnswer } = await this.loadAnswerParts();
    finishAnswer(this, view, outcome);
  }

  // Asking

  act() {
    if (this.running) this.stop();
    else if (this.voice?.recorder) this.voice.toggle();
    else this.composer.element.requestSubmit();
  }

  async submit() {
    const { text } = this.composer;
    const { generation } = this.session;
    if (this.running || this.held) return;
    // What was said before comes first; until then the message stays in the field.
    if (!this.isLoaded) await this.load();
    // Files that are on their way go with the message.
    if (!this.isLoaded || (await this.attachments?.areReady()) === false) return;
    if (generation !== this.session.generation || this.running || this.held) return;
    if (this.composer.text !== text || !this.composer.isFilled) return;
    this.composer.clear();
    this.ask(text || this.texts.filesOnly, this.attachments?.take());
  }

  stop() {
    this.running?.abort();
  }

  /** @type {(text: string, files?: Attachment[]) => Promise<void>} */
  async ask(text, files = []) {
    if (this.running || this.held) return;
    this.suggestions.hidden = true;
    const question = this.addMessage("user", text);
    this.showFiles(question, files);
    await this.answer({ text, question, answer: null, files });
  }

  // Asks the last question again; the new answer takes the place of the old one.
  async repeat() {
    if (!this.last || this.running || this.held) return;
    this.log.box.focus({ preventScroll: true });
    await this.answer(this.last);
  }

  /** @type {(exchange: Exchange) => Promise<void>} */
  async answer(exchange) {
    this.last?.answer?.removeRepeaters();
    this.last = exchange;
    exchange.question.clearNote();
    this.log.follow(exchange.question.element);
    if (!navigator.onLine) {
      this.hold(exchange);
      return;
    }
    const controller = this.beginTurn();
    this.showTyping();
    try {
      const { Turn } = await this.loadAnswerParts();
      await new Turn(this, exchange, controller.signal).run();
    } catch (error) {
      if (!controller.signal.aborted) this.refuse(error, exchange);
    } finally {
      this.endTurn(controller);
    }
  }

  // Keeps a question until the connection is back.
  /** @type {(exchange: Exchange) => void} */
  hold(exchange) {
    this.held = exchange;
    exchange.question.setNote(this.texts.held);
    const error = new ChatError("offline");
    this.notice.show(error);
    this.announcer.say(this.texts.offline);
  }

  // Says why a question was not accepted.
  /** @type {(error: unknown, exchange: Exchange) => void} */
  refuse(error, exchange) {
    if (error instanceof ChatError && error.kind === "offline") {
      this.hold(exchange);
      return;
    }
    this.notice.show(error, () => this.answer(exchange));
    this.announcer.say(this.notice.text);
  }

  beginTurn() {
    const controller = new AbortController();
    this.notice.clear();
    this.running = controller;
    this.composer.setRunning(true);
    this.announcer.begin();
    return controller;
  }

  /** @type {(controller: AbortController) => void} */
  endTurn(controller) {
    if (this.running !== controller) return;
    this.log.hideStatus();
    this.running = null;
    this.composer.setRunning(false);
  }

  showTyping(text = this.texts.typing) {
    this.log.showStatus(fill(text, { name: this.agent.name }));
  }

  /** @type {(view: MessageView, files: Attachment[]) => Promise<void>} */
  async showFiles(view, files) {
    if (files.length) (await loadFiles()).showFiles(this, view, files);
  }

  silence() {
    this.player?.stop();
    this.voice?.discard();
  }
}
