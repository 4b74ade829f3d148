// One message: its text, its sources, and what can be done with it.
import { button, el, icon, prose } from "../shared/dom.js";
import { buildLink, MarkdownView, toSafeAddress } from "../shared/markdown.js";

const COPIED_MS = 2000;

export class MessageView {
  /** @type {Source[]} */
  sources = [];
  wasQueued = false;

  /** @param {{ role: Role; texts: Texts; name: string }} message */
  constructor({ role, texts, name }) {
    this.texts = texts;
    this.body = el("div", { class: "body" });
    this.footer = el("div", { class: "footer" });
    this.extras = el("div", { class: "extras" }, this.footer);
    this.element = el(
      "article",
      { class: `message ${role}` },
      el("span", { class: "hidden-text" }, `${role === "user" ? texts.you : name}: `),
      this.body,
      this.extras,
    );
    this.text = "";
    this.frame = 0;
    this.markdown = role === "user"
      ? null
      : new MarkdownView(this.body, (code) => this.addCopy(code));
  }

  // What a visitor wrote is shown as it is.
  /** @type {(text: string) => void} */
  setText(text) {
    this.text = text;
    if (this.markdown) this.markdown.update(text);
    else this.body.replaceChildren(prose("p", text) ?? "");
  }

  // Draws at most once a frame, however fast the words come.
  /** @type {(text: string) => void} */
  addText(text) {
    this.text += text;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.setText(this.text);
    });
  }

  /** @type {(isStreaming: boolean) => void} */
  setStreaming(isStreaming) {
    this.element.classList.toggle("streaming", isStreaming);
    if (isStreaming) return;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.setText(this.text);
  }

  /** @type {(text: string) => void} */
  setNote(text) {
    this.footer.append(el("span", { class: "note" }, text));
  }

  /** @type {(action: HTMLElement) => void} */
  addAction(action) {
    this.footer.append(action);
  }

  /** @type {(sources: Source[]) => void} */
  addSources(sources) {
    const known = new Map(
      sources.map((source) => [`${source.document_name}\n${source.chunk_preview}`, source]),
    );
    if (!known.size) return;
    const items = [...known.values()].map((source) => el("li", {}, this.buildSource(source)));
    const title = `${this.texts.sources} (${items.length})`;
    this.extras.prepend(
      el("details", { class: "sources" }, el("summary", {}, title), el("ol", {}, items)),
    );
  }

  /** @type {(source: Source) => HTMLElement} */
  buildSource({ document_name: name, chunk_preview: preview, metadata = {} }) {
    const page = Number.isInteger(metadata.page) ? `, ${this.texts.page} ${metadata.page}` : "";
    const address = toSafeAddress(String(metadata.url ?? ""));
    const link = address ? buildLink(address, [this.texts.openSource]) : null;
    return el(
      "details",
      {},
      el("summary", { dir: "auto" }, `${name}${page}`),
      prose("blockquote", preview),
      link,
    );
  }

  /** @type {(code: HTMLElement) => void} */
  addCopy(code) {
    const text = code.textContent;
    const copy = button(
      this.texts.copy,
      async () => {
        await copyText(text);
        copy.textContent = this.texts.copied;
        setTimeout(() => {
          copy.textContent = this.texts.copy;
        }, COPIED_MS);
      },
      { class: "copy" },
    );
    code.prepend(copy);
  }

  /** @type {(name: Icon, label: string, listener: () => void) => HTMLButtonElement} */
  buildIconButton(name, label, listener) {
    return button(icon(name), listener, { class: "plain", "aria-label": label, title: label });
  }
}

/** @type {(text: string) => Promise<void>} */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page without https, or one that forbids the clipboard.
    const area = el("textarea", { class: "hidden-text" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
