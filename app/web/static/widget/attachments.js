// Files that belong to the next message: chosen, dropped or pasted, and sent at once. Loaded only where
// the agent allows them, or where a message has some.
import { button, el, icon, setAttribute } from "../shared/dom.js";
import { addStyles } from "./late-styles.js";
import { ChatError } from "./session.js";
import { fill } from "./texts.js";
import { sendFile } from "./upload.js";

// A paper clip.
const CLIP =
  "M20 11.5l-8 8a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.6 1.6 0 0 1-2.3-2.3l7.8-7.8";
const MAX_FILES = 5;
const MAX_MB = 10;
const MEGABYTE = 1024 * 1024;
export const ENDINGS = [
  ...["pdf", "docx", "xlsx", "pptx", "epub", "html", "htm", "md", "markdown", "txt", "text"],
  ...["csv", "json", "jsonl"],
];
/** @type {Record<string, keyof Texts>} */
const PROBLEMS = {
  file_too_large: "fileTooLarge",
  payload_too_large: "fileTooLarge",
  unsupported_file_type: "fileType",
  validation_error: "fileUnreadable",
};

/** @type {(shadow: ShadowRoot) => Promise<void>} */
function loadStyles(shadow) {
  return addStyles(shadow, new URL("./attachments.css", import.meta.url));
}

// Shows the files of a message that was sent.
/** @type {(chat: Chat, view: MessageView, files: Attachment[]) => Promise<void>} */
export async function showFiles(chat, view, files) {
  await loadStyles(chat.shadow);
  const items = files.map(({ name, size_bytes: size }) =>
    el(
      "li",
      { class: "file" },
      icon("file"),
      describeFile(name, formatSize(size, chat.options.lang)),
    )
  );
  view.extras.prepend(el("ul", { class: "files", "aria-label": chat.texts.files }, items));
}

/** @type {(chat: Chat) => Promise<void>} */
export async function addAttachments(chat) {
  await loadStyles(chat.shadow);
  chat.attachments ??= new Attachments(chat);
  chat.attachments.button.hidden = false;
}

export class Attachments {
  /** @type {Upload[]} */
  uploads = [];

  /** @param {Chat} chat */
  constructor(chat) {
    const { texts } = chat;
    this.chat = chat;
    this.input = el("input", {
      type: "file",
      multiple: true,
      hidden: true,
      accept: ENDINGS.map((ending) => `.${ending}`).join(),
      on: { change: () => this.addChosen() },
    });
    this.button = button(buildClip(), () => this.input.click(), {
      class: "plain attach",
      "aria-label": texts.attach,
      title: texts.attach,
    });
    this.list = el("ul", { class: "files waiting", "aria-label": texts.files, hidden: true });
    this.problem = el("p", { class: "files-problem", role: "alert", dir: "auto" });
    this.hint = el("p", { class: "drop-hint", "aria-hidden": "true" }, texts.attach);
    const { composer, element } = chat;
    composer.element.prepend(this.button, this.input);
    composer.element.before(this.list, this.problem);
    element.append(this.hint);
    const { signal } = chat.listeners;
    composer.input.addEventListener("paste", (event) => this.paste(event), { signal });
    element.addEventListener("dragover", (event) => this.dragOver(event), { signal });
    element.addEventListener("dragleave", (event) => this.dragLeave(event), { signal });
    element.addEventListener("drop", (event) => this.drop(event), { signal });
  }

  // The key no longer allows files.
  forbid() {
    this.button.hidden = true;
    this.clear();
  }

  // Adding

  addChosen() {
    this.add([...this.input.files ?? []]);
    this.input.value = "";
    this.chat.composer.focus();
  }

  // A text with a picture of itself, as of an office program, is pasted as text.
  /** @type {(event: ClipboardEvent) => void} */
  paste(event) {
    const data = event.clipboardData;
    if (!data?.files.length || data.types.includes("text/plain") || this.button.hidden) return;
    event.preventDefault();
    this.add([...data.files]);
  }

  /** @type {(event: DragEvent) => void} */
  dragOver(event) {
    if (!event.dataTransfer?.types.includes("Files") || this.button.hidden) return;
    event.preventDefault();
    this.chat.element.classList.add("dropping");
  }

  /** @type {(event: DragEvent) => void} */
  dragLeave(event) {
    const { element } = this.chat;
    const isInside = event.relatedTarget instanceof Node && element.contains(event.relatedTarget);
    if (!isInside) element.classList.remove("dropping");
  }

  /** @type {(event: DragEvent) => void} */
  drop(event) {
    this.chat.element.classList.remove("dropping");
    const files = [...event.dataTransfer?.files ?? []];
    if (!files.length || this.button.hidden) return;
    event.preventDefault();
    this.add(files);
    this.chat.composer.focus();
  }

  /** @type {(files: File[]) => void} */
  add(files) {
    const room = MAX_FILES - this.uploads.length;
    for (const file of files.slice(0, room)) {
      const upload = new Upload(this, file);
      this.uploads.push(upload);
      this.list.append(upload.element);
      upload.start();
    }
    this.show();
    this.list.scrollTop = this.list.scrollHeight;
    if (files.length > room) this.problem.textContent = this.chat.texts.tooManyFiles;
  }

  // Sending

  // Waits for what is on its way. False when a file cannot be sent: its chip says why.
  async areReady() {
    await Promise.all(this.uploads.map(({ done }) => done));
    const failed = this.uploads.find(({ attachment }) => !attachment);
    if (!failed) return true;
    this.chat.announcer.say(failed.problem);
    failed.remover.focus();
    return false;
  }

  // Returns the files for a message, and removes them here.
  take() {
    const attachments = this.uploads.flatMap(({ attachment }) => attachment ?? []);
    this.clear();
    return attachments;
  }

  /** @type {(upload: Upload) => void} */
  remove(upload) {
    const place = this.uploads.indexOf(upload);
    upload.stop();
    this.uploads.splice(place, 1);
    upload.element.remove();
    this.show();
    const next = this.uploads[place] ?? this.uploads[place - 1];
    if (next) next.remover.focus();
    else this.chat.composer.focus();
  }

  clear() {
    for (const upload of this.uploads.splice(0)) upload.stop();
    this.list.replaceChildren();
    this.show();
  }

  show() {
    this.problem.textContent = "";
    this.list.hidden = !this.uploads.length;
    this.chat.composer.hasFiles = this.uploads.length > 0;
  }
}

// A file on its way, and its chip.
class Upload {
  /** @type {Attachment | null} */
  attachment = null;
  problem = "";
  done = Promise.resolve();
  controller = new AbortController();

  /** @param {Attachments} owner @param {File} file */
  constructor(owner, file) {
    const { options: { lang }, texts } = owner.chat;
    const label = fill(texts.removeFile, { name: file.name });
    this.owner = owner;
    this.file = file;
    this.state = el("small", {}, formatSize(file.size, lang));
    this.bar = el("progress", { max: 1, value: 0, "aria-label": file.name });
    this.remover = button(icon("close"), () => owner.remove(this), {
      class: "plain",
      "aria-label": label,
      title: label,
    });
    this.element = el(
      "li",
      { class: "file" },
      icon("file"),
      el("span", { class: "described" }, el("b", { dir: "auto" }, file.name), this.state, this.bar),
      this.remover,
    );
  }

  start() {
    const problem = this.findProblem();
    if (problem) this.fail(problem);
    else this.done = this.send();
  }

  /** @type {() => keyof Texts | null} */
  findProblem() {
    const ending = this.file.name.split(".").pop()?.toLowerCase() ?? "";
    if (!ENDINGS.includes(ending)) return "fileType";
    return this.file.size > MAX_MB * MEGABYTE ? "fileTooLarge" : null;
  }

  async send() {
    const { announcer, session, texts } = this.owner.chat;
    const { signal } = this.controller;
    try {
      const attachment = await sendFile(session, this.file, signal, (part) => this.showPart(part));
      if (signal.aborted) return;
      this.attachment = attachment;
      this.bar.hidden = true;
      this.state.textContent = formatSize(this.file.size, this.owner.chat.options.lang);
      announcer.say(fill(texts.fileAttached, { name: this.file.name }));
    } catch (error) {
      const code = error instanceof ChatError ? error.code : "";
      if (!signal.aborted) this.fail(PROBLEMS[code] ?? "fileFailed");
    }
  }

  // A file that has arrived is read.
  /** @type {(part: number) => void} */
  showPart(part) {
    setAttribute(this.bar, "value", part < 1 ? part : null);
    if (part >= 1) this.state.textContent = this.owner.chat.texts.readingFile;
  }

  /** @type {(problem: keyof Texts) => void} */
  fail(problem) {
    const { announcer, texts } = this.owner.chat;
    this.problem = `${this.file.name}: ${texts[problem]}`;
    this.state.textContent = texts[problem];
    this.bar.hidden = true;
    this.element.classList.add("failed");
    announcer.say(this.problem);
  }

  stop() {
    this.controller.abort();
  }
}

function buildClip() {
  const clip = icon("file");
  clip.firstElementChild?.setAttribute("d", CLIP);
  return clip;
}

/** @type {(name: string, size: string) => HTMLElement} */
function describeFile(name, size) {
  return el("span", { class: "described" }, el("b", { dir: "auto" }, name), el("small", {}, size));
}

/** @type {(bytes: number, lang: string | undefined) => string} */
export function formatSize(bytes, lang) {
  const isLarge = bytes >= MEGABYTE;
  const unit = isLarge ? "megabyte" : "kilobyte";
  const value = bytes / (isLarge ? MEGABYTE : 1024);
  /** @type {Intl.NumberFormatOptions} */
  const options = { style: "unit", unit, maximumFractionDigits: isLarge ? 1 : 0 };
  try {
    return new Intl.NumberFormat(lang || undefined, options).format(Math.max(value, 1));
  } catch {
    // The page names a language that there is not.
    return new Intl.NumberFormat(undefined, options).format(Math.max(value, 1));
  }
}
