// The sources of an answer. A passage of a document opens below the answer; a page of the web opens
// in a new tab. A number in the answer, like [1] or [1, 2], opens the source with that number.
import { button, el, icon, prose } from "../shared/dom.js";
import { toSafeAddress } from "../shared/markdown.js";
import { fill } from "./texts.js";

const FEW = 4;
const NUMBERS = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/;
const NEW_TAB = { target: "_blank", rel: "noopener noreferrer nofollow" };
let created = 0;

/** @type {(view: MessageView, sources: Source[]) => void} */
export function addSources(view, sources) {
  const known = new Map(
    sources.map((source) => [`${source.document_name}\n${source.chunk_preview}`, source]),
  );
  if (known.size) new SourceList(view, [...known.values()]);
}

class SourceList {
  /** @type {HTMLElement | null} */
  opened = null;
  showAll = () => {};

  /** @param {MessageView} view @param {Source[]} sources */
  constructor(view, sources) {
    this.texts = view.texts;
    created += 1;
    this.passage = el("div", { class: "passage", id: `passage-${created}`, hidden: true });
    /** @type {Map<number, HTMLElement>} */
    this.byNumber = new Map();
    const items = sources.map((source) => el("li", {}, this.buildChip(source)));
    const list = el("ol", { "aria-label": this.texts.sources }, items);
    view.extras.prepend(el("div", { class: "sources" }, list, this.passage));
    this.hideMany(list, items);
    if (this.byNumber.size) this.linkNumbers(view.body);
  }

  /** @type {(source: Source) => HTMLElement} */
  buildChip(source) {
    const { document_name: name, metadata = {} } = source;
    const number = Number.isInteger(metadata.number) ? Number(metadata.number) : null;
    const address = toSafeAddress(String(metadata.url ?? ""));
    const label = [
      number !== null && el("span", { class: "number" }, String(number)),
      el("span", { class: "name", dir: "auto" }, name),
    ];
    const chip = address
      ? el("a", { class: "chip", href: address, title: name, ...NEW_TAB }, label, icon("open"))
      : button(label, () => this.toggle(chip, source), {
        class: "chip",
        title: name,
        "aria-expanded": "false",
        "aria-controls": this.passage.id,
      });
    if (number !== null) this.byNumber.set(number, chip);
    return chip;
  }

  // Of many, only the first are shown at once.
  /** @type {(list: HTMLElement, items: HTMLElement[]) => void} */
  hideMany(list, items) {
    const rest = items.slice(FEW);
    if (!rest.length) return;
    for (const item of rest) item.hidden = true;
    const text = fill(this.texts.moreSources, { count: rest.length });
    const more = el("li", {}, button(text, () => this.showAll(), { class: "chip" }));
    list.append(more);
    this.showAll = () => {
      for (const item of rest) item.hidden = false;
      more.remove();
      /** @type {HTMLElement | null} */ (rest[0].querySelector(".chip"))?.focus();
    };
  }

  /** @type {(chip: HTMLElement, source: Source) => void} */
  toggle(chip, source) {
    const isClosing = this.opened === chip;
    this.opened?.setAttribute("aria-expanded", "false");
    this.opened = isClosing ? null : chip;
    this.passage.hidden = isClosing;
    if (isClosing) return;
    chip.setAttribute("aria-expanded", "true");
    const places = this.describePlaces(source.metadata ?? {});
    this.passage.replaceChildren(
      el("p", { class: "origin", dir: "auto" }, source.document_name),
      ...places.map((text) => el("p", { class: "place", dir: "auto" }, text)),
      prose("blockquote", source.chunk_preview, { tabindex: 0 }) ?? "",
    );
  }

  /** @type {(metadata: SourceMetadata) => string[]} */
  describePlaces({ page, row, heading }) {
    return [
      Number.isInteger(page) && fill(this.texts.page, { page: Number(page) }),
      Number.isInteger(row) && fill(this.texts.row, { row: Number(row) }),
      typeof heading === "string" && heading,
    ].filter((text) => typeof text === "string" && text !== "").map(String);
  }

  // Makes buttons of the numbers in the answer, except in code and links.
  /** @type {(body: HTMLElement) => void} */
  linkNumbers(body) {
    const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    /** @type {Text[]} */
    const texts = [];
    while (walker.nextNode()) {
      const text = /** @type {Text} */ (walker.currentNode);
      if (!text.parentElement?.closest("a, button, code, pre")) texts.push(text);
    }
    for (const text of texts) this.linkNumbersOf(text);
  }

  /** @type {(text: Text) => void} */
  linkNumbersOf(text) {
    const parts = text.data.split(NUMBERS);
    if (parts.length < 2) return;
    // Every second part has numbers.
    text.replaceWith(
      ...parts.flatMap((part, index) => index % 2 ? this.buildNumbers(part) : [part]),
    );
  }

  // Numbers without a source stay text.
  /** @type {(text: string) => (Node | string)[]} */
  buildNumbers(text) {
    const numbers = text.split(",").map(Number);
    if (!numbers.some((number) => this.byNumber.has(number))) return [`[${text}]`];
    return numbers.map((number) => {
      const chip = this.byNumber.get(number);
      return chip ? this.buildNumber(number, chip) : `[${number}]`;
    });
  }

  /** @type {(number: number, chip: HTMLElement) => HTMLElement} */
  buildNumber(number, chip) {
    const label = fill(this.texts.source, { number });
    const open = () => {
      if (chip.closest("[hidden]")) this.showAll();
      if (chip !== this.opened) chip.click();
      if (chip instanceof HTMLButtonElement) chip.focus({ preventScroll: true });
      this.passage.scrollIntoView({ block: "nearest" });
    };
    return button(String(number), open, {
      class: "citation",
      "aria-label": label,
      title: chip.title,
    });
  }
}
