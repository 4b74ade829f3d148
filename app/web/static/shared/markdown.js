// Markdown as DOM nodes. Nothing is ever read as HTML: tags in the text stay text.
//
// Supports paragraphs, headings, lists, tables, quotes, code, emphasis and links. Every pattern
// takes time in proportion to its line, so that no text can stall the page.
import { el, required } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DELIMITERS = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const SAFE_SCHEMES = new Set(["http:", "https:", "mailto:", "tel:"]);
const MAX_DEPTH = 6;
// The pattern of delimiters takes time in proportion to the square of the line.
const MAX_DELIMITERS = 500;

// Renders into an element. Blocks whose source did not change since the last call keep their nodes,
// so that a reply that grows is drawn at its end only.
export class MarkdownView {
  /** @type {string[]} */
  sources = [];

  // `wrapCode` returns what stands in the place of a block of code.
  /** @param {HTMLElement} element @param {(code: HTMLElement) => HTMLElement} wrapCode */
  constructor(element, wrapCode = (code) => code) {
    this.element = element;
    this.wrapCode = wrapCode;
  }

  /** @type {(text: string) => void} */
  update(text) {
    const blocks = splitBlocks(text.split(/\r?\n/));
    let same = 0;
    while (same < blocks.length && blocks[same].source === this.sources[same]) same += 1;
    while (this.element.childNodes.length > same) this.element.lastChild?.remove();
    for (const block of blocks.slice(same)) this.element.append(this.build(block));
    this.sources = blocks.map((block) => block.source);
  }

  /** @type {(block: Block) => HTMLElement} */
  build(block) {
    const node = buildBlock(block, 0);
    if (node instanceof HTMLPreElement) return this.wrapCode(node);
    for (const code of node.querySelectorAll("pre")) {
      const place = el("div");
      code.replaceWith(place);
      place.replaceWith(this.wrapCode(code));
    }
    return node;
  }
}

// For a line that is known to match.
/** @type {(pattern: RegExp, line: string) => RegExpExecArray} */
function exec(pattern, line) {
  return required(pattern.exec(line));
}

// Blocks: each has its type, its lines and their source.
/** @type {(lines: string[]) => Block[]} */
function splitBlocks(lines) {
  /** @type {Block[]} */
  const blocks = [];
  let index = 0;
  while (index < lines.length) {
    if (!lines[index].trim()) {
      index += 1;
      continue;
    }
    const [type, end] = findBlock(lines, index);
    const own = lines.slice(index, end);
    blocks.push({ type, lines: own, source: `${type}\n${own.join("\n")}` });
    index = end;
  }
  return blocks;
}

// Returns the type of the block that starts at a line, and the line after it.
/** @type {(lines: string[], start: number) => [BlockType, number]} */
function findBlock(lines, start) {
  const line = lines[start];
  if (FENCE.test(line)) return ["code", findFenceEnd(lines, start)];
  if (HEADING.test(line)) return ["heading", start + 1];
  if (RULE.test(line)) return ["rule", start + 1];
  if (/^ {0,3}>/.test(line)) {
    return ["quote", findEnd(lines, start, (next) => /^ {0,3}>/.test(next))];
  }
  if (ITEM.test(line)) return ["list", findListEnd(lines, start)];
  if (isTable(lines, start)) return ["table", findEnd(lines, start, (next) => next.includes("|"))];
  return ["paragraph", findParagraphEnd(lines, start)];
}

/** @type {(lines: string[], start: number, belongs: (line: string) => boolean) => number} */
function findEnd(lines, start, belongs) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && belongs(lines[end])) end += 1;
  return end;
}

/** @type {(lines: string[], start: number) => number} */
function findFenceEnd(lines, start) {
  const [, fence] = exec(FENCE, lines[start]);
  for (let end = start + 1; end < lines.length; end += 1) {
    const closing = lines[end].trim();
    if (closing.startsWith(fence) && !closing.replaceAll(fence[0], "")) return end + 1;
  }
  return lines.length;
}

// An item goes on over blank lines as long as what follows is indented or another item.
/** @type {(lines: string[], start: number) => number} */
function findListEnd(lines, start) {
  let end = start + 1;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    const isBlank = !line.trim();
    if (isBlank) {
      const next = lines[end + 1] ?? "";
      if (!/^\s{2,}\S/.test(next) && !ITEM.test(next)) break;
    } else if (!/^\s/.test(line) && !ITEM.test(line) && startsBlock(lines, end)) {
      break;
    }
  }
  return end;
}

/** @type {(lines: string[], start: number) => number} */
function findParagraphEnd(lines, start) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines, end)) end += 1;
  return end;
}

/** @type {(lines: string[], index: number) => boolean} */
function startsBlock(lines, index) {
  const line = lines[index];
  const starts = [FENCE, HEADING, RULE, ITEM].some((pattern) => pattern.test(line));
  return starts || /^ {0,3}>/.test(line) || isTable(lines, index);
}

/** @type {(lines: string[], start: number) => boolean} */
function isTable(lines, start) {
  const delimiters = lines[start + 1] ?? "";
  const isShort = delimiters.length < MAX_DELIMITERS;
  return (
    lines[start].includes("|") && delimiters.includes("-") && isShort && DELIMITERS.test(delimiters)
  );
}

/** @type {(block: Block, depth: number) => HTMLElement} */
function buildBlock({ type, lines }, depth) {
  if (type === "code") return buildCode(lines);
  if (type === "heading") return buildHeading(lines[0]);
  if (type === "rule") return el("hr");
  if (type === "list") return buildList(lines, depth);
  if (type === "table") return buildTable(lines);
  if (type === "quote") {
    return el(
      "blockquote",
      {},
      buildBlocks(
        lines.map((line) => line.replace(/^ {0,3}> ?/, "")),
        depth,
      ),
    );
  }
  return el("p", { dir: "auto" }, buildInline(lines.map((line) => line.trimStart()).join("\n")));
}

/** @type {(lines: string[], depth: number) => HTMLElement[]} */
function buildBlocks(lines, depth) {
  if (depth >= MAX_DEPTH) return [el("p", { dir: "auto" }, lines.join("\n"))];
  return splitBlocks(lines).map((block) => buildBlock(block, depth + 1));
}

/** @type {(lines: string[]) => HTMLElement} */
function buildCode(lines) {
  const [, fence] = exec(FENCE, lines[0]);
  const isClosed = lines.length > 1 && lines[lines.length - 1].trim().startsWith(fence);
  const text = lines.slice(1, isClosed ? -1 : undefined).join("\n");
  return el("pre", { tabindex: 0, dir: "ltr" }, el("code", {}, text));
}

// The panel's own headings come before those of a reply.
const HEADINGS = /** @type {const} */ (["h3", "h4", "h5", "h6"]);

/** @type {(line: string) => HTMLElement} */
function buildHeading(line) {
  const [, marks, text] = exec(HEADING, line);
  return el(
    HEADINGS[Math.min(marks.length, 4) - 1],
    { dir: "auto" },
    buildInline(text.trimEnd().replace(/ #+$/, "")),
  );
}

/** @type {(lines: string[], depth: number) => HTMLElement} */
function buildList(lines, depth) {
  const [, indent, mark] = exec(ITEM, lines[0]);
  const isOrdered = /\d/.test(mark);
  /** @type {string[][]} */
  const items = [];
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match && match[1].length <= indent.length + 1) items.push([match[3]]);
    else items[items.length - 1].push(line.slice(Math.min(countIndent(line), indent.length + 4)));
  }
  const start = Number.parseInt(mark, 10);
  const children = items.map((item) => el("li", { dir: "auto" }, buildItem(item, depth)));
  return el(isOrdered ? "ol" : "ul", { start: isOrdered && start !== 1 ? start : null }, children);
}

/** @type {(lines: string[], depth: number) => Child[]} */
function buildItem(lines, depth) {
  const blocks = buildBlocks(lines, depth);
  const [first] = blocks;
  // The text of a plain item needs no paragraph.
  if (first?.tagName === "P") return [...first.childNodes, ...blocks.slice(1)];
  return blocks;
}

/** @type {(line: string) => number} */
function countIndent(line) {
  return line.length - line.trimStart().length;
}

/** @type {(lines: string[]) => HTMLElement} */
function buildTable(lines) {
  const [head, delimiters, ...rows] = lines.map(splitCells);
  const alignments = delimiters.map((cell) => {
    if (!cell.endsWith(":")) return null;
    return cell.startsWith(":") ? "center" : "end";
  });
  /** @type {(cells: string[], tag: "th" | "td") => HTMLElement} */
  const buildRow = (cells, tag) =>
    el(
      "tr",
      {},
      head.map((_, index) =>
        el(tag, { class: alignments[index], dir: "auto" }, buildInline(cells[index] ?? ""))
      ),
    );
  const table = el(
    "table",
    {},
    el("thead", {}, buildRow(head, "th")),
    el(
      "tbody",
      {},
      rows.map((cells) => buildRow(cells, "td")),
    ),
  );
  return el("div", { class: "table", tabindex: 0 }, table);
}

/** @type {(line: string) => string[]} */
function splitCells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

// What is within a line: code, links, emphasis.
const INLINE = new RegExp(
  [
    "(?<escaped>\\\\[\\\\`*_{}\\[\\]()#+.!|~>-])",
    "(?<code>`+)",
    '(?<image>!)?\\[(?<label>[^\\[\\]]{0,1000})\\]\\((?<target>[^\\s()]{1,2000})(?:\\s+"[^"]{0,200}")?\\)',
    "<?(?<url>(?:https?://|mailto:)[^\\s<>\"'`]{1,2000})>?",
    "(?<mark>\\*\\*|__|~~|\\*|_)",
    "\\n",
  ].join("|"),
  "gu",
);
/** @type {Record<string, "strong" | "del" | "em">} */
const TAGS = { "**": "strong", __: "strong", "~~": "del", "*": "em", _: "em" };

/** @type {(text: string, depth?: number) => Child[]} */
export function buildInline(text, depth = 0) {
  /** @type {Child[]} */
  const nodes = [];
  let index = 0;
  const addText = (/** @type {number} */ end) => {
    if (end > index) nodes.push(text.slice(index, end));
  };
  const pattern = new RegExp(INLINE);
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const found = buildSpan(text, match, depth);
    if (!found) continue;
    addText(match.index);
    nodes.push(...found.nodes);
    index = found.end;
    pattern.lastIndex = index;
  }
  addText(text.length);
  return nodes;
}

// Returns the nodes that a match stands for and where they end, or null for plain text.
/** @type {(text: string, match: RegExpExecArray, depth: number) => Span | null} */
function buildSpan(text, match, depth) {
  const { escaped, code, image, label, target, url, mark } = required(match.groups);
  const end = match.index + match[0].length;
  if (escaped) return { nodes: [escaped[1]], end };
  if (code) return buildInlineCode(text, match.index, code);
  if (label !== undefined) {
    const children = image || depth >= MAX_DEPTH ? [label] : buildInline(label, depth + 1);
    return { nodes: buildLink(target, children), end };
  }
  if (url) {
    const trimmed = url.replace(/[.,:;!?)\]]+$/, "");
    const tail = match[0].startsWith("<") ? "" : url.slice(trimmed.length);
    return { nodes: [...buildLink(trimmed, [trimmed]), tail].filter(Boolean), end };
  }
  if (mark) return buildEmphasis(text, match.index, mark, depth);
  return { nodes: [el("br")], end };
}

/** @type {(text: string, start: number, ticks: string) => Span | null} */
function buildInlineCode(text, start, ticks) {
  const from = start + ticks.length;
  const end = text.indexOf(ticks, from);
  if (end < 0) return null;
  return {
    nodes: [el("code", { dir: "ltr" }, text.slice(from, end).trim())],
    end: end + ticks.length,
  };
}

/** @type {(text: string, start: number, mark: string, depth: number) => Span | null} */
function buildEmphasis(text, start, mark, depth) {
  const from = start + mark.length;
  let end = text.indexOf(mark, from + 1);
  // Of `**a *b***`, the last two close the first two.
  if (mark.length > 1 && end >= 0 && text[end + mark.length] === mark[0]) end += 1;
  const isWithinWord = mark.startsWith("_") && /\w/.test(text[start - 1] ?? "");
  if (
    end < 0 ||
    depth >= MAX_DEPTH ||
    isWithinWord ||
    /\s/.test(text[from]) ||
    /\s/.test(text[end - 1])
  ) {
    return null;
  }
  // `**a*b**` closes at the longer mark.
  if (mark.length === 1 && text[end + 1] === mark && text[end - 1] !== mark) return null;
  const children = buildInline(text.slice(from, end), depth + 1);
  return { nodes: [el(TAGS[mark], {}, children)], end: end + mark.length };
}

// A link to another page; with any other scheme it stays text.
/** @type {(target: string, children: Child[]) => Child[]} */
export function buildLink(target, children) {
  const address = toSafeAddress(target);
  if (!address) return children;
  return [
    el("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, children),
  ];
}

/** @type {(text: string) => string | null} */
export function toSafeAddress(text) {
  try {
    const url = new URL(text);
    return SAFE_SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

// What is left for reading aloud: the words without their marks and addresses.
/** @type {(text: string) => string} */
export function toPlainText(text) {
  return text
    .replace(/\[([^[\]]{0,1000})\]\([^\s()]{0,2000}\)/g, "$1")
    .replace(/^[\s|:-]+$|^ *(?:[-+*]|```\w*) ?/gm, "")
    .replace(/[*_`~#>|]+/g, "")
    .trim();
}
