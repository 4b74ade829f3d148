// The files of a script.
import { Plus, Trash2 } from "lucide-preact";

import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CodeField } from "../../ui/code_field";
import type { Language } from "../../ui/code_languages";
import { TextField } from "../../ui/field";
import { useRows } from "../../ui/rows";
import { useReport, type Validity } from "../../ui/validity";

export function FilesField(
  { name, label, hint, error, value, onChange, validity }: {
    name: string;
    label: string;
    hint?: string | undefined;
    error?: string | undefined;
    value: Record<string, string>;
    onChange: (value: unknown) => void;
    validity: Validity;
  },
) {
  const table = useRows(value, onChange);
  useReport(validity, name, !table.hasDouble);
  const texts = t().tools;
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      {table.rows.map(({ id, key, value: content }) => (
        <div key={id} class="card stack">
          <TextField
            label={texts.fileName}
            dir="ltr"
            value={key}
            error={table.isDouble(key) ? t().forms.double : undefined}
            onInput={(next) => table.set(id, { key: next })}
          />
          <CodeField
            label={texts.content}
            language={languageOf(key)}
            value={content}
            onInput={(next) => table.set(id, { value: next })}
          />
          {table.rows.length > 1 && (
            <div>
              <Button
                kind="plain"
                icon={Trash2}
                onClick={() => table.remove(id)}
              >
                {texts.removeFile}
              </Button>
            </div>
          )}
        </div>
      ))}
      {error && <p class="problem" dir="auto">{error}</p>}
      <div>
        <Button icon={Plus} onClick={() => table.add("", "")}>
          {texts.addFile}
        </Button>
      </div>
    </fieldset>
  );
}

const ENDINGS: Record<string, Language> = {
  py: "python",
  js: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  sh: "bash",
  bash: "bash",
  json: "json",
};

function languageOf(file: string): Language {
  const ending = file.slice(file.lastIndexOf(".") + 1).toLowerCase();
  return Object.hasOwn(ENDINGS, ending) ? ENDINGS[ending] ?? "text" : "text";
}
