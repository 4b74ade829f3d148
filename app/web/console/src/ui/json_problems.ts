// Marks where a text stops being JSON.
import { syntaxTree } from "@codemirror/language";
import { Decoration, type DecorationSet, type EditorView, ViewPlugin } from "@codemirror/view";

const MARK = Decoration.mark({ class: "cm-problem" });

export const jsonProblems = ViewPlugin.define(
  (view) => {
    let tree = syntaxTree(view.state);
    const plugin = {
      marks: findMarks(view),
      update: ({ view }: { view: EditorView }) => {
        const next = syntaxTree(view.state);
        if (next === tree) return;
        tree = next;
        plugin.marks = findMarks(view);
      },
    };
    return plugin;
  },
  { decorations: ({ marks }) => marks },
);

function findMarks({ state }: EditorView): DecorationSet {
  const { length } = state.doc;
  const marks: ReturnType<typeof MARK.range>[] = [];
  let end = 0;
  syntaxTree(state).iterate({
    enter: ({ type, from, to }) => {
      if (!type.isError || !length) return;
      // What is missing has no width: the character before it is marked.
      const start = Math.max(end, from === to ? Math.max(0, from - 1) : from);
      const stop = Math.min(length, Math.max(to, start + 1));
      if (start >= stop) return;
      marks.push(MARK.range(start, stop));
      end = stop;
    },
  });
  return Decoration.set(marks);
}
