// A file: it is uploaded as soon as it is chosen, and its id is the answer.
import { createKey } from "../api.js";
import { button, el, icon } from "../../shared/dom.js";
import { Problem, ServerProblem } from "../problems.js";
import { formatSize, getLanguage, getText, joinWords } from "../texts.js";

const DEFAULT_MAX_MB = 10;
const MEGABYTE = 1024 * 1024;
// The server takes this many files from one address at a time; the others of a page wait.
const MAX_REQUESTS = 3;

/** @type {(() => void)[]} */
const waiting = [];
let running = 0;

/** @type {BuildControl} */
export function file(field, context) {
  const upload = new Upload(field, context);
  return {
    element: upload.element,
    inputs: [upload.input],
    hint: describe(field),
    read: () => upload.fileId,
    write: (value) => upload.restore(value ? String(value) : undefined),
    toMessage: () => [upload.fileId ?? "", upload.name],
    // What keeps the form from being sent, other than a wrong answer.
    findProblem: () => upload.problem,
    focus: () => upload.focus(),
  };
}

/** @type {(field: Field) => string} */
function describe(field) {
  const { allowed_types: endings, max_size_mb: megabytes = DEFAULT_MAX_MB } = field.validation;
  const kinds = joinWords((endings ?? []).map((ending) => normalize(ending).toUpperCase()));
  return getText(kinds ? "fileKinds" : "fileLimit", { kinds, megabytes });
}

/** @type {(ending: string) => string} */
function normalize(ending) {
  return ending.trim().toLowerCase().replace(/^\./, "");
}

class Upload {
  /** @type {string | undefined} */
  fileId;
  // What the visitor calls the file.
  name = "";
  /** @type {AnswerProblem | null} */
  problem = null;
  /** @type {{ abort: () => void } | null} */
  #request = null;
  // Of the file: a second attempt with it stores the file once.
  #key = "";
  #row = el("div", { class: "file", hidden: true });
  #status = el("p", { class: "unseen", role: "status" });

  /** @param {Field} field @param {ControlContext} context */
  constructor(field, context) {
    this.field = field;
    this.context = context;
    const accept = (field.validation.allowed_types ?? []).map((ending) => `.${normalize(ending)}`);
    this.input = el("input", {
      type: "file",
      id: `field-${field.id}`,
      required: field.required,
      accept: accept.join(",") || null,
      on: { change: () => this.#choose(this.input.files?.[0]) },
    });
    this.zone = el(
      "div",
      { class: "drop" },
      this.input,
      el("span", { "aria-hidden": "true" }, icon("upload"), getText("dropFile")),
    );
    this.element = el("div", { class: "input" }, this.zone, this.#row, this.#status);
  }

  focus() {
    (this.zone.hidden ? this.#row.querySelector("button") : this.input)?.focus();
  }

  // A file of a draft: only its id is known.
  /** @type {(fileId: string | undefined) => void} */
  restore(fileId) {
    this.#clear();
    if (!fileId) return;
    this.fileId = fileId;
    this.#showRow(getText("yourFile"), "", "remove");
  }

  /** @type {(chosen: File | undefined) => void} */
  #choose(chosen) {
    if (!chosen) return;
    this.#key = createKey();
    this.#take(chosen);
  }

  /** @type {(chosen: File) => void} */
  #take(chosen) {
    const { max_size_mb: megabytes = DEFAULT_MAX_MB } = this.field.validation;
    if (chosen.size > Math.floor(megabytes * MEGABYTE)) {
      this.#fail(new Problem("fileSize", { megabytes }), chosen);
    } else {
      this.#send(chosen);
    }
  }

  /** @type {(chosen: File) => void} */
  #send(chosen) {
    const hadFocus = this.element.contains(document.activeElement);
    this.problem = new Problem("uploading");
    this.context.showProblem(null);
    const bar = el("progress", {
      max: 1,
      value: 0,
      "aria-label": getText("uploadOf", { name: chosen.name }),
    });
    this.#showRow(chosen.name, formatSize(chosen.size), "cancel", bar);
    this.#status.textContent = getText("uploading", { name: chosen.name });
    if (hadFocus) this.focus();
    const body = new FormData();
    // First, so that the server knows the field before the file arrives.
    body.append("field_id", this.field.id);
    body.append("file", chosen);
    const url = `${this.context.api.path}/upload`;
    const request = post(url, body, this.#key, (share) => {
      bar.value = share;
    });
    this.#request = request;
    request.done.then((answer) => this.#finish(chosen, answer));
    this.context.changed();
  }

  /** @type {(chosen: File, answer: UploadAnswer) => void} */
  #finish(chosen, { status, body }) {
    this.#request = null;
    if (status === 201 && body?.data) {
      const { file_id: fileId, filename, size_bytes: size } = body.data;
      this.problem = null;
      this.fileId = fileId;
      this.#showRow(filename, formatSize(size), "remove");
      this.#status.textContent = getText("uploaded", { name: chosen.name });
      this.context.changed();
    } else if (status !== null) {
      this.#fail(explain(status, body), chosen, status !== 413 && status !== 415);
    }
  }

  // The file stays in sight, so that the visitor tries again or leaves it out.
  /** @type {(problem: AnswerProblem, chosen: File, canRetry?: boolean) => void} */
  #fail(problem, chosen, canRetry = false) {
    this.#clear();
    this.problem = problem;
    this.#status.replaceChildren();
    const retry = button(getText("tryAgain"), () => this.#take(chosen), { class: "quiet" });
    this.#showRow(chosen.name, formatSize(chosen.size), "remove", ...(canRetry ? [retry] : []));
    this.context.showProblem(problem);
  }

  #remove() {
    this.#clear();
    this.#status.textContent = getText("removed");
    this.input.focus();
    this.context.showProblem(null);
    this.context.changed();
  }

  #clear() {
    this.#request?.abort();
    this.#request = null;
    this.fileId = undefined;
    this.problem = null;
    this.input.value = "";
    this.zone.hidden = false;
    this.#row.hidden = true;
    this.#row.replaceChildren();
  }

  /** @type {(name: string, size: string, action: "remove" | "cancel", ...more: HTMLElement[]) => void} */
  #showRow(name, size, action, ...more) {
    const hadFocus = this.#row.contains(document.activeElement);
    this.name = name;
    this.zone.hidden = true;
    this.#row.hidden = false;
    this.#row.replaceChildren(
      icon("file"),
      el("span", { class: "name", dir: "auto" }, name),
      el("span", { class: "size" }, size),
      button(getText(action), () => this.#remove(), {
        class: "quiet",
        "aria-label": getText(`${action}File`, { name }),
      }),
      ...more,
    );
    if (hadFocus) this.focus();
  }
}

/** @type {(status: number, body: UploadAnswer["body"]) => AnswerProblem} */
function explain(status, body) {
  const message = body?.error?.message;
  if (status === 0) return new Problem("uploadLost");
  if (message && getLanguage() === "en") return new ServerProblem(message);
  if (status === 415) return new Problem("fileKind");
  return new Problem(status === 413 ? "tooLarge" : "uploadFailed");
}

// Sends a file with progress, which fetch has not. `done` has the status 0 for a lost connection
// and null after `abort`.
/**
 * @param {string} url
 * @param {FormData} body
 * @param {string} key
 * @param {(share: number) => void} onProgress
 */
function post(url, body, key, onProgress) {
  const request = new XMLHttpRequest();
  /** @type {Promise<UploadAnswer>} */
  const done = new Promise((resolve) => {
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => resolve({ status: request.status, body: request.response });
    request.onerror = () => resolve({ status: 0, body: null });
    request.onabort = () => resolve({ status: null, body: null });
  });
  request.open("POST", url);
  request.responseType = "json";
  request.setRequestHeader("idempotency-key", key);
  const start = () => request.send(body);
  waiting.push(start);
  startWaiting();
  done.then(() => {
    running -= 1;
    startWaiting();
  });
  return { done, abort: () => withdraw(start) || request.abort() };
}

function startWaiting() {
  while (running < MAX_REQUESTS) {
    const start = waiting.shift();
    if (!start) return;
    running += 1;
    start();
  }
}

// Returns false for a request that was started.
/** @type {(start: () => void) => boolean} */
function withdraw(start) {
  const index = waiting.indexOf(start);
  if (index >= 0) waiting.splice(index, 1);
  return index >= 0;
}
