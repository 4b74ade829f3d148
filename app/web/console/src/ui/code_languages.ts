// The colours of code: comments, texts, numbers and keywords. A whole grammar for each language
// would be larger than the editor.
import { StreamLanguage, type StreamParser } from "@codemirror/language";

export type Language = "text" | "json" | "python" | "javascript" | "bash";

interface Spec {
  comment: RegExp;
  // What begins a text, or a comment of several lines, and ends it.
  blocks: [start: string, end: string, style: string][];
  keywords: Set<string>;
}

const words = (text: string) => new Set(text.split(" "));

const SPECS: Record<"python" | "javascript" | "bash", Spec> = {
  python: {
    comment: /^#.*/,
    blocks: [
      ['"""', '"""', "string"],
      ["'''", "'''", "string"],
      ['"', '"', "string"],
      ["'", "'", "string"],
    ],
    keywords: words(
      "and as assert async await break class continue def del elif else except False finally for " +
        "from global if import in is lambda None nonlocal not or pass raise return True try " +
        "while with yield",
    ),
  },
  javascript: {
    comment: /^\/\/.*/,
    blocks: [
      ["/*", "*/", "comment"],
      ["`", "`", "string"],
      ['"', '"', "string"],
      ["'", "'", "string"],
    ],
    keywords: words(
      "async await break case catch class const continue default delete do else export extends " +
        "false finally for from function if import in instanceof let new null of return static " +
        "super switch this throw true try typeof undefined var void while yield",
    ),
  },
  bash: {
    comment: /^#.*/,
    blocks: [['"', '"', "string"], ["'", "'", "string"]],
    keywords: words(
      "case do done elif else esac exit export fi for function if in local return set shift then " +
        "until while",
    ),
  },
};
// A text between these ends with its line.
const SHORT = new Set(['"', "'"]);

interface State {
  block: Spec["blocks"][number] | null;
}

export function streamOf(language: keyof typeof SPECS) {
  return StreamLanguage.define(parserOf(SPECS[language], language === "bash"));
}

function parserOf(spec: Spec, isShell: boolean): StreamParser<State> {
  const isLong = ([start]: Spec["blocks"][number]) => isShell || !SHORT.has(start);
  const readBlock: StreamParser<State>["token"] = (stream, state) => {
    const block = state.block ?? spec.blocks[0];
    const [start, end, style] = block;
    while (!stream.eol()) {
      if (stream.match(end)) {
        state.block = null;
        return style;
      }
      if (stream.next() === "\\" && !(isShell && start === "'")) stream.next();
    }
    if (!isLong(block)) state.block = null;
    return style;
  };
  return {
    startState: () => ({ block: null }),
    token: (stream, state) => {
      if (state.block) return readBlock(stream, state);
      if (stream.eatSpace()) return null;
      // In a shell, only a word can begin a comment.
      const canComment = !isShell || stream.sol() || /\s/.test(stream.string[stream.pos - 1] ?? "");
      if (canComment && stream.match(spec.comment)) return "comment";
      const block = spec.blocks.find(([start]) => stream.match(start));
      if (block) {
        state.block = block;
        return readBlock(stream, state);
      }
      if (stream.match(/^\d[\w.]*/)) return "number";
      if (stream.match(/^[\p{L}_$][\p{L}\p{N}_$]*/u)) {
        return spec.keywords.has(stream.current()) ? "keyword" : null;
      }
      stream.next();
      return null;
    },
  };
}
