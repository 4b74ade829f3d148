// The conversation: what was said, what is being said, and the field for the next message.
import { button, el, icon, prose, setAttribute } from "../shared/dom.js";
import { MessageView } from "./message.js";
import { Notice } from "./notice.js";

const MAX_CHARS = 32_000;
const NEAR_END_PX = 60;
const MAX_INPUT_PX = 140;

export class Chat {
  /** @type {AbortController | null} */
  running = null;
  /** @type {Voice | null} */
  voice = null;
  /** @type {Player | null} */
  player = null;
  isLoaded = false;
  /** @type {Promise<void> | null} */
  loading = null;
  /** @type {HTMLElement | null} */
  typing = null;
  messages = el("div", { class: "messages" });
  suggestions = el("div", { class: "suggestions", hidden: true });

  /** @param {ChatOptions} context */
  constructor({ session, texts, options, announcer, onAgent, onReply }) {
    this.session = session;
    this.texts = texts;
    this.options = options;
    this.announcer = announcer;
    this.onAgent = onAgent;
    this.onReply = onReply;
    /** @type {Agent} */
    this.agent = { name: options.title || "", allow_voice: false };
    this.notice = new Notice(texts);
    this.log = this.buildLog();
    this.newer = button(icon("down"), () => this.scrollToEnd(true), {
      class: "newer",
      "aria-label": texts.newer,
      title: texts.newer,
      hidden: true,
    });
    this.input = this.buildInput();
    this.action = button(icon("send"), () => this.act(), {
      class: "send",
      "aria-label": texts.send,
      title: texts.send,
    });
    this.composer = el(
      "form",
      { class: "composer", on: { submit: (event) => this.submit(event) } },
      el("label", { class: "hidden-text", for: "message" }, texts.message),
      this.input,
      this.action,
    );
    this.element = el(
      "div",
      { class: "chat" },
      el("div", { class: "scroller" }, this.log, this.newer),
      this.suggestions,
      this.notice.element,
      this.composer,
      prose("p", options.note, { class: "small-print" }),
    );
    addEventListener("online", () => this.goOn());
  }

  buildLog() {
    return el(
      "div",
      {
        class: "log",
        role: "log",
        "aria-live": "off",
        "aria-label": this.texts.conversation,
        tabindex: 0,
        on: { scroll: () => this.showNewer() },
      },
      this.messages,
    );
  }

  buildInput() {
    return el("textarea", {
      id: "message",
      rows: 1,
      maxlength: MAX_CHARS,
      placeholder: this.texts.placeholder,
      dir: "auto",
      autocomplete: "off",
      enterkeyhint: "send",
      on: { keydown: (event) => this.handleKey(event), input: () => this.fitInput() },
    });
  }

  // Loading

  start() {
    if (!this.isLoaded) this.load();
    this.scrollToEnd();
  }

  /** @type {() => Promise<void>} */
  load() {
    this.loading ??= this.loadOnce().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  async loadOnce() {
    this.messages.setAttribute("aria-busy", "true");
    try {
      const state = await this.session.load();
      this.isLoaded = true;
      this.notice.clear();
      this.showState(state);
    } catch (error) {
      this.notice.show(error, () => this.load());
    } finally {
      this.messages.removeAttribute("aria-busy");
    }
  }

  /** @type {(state: SessionState) => void} */
  showState({ agent, messages, visitor_name: visitor }) {
    this.agent = agent;
    this.onAgent(agent);
    this.messages.replaceChildren();
    this.greet(visitor);
    for (const message of messages) this.addMessage(message);
    this.showSuggestions(messages.length === 0);
    if (agent.allow_voice) this.addVoice();
    this.scrollToEnd();
  }

  /** @type {(visitor: string | null | undefined) => void} */
  greet(visitor) {
    const { greeting } = this.options;
    if (!greeting) return;
    const text = greeting.replaceAll("{name}", visitor ?? "").replace(/\s+([!,.])/g, "$1");
    this.addMessage({ role: "assistant", content: text, isGreeting: true });
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

  goOn() {
    if (!this.isLoaded && !this.element.closest("[hidden]")) this.load();
    else if (this.notice.kind === "offline") this.notice.retry();
  }

  /** @type {(userToken: string | null) => Promise<void>} */
  async identify(userToken) {
    this.stop();
    await this.loading;
    this.session.identify(userToken);
    this.isLoaded = false;
    if (!this.element.closest("[hidden]")) await this.load();
  }

  restart() {
    this.stop();
    this.silence();
    this.session.restart();
    this.notice.clear();
    this.showState({ agent: this.agent, messages: [] });
    this.focus();
  }

  // Messages

  /** @type {(message: ChatMessage) => MessageView} */
  addMessage({ role, content, status = "complete", sources = [], isGreeting = false }) {
    const view = new MessageView({ role, texts: this.texts, name: this.agent.name });
    view.setText(content);
    this.messages.append(view.element);
    if (role === "assistant" && !isGreeting) this.finishMessage(view, { status, sources });
    return view;
  }

  /** @type {(view: MessageView, reply: { status: string; sources: Source[] }) => void} */
  finishMessage(view, { status, sources }) {
    view.addSources(sources);
    if (status === "interrupted") view.setNote(this.texts.stopped);
    if (this.agent.allow_voice && view.text) this.addPlayer(view);
  }

  // The field

  focus() {
    this.input.focus();
  }

  /** @type {(event: KeyboardEvent) => void} */
  handleKey(event) {
    const isSend = event.key === "Enter" && !event.shiftKey && !event.isComposing;
    if (!isSend) return;
    event.preventDefault();
    if (!this.running) this.submit(event);
  }

  fitInput() {
    this.input.style.setProperty("height", "auto");
    this.input.style.setProperty("height", `${Math.min(this.input.scrollHeight, MAX_INPUT_PX)}px`);
  }

  act() {
    if (this.running) this.stop();
    else if (this.voice?.recorder) this.voice.toggle();
    else this.composer.requestSubmit();
  }

  /** @type {(event: Event) => Promise<void>} */
  async submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text || this.running) return;
    // What was said before comes first; until then the message stays in the field.
    if (!this.isLoaded) await this.load();
    if (!this.isLoaded || this.running || this.input.value.trim() !== text) return;
    this.input.value = "";
    this.fitInput();
    this.ask(text);
  }

  stop() {
    this.running?.abort();
  }

  /** @type {(controller: AbortController | null) => void} */
  setRunning(controller) {
    this.running = controller;
    const label = controller ? this.texts.stop : this.texts.send;
    this.action.replaceChildren(icon(controller ? "stop" : "send"));
    setAttribute(this.action, "aria-label", label);
    setAttribute(this.action, "title", label);
    this.action.classList.toggle("stopping", Boolean(controller));
  }

  // Asking

  /** @type {(text: string) => Promise<void>} */
  async ask(text) {
    if (this.running) return;
    this.suggestions.hidden = true;
    const question = this.addMessage({ role: "user", content: text });
    await this.askFor(text, question);
  }

  /** @type {(text: string, question: MessageView) => Promise<void>} */
  async askFor(text, question) {
    const controller = this.beginTurn();
    const view = new MessageView({ role: "assistant", texts: this.texts, name: this.agent.name });
    view.setStreaming(true);
    this.showTyping(this.texts.typing);
    try {
      for await (const { event, data } of this.session.send(text, controller.signal)) {
        this.showEvent(view, event, data);
      }
      this.endReply(view, "complete");
    } catch (error) {
      this.endReply(view, "interrupted");
      if (!controller.signal.aborted) this.fail(error, text, question);
    } finally {
      this.endTurn(controller);
    }
  }

  beginTurn() {
    const controller = new AbortController();
    this.notice.clear();
    this.setRunning(controller);
    this.announcer.begin();
    return controller;
  }

  /** @type {(controller: AbortController) => void} */
  endTurn(controller) {
    this.hideTyping();
    if (this.running === controller) this.setRunning(null);
  }

  /** @type {(view: MessageView, event: string, data: TurnData) => void} */
  showEvent(view, event, data) {
    if (event === "content_delta") {
      const wasAtEnd = this.isAtEnd();
      this.hideTyping();
      if (!view.element.isConnected) this.messages.append(view.element);
      view.addText(data.delta);
      this.announcer.follow(view.text);
      if (wasAtEnd) this.scrollToEnd();
    } else if (event === "tool_use") {
      this.showTyping(this.texts.working);
    } else if (event === "queue") {
      this.showQueue(view, data.position);
    } else if (event === "message_stop") {
      view.sources = data.sources;
    }
  }

  /** @type {(view: MessageView, status: string) => void} */
  endReply(view, status) {
    if (!view.text) {
      view.element.remove();
      return;
    }
    const wasAtEnd = this.isAtEnd();
    view.setStreaming(false);
    this.announcer.finish(view.text);
    this.finishMessage(view, { status, sources: view.sources });
    if (wasAtEnd) this.scrollToEnd();
    this.onReply();
  }

  /** @type {(error: unknown, text: string, question: MessageView) => void} */
  fail(error, text, question) {
    this.notice.show(error, () => {
      question.element.remove();
      this.ask(text);
    });
    this.announcer.say(this.notice.text);
  }

  /** @type {(text: string) => void} */
  showTyping(text) {
    this.showStatus(`${this.agent.name} ${text}`.trim());
  }

  // At position 1 the message is next; at 0 it is being answered. Only the first position is said.
  /** @type {(view: MessageView, position: number) => void} */
  showQueue(view, position) {
    if (position === 0) {
      this.showTyping(this.texts.typing);
      return;
    }
    const { next, queued } = this.texts;
    const text = position === 1 ? next : queued.replace("{count}", String(position - 1));
    this.showStatus(text);
    if (!view.wasQueued) this.announcer.say(text);
    view.wasQueued = true;
  }

  /** @type {(text: string) => void} */
  showStatus(text) {
    this.hideTyping();
    this.typing = el(
      "p",
      { class: "typing" },
      el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")),
      el("span", { dir: "auto" }, text),
    );
    this.messages.append(this.typing);
    this.scrollToEnd();
  }

  hideTyping() {
    this.typing?.remove();
    this.typing = null;
  }

  // Scrolling

  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    return scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  }

  scrollToEnd(isSmooth = false) {
    const jump = () =>
      this.log.scrollTo({ top: this.log.scrollHeight, behavior: isSmooth ? "smooth" : "auto" });
    jump();
    if (!isSmooth) requestAnimationFrame(jump);
  }

  showNewer() {
    this.newer.hidden = this.isAtEnd();
  }

  // Voice is loaded only where the agent allows it.

  async addVoice() {
    if (this.voice || !navigator.mediaDevices || !window.MediaRecorder) return;
    const { Voice } = await import("./voice.js");
    this.voice = new Voice(this);
    this.composer.insertBefore(this.voice.element, this.action);
  }

  /** @type {(view: MessageView) => void} */
  addPlayer(view) {
    const play = view.buildIconButton("speaker", this.texts.play, async () => {
      const { play: playText } = await import("./player.js");
      await playText(this, view, play);
    });
    view.addAction(play);
  }

  silence() {
    this.player?.stop();
    this.voice?.discard();
  }
}
