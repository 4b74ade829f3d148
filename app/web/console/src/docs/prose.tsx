// Texts of the API document, which are Markdown.
import { Fragment } from "preact";

import { Markdown } from "../ui/content";

// The lines of a paragraph flow: the document breaks them where its sources do.
export function Prose({ text }: { text: string }) {
  return <Markdown text={text.replace(/(\S)\n(?!\s|[-*+>|#]|\d+[.)]|```)/g, "$1 ")} />;
}

// A short text, of which only code is marked.
export function Inline({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, index) =>
        index % 2 ? <code key={index}>{part}</code> : <Fragment key={index}>{part}</Fragment>
      )}
    </>
  );
}
