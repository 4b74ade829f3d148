// Reads a reply aloud. It is decoded and played by the script, since a page may forbid media.
import { icon, setAttribute } from "../shared/dom.js";
import { toPlainText } from "../shared/markdown.js";
import { speak } from "./requests.js";
import { ChatError } from "./session.js";

const MAX_CHARS = 5000;

/** @type {(chat: Chat, view: MessageView, button: HTMLElement) => Promise<void>} */
export async function play(chat, view, button) {
  const isSame = chat.player?.button === button;
  chat.player?.stop();
  if (isSame) return;
  const player = new Player(chat, button);
  chat.player = player;
  try {
    await player.play(toPlainText(view.text).slice(0, MAX_CHARS));
  } catch (error) {
    if (!player.controller.signal.aborted) {
      const isKnown = error instanceof ChatError && error.kind !== "failed";
      const shown = isKnown ? error : new ChatError("notPlayed");
      chat.notice.show(shown, () => play(chat, view, button));
    }
    player.stop();
  }
}

class Player {
  /** @type {AudioContext | undefined} */
  audio;

  /** @param {Chat} chat @param {HTMLElement} button */
  constructor(chat, button) {
    this.chat = chat;
    this.button = button;
    this.controller = new AbortController();
    this.show("stop", chat.texts.stopPlaying);
    this.button.classList.add("waiting");
  }

  /** @type {(text: string) => Promise<void>} */
  async play(text) {
    this.audio = new AudioContext();
    const content = await speak(this.chat.session, text, this.controller.signal);
    const source = this.audio.createBufferSource();
    source.buffer = await this.audio.decodeAudioData(content);
    source.connect(this.audio.destination);
    source.addEventListener("ended", () => this.stop());
    this.button.classList.remove("waiting");
    source.start();
  }

  stop() {
    this.controller.abort();
    if (this.audio && this.audio.state !== "closed") this.audio.close();
    this.button.classList.remove("waiting");
    this.show("speaker", this.chat.texts.play);
    if (this.chat.player === this) this.chat.player = null;
  }

  /** @type {(name: Icon, label: string) => void} */
  show(name, label) {
    this.button.replaceChildren(icon(name));
    setAttribute(this.button, "aria-label", label);
    setAttribute(this.button, "title", label);
  }
}
