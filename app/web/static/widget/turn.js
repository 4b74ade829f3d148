// One turn: sends a question, and shows the answer while it is written.
import { readEvents } from "../shared/event-stream.js";
import { offerAgain } from "./answer.js";
import { MessageView } from "./message.js";
import { ask } from "./requests.js";
import { ChatError, toKind } from "./session.js";
import { fill } from "./texts.js";

export class Turn {
  isStarted = false;

  /** @param {Chat} chat @param {Exchange} exchange @param {AbortSignal} signal */
  constructor(chat, exchange, signal) {
    this.chat = chat;
    this.exchange = exchange;
    this.signal = signal;
    this.view = new MessageView({ role: "assistant", texts: chat.texts, name: chat.agent.name });
    this.view.setStreaming(true);
    exchange.answer?.element.classList.add("replaced");
  }

  async run() {
    try {
      for await (const { event, data } of this.send()) this.handleEvent(event, data);
      this.end("complete");
    } catch (error) {
      // The failed answer is in the conversation, although no stream began.
      if (error instanceof ChatError && error.messageId) this.start(error.messageId);
      this.restore();
      if (this.signal.aborted) this.end("stopped");
      else if (!this.isStarted) throw error;
      else this.end(this.view.text ? "interrupted" : "failed");
    }
  }

  // Yields the events of the answer. The signal cancels it, and the model with it.
  async *send() {
    const response = await this.post(this.exchange.answer?.id);
    /** @type {AsyncGenerator<ServerEvent<TurnData>>} */
    const events = readEvents(response);
    let isOver = false;
    for await (const { event, data } of events) {
      if (event === "error") throw new ChatError(toKind(data.code), { code: data.code });
      isOver ||= event === "message_stop";
      yield { event, data };
    }
    if (!isOver && !this.signal.aborted) throw new ChatError("brokenOff");
  }

  // An answer that was stopped before its first word was not stored, so nothing can replace it.
  /** @type {(replaces: string | undefined) => Promise<Response>} */
  async post(replaces) {
    const { text: message, files } = this.exchange;
    const attachments = files.map(({ id }) => id);
    const build = (/** @type {string} */ id) => ({
      session_id: id,
      message,
      replaces,
      ...(files.length ? { attachments } : {}),
    });
    try {
      return await ask(this.chat.session, "/chat/stream", build, this.signal);
    } catch (error) {
      const isGone = error instanceof ChatError && error.code === "not_last_answer";
      if (!isGone || !replaces) throw error;
      return await this.post(undefined);
    }
  }

  // Events that are not known here are for others.
  /** @type {(event: string, data: TurnData) => void} */
  handleEvent(event, data) {
    const { chat, view } = this;
    if (event === "message_start") {
      this.start(data.message_id);
    } else if (event === "content_delta") {
      chat.log.hideStatus();
      if (!view.element.isConnected) chat.log.add(view.element);
      view.addText(data.delta);
      chat.announcer.follow(view.text);
    } else if (event === "tool_use") {
      chat.showTyping(chat.texts.working);
    } else if (event === "queue") {
      this.showQueue(data.position);
    } else if (event === "message_stop") {
      view.sources = data.sources;
    }
  }

  // From now on, the server has the question.
  /** @type {(messageId: string) => void} */
  start(messageId) {
    const { chat, exchange, view } = this;
    this.isStarted = true;
    view.id = messageId;
    exchange.answer?.element.remove();
    exchange.answer = null;
    chat.remember(exchange.text);
  }

  // The old answer stays when there is no new one.
  restore() {
    const { answer } = this.exchange;
    if (!answer) return;
    answer.element.classList.remove("replaced");
    offerAgain(this.chat, answer);
  }

  // At position 1 the message is next; at 0 it is being answered. Only the first position is said.
  /** @type {(position: number) => void} */
  showQueue(position) {
    const { chat, view } = this;
    if (position === 0) {
      chat.showTyping();
      return;
    }
    const { next, queued } = chat.texts;
    const text = position === 1 ? next : fill(queued, { count: position - 1 });
    chat.log.showStatus(text);
    if (!view.wasQueued) chat.announcer.say(text);
    view.wasQueued = true;
  }

  /** @type {(status: Outcome["status"] | "stopped") => void} */
  end(status) {
    const { chat, exchange, view } = this;
    if (this.isStarted && status === "stopped") chat.stopped.add(view.id);
    // The conversation was left.
    if (!exchange.question.element.isConnected) return;
    if (!this.isStarted) {
      if (!exchange.answer) exchange.question.setNote(chat.texts.stopped);
      return;
    }
    chat.log.hideStatus();
    if (!view.element.isConnected) chat.log.add(view.element);
    view.setStreaming(false);
    view.setTime(new Date(), chat.options.lang);
    chat.announcer.finish(view.text);
    exchange.answer = view;
    chat.finish(view, {
      status: status === "stopped" ? "interrupted" : status,
      sources: view.sources,
      feedback: null,
      isNew: true,
    });
    chat.onReply();
  }
}
