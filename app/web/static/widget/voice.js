// Speaking to the agent: records in the browser, and sends the recording.
import { button, el, icon, setAttribute } from "../shared/dom.js";
import { sendRecording } from "./requests.js";
import { ChatError } from "./session.js";

const MAX_SECONDS = 120;

/** @type {(chat: Chat) => void} */
export function addVoice(chat) {
  if (chat.voice || !navigator.mediaDevices || !window.MediaRecorder) return;
  chat.voice = new Voice(chat);
  chat.composer.element.insertBefore(chat.voice.element, chat.composer.action);
}

export class Voice {
  /** @type {MediaRecorder | null} */
  recorder = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /** @param {Chat} chat */
  constructor(chat) {
    this.chat = chat;
    this.button = button(icon("microphone"), () => this.toggle(), { class: "plain" });
    this.cancel = button(icon("close"), () => this.discard(), {
      class: "plain",
      "aria-label": chat.texts.cancelRecording,
      title: chat.texts.cancelRecording,
      hidden: true,
    });
    this.element = el("span", { class: "voice" }, this.cancel, this.button);
    this.show();
  }

  show() {
    const isRecording = Boolean(this.recorder);
    const label = isRecording ? this.chat.texts.finishRecording : this.chat.texts.record;
    setAttribute(this.button, "aria-label", label);
    setAttribute(this.button, "title", label);
    this.button.classList.toggle("recording", isRecording);
    this.cancel.hidden = !isRecording;
    this.chat.composer.input.disabled = isRecording;
    this.chat.composer.input.placeholder = isRecording
      ? this.chat.texts.recording
      : this.chat.texts.placeholder;
  }

  async toggle() {
    if (this.recorder) this.recorder.stop();
    else if (!this.chat.running) await this.record();
  }

  async record() {
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      this.chat.notice.show(new ChatError("microphoneDenied"), () => this.record());
      return;
    }
    /** @type {Blob[]} */
    const chunks = [];
    const recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", (event) => chunks.push(event.data));
    recorder.addEventListener("stop", () => {
      for (const track of stream.getTracks()) track.stop();
      clearTimeout(this.timer);
      const isWanted = this.recorder === recorder;
      this.recorder = null;
      this.show();
      if (isWanted) this.send(new Blob(chunks, { type: recorder.mimeType }));
    });
    this.timer = setTimeout(() => recorder.stop(), MAX_SECONDS * 1000);
    this.recorder = recorder;
    this.chat.announcer.say(this.chat.texts.recording);
    recorder.start();
    this.show();
  }

  discard() {
    const { recorder } = this;
    this.recorder = null;
    if (recorder) recorder.stop();
  }

  /** @type {(recording: Blob) => Promise<void>} */
  async send(recording) {
    const { chat } = this;
    const controller = chat.beginTurn();
    chat.suggestions.hidden = true;
    chat.last?.answer?.removeRepeaters();
    chat.showTyping(chat.texts.transcribing);
    chat.log.showEnd();
    try {
      const reply = await sendRecording(chat.session, recording, controller.signal);
      chat.log.hideStatus();
      const { id, content } = reply.assistant_reply;
      const question = chat.addMessage("user", reply.transcript);
      const answer = chat.addMessage("assistant", content);
      answer.id = id;
      chat.last = { text: reply.transcript, question, answer, files: [] };
      chat.remember(reply.transcript);
      chat.finish(answer, { status: "complete", sources: reply.sources, feedback: null });
      chat.announcer.finish(content);
      chat.log.follow(question.element);
      chat.onReply();
    } catch (error) {
      const isSilent = error instanceof ChatError && error.code === "validation_error";
      const shown = isSilent ? new ChatError("nothingHeard") : error;
      if (!controller.signal.aborted) chat.notice.show(shown, () => this.send(recording));
    } finally {
      chat.endTurn(controller);
    }
  }
}
