// A field for code. It is a plain text area until the editor is loaded, and stays one where that
// fails; while it has the focus, it is not replaced.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { t } from "../texts";
import type { CodeEditorProps } from "./code_editor";
import type { Language } from "./code_languages";
import { Field } from "./field";

interface CodeFieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  isOptional?: boolean;
  language: Language;
  value: string;
  onInput: (value: string) => void;
}

type Editor = ComponentType<CodeEditorProps>;
let part: Promise<Editor | null> | null = null;

// A reload for it, as for other parts that are gone after an upgrade, would lose what was typed.
function loadEditor(): Promise<Editor | null> {
  part ??= import("./code_editor").then(({ default: editor }) => editor, () => part = null);
  return part;
}

export function CodeField(
  { label, hint, error, isOptional = false, language, value, onInput }: CodeFieldProps,
) {
  const [Editor, setEditor] = useState<Editor | null>(null);
  const [isFocused, setFocused] = useState(false);
  useEffect(() => {
    let isGone = false;
    void loadEditor().then((loaded) => isGone || setEditor(() => loaded));
    return () => {
      isGone = true;
    };
  }, []);
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional}>
      {(control) =>
        Editor && !isFocused
          ? (
            <Editor
              id={control.id}
              label={isOptional ? `${label} (${t().common.optional})` : label}
              describedBy={control["aria-describedby"]}
              isInvalid={Boolean(error)}
              help={t().forms.codeKeys}
              language={language}
              value={value}
              onInput={onInput}
            />
          )
          : (
            <textarea
              class="code-input"
              spellcheck={false}
              autocapitalize="off"
              dir="ltr"
              rows={3}
              {...control}
              value={value}
              onInput={(event) => onInput(event.currentTarget.value)}
              onFocus={() => setFocused(true)}
              onBlur={() => setFocused(false)}
            />
          )}
    </Field>
  );
}
