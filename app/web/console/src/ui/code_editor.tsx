// An editor with colours, indentation and undo. It is a part of its own: `CodeField` loads it. Its
// styles are in a shadow root, as constructed style sheets, which the policy of the page allows.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, type ViewUpdate } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

import { type Language, streamOf } from "./code_languages";
import { jsonProblems } from "./json_problems";

export interface CodeEditorProps {
  // The label for it has this id in `for`; hint and error have those in `describedBy`.
  id: string;
  label: string;
  describedBy: string | undefined;
  isInvalid: boolean;
  // How to leave the field by keyboard, for screen readers.
  help: string;
  language: Language;
  value: string;
  onInput: (value: string) => void;
}

const FROM_OUTSIDE = Annotation.define<boolean>();
const MAX_HEIGHT = "60vh";

const COLORS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent-text)" },
  { tag: tags.propertyName, color: "var(--accent-text)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
]);

// All colours are those of the page, which follow its theme by themselves.
const THEME = EditorView.theme({
  "&": { color: "inherit" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    maxHeight: MAX_HEIGHT,
    overflow: "auto",
    fontFamily: "var(--mono)",
    fontSize: "var(--small)",
    lineHeight: "20px",
  },
  ".cm-content": { padding: "7px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 10px" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selected)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent" },
  ".cm-problem": { textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
});

export default function CodeEditor(props: CodeEditorProps) {
  const { id, label, describedBy, isInvalid, help, language, value } = props;
  const host = useRef<HTMLDivElement>(null);
  const about = useRef(document.createElement("p"));
  const view = useRef<EditorView | null>(null);
  // What was emitted and has not come back as a value yet.
  const sent = useRef<string[]>([]);
  const latest = useRef(props);
  latest.current = props;
  const emit = (text: string) => {
    sent.current.push(text);
    latest.current.onInput(text);
  };
  useEffect(() => {
    if (!host.current) return undefined;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    about.current.id = "about";
    about.current.hidden = true;
    const editor = new EditorView({
      parent: root,
      root,
      state: createState(latest.current.value, language, () => latest.current, emit),
    });
    sent.current = [];
    root.append(about.current);
    // Tab leaves the field, until Ctrl-M is pressed.
    editor.setTabFocusMode(true);
    view.current = editor;
    return () => {
      editor.destroy();
      about.current.remove();
    };
  }, [language]);
  useEffect(() => {
    // One's own text comes back later than the next key is pressed.
    const position = sent.current.indexOf(value);
    sent.current.splice(0, position + 1);
    if (position >= 0 || value === view.current?.state.doc.toString()) return;
    sent.current = [];
    view.current?.dispatch({
      changes: { from: 0, to: view.current.state.doc.length, insert: value },
      annotations: FROM_OUTSIDE.of(true),
    });
  }, [value]);
  useEffect(() => {
    const texts = describedBy?.split(" ").map((part) => document.getElementById(part)?.textContent);
    about.current.textContent = [...(texts ?? []), help].filter(Boolean).join(" ");
    // Reads the attributes again.
    view.current?.dispatch({});
  }, [label, describedBy, isInvalid, help, language]);
  useEffect(() => {
    const name = document.querySelector<HTMLElement>(`label[for="${CSS.escape(id)}"]`);
    const focus = () => view.current?.focus();
    name?.addEventListener("click", focus);
    return () => name?.removeEventListener("click", focus);
  }, [id]);
  return <div class={`code-editor ${isInvalid ? "invalid" : ""}`} id={id} dir="ltr" ref={host} />;
}

function createState(
  doc: string,
  language: Language,
  latest: () => CodeEditorProps,
  emit: (text: string) => void,
): EditorState {
  const listen = ({ docChanged, state, transactions }: ViewUpdate) => {
    const isOwn = transactions.every((transaction) => !transaction.annotation(FROM_OUTSIDE));
    if (docChanged && isOwn) emit(state.doc.toString());
  };
  return EditorState.create({
    doc,
    extensions: [
      history(),
      indentOnInput(),
      indentUnit.of(language === "python" ? "    " : "  "),
      bracketMatching(),
      syntaxHighlighting(COLORS),
      languageOf(language),
      keymap.of([indentWithTab, ...defaultKeymap, ...historyKeymap]),
      THEME,
      EditorView.contentAttributes.of(() => attributesOf(latest())),
      EditorView.updateListener.of(listen),
    ],
  });
}

function languageOf(language: Language): Extension {
  if (language === "json") return [json(), jsonProblems];
  return language === "text" ? [] : streamOf(language);
}

function attributesOf({ label, isInvalid }: CodeEditorProps): Record<string, string> {
  return {
    "aria-label": label,
    "aria-describedby": "about",
    // Checks of scrolling parts look for it.
    tabindex: "0",
    ...(isInvalid ? { "aria-invalid": "true" } : {}),
  };
}
