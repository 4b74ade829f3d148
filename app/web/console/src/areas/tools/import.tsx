// A tool from an OpenAPI document: the document first, then which of its operations.
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Body, Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { TextArea, TextField } from "../../ui/field";
import { Page, Section } from "../../ui/page";
import { Problem } from "../../ui/states";
import { ChooseOperations, type Settings } from "./import_operations";

const PATH = "/v1/tools/import-openapi";

type Source = Pick<Body<typeof PATH, "post">, "document" | "url">;

export function ImportTool() {
  const { route } = useLocation();
  const [source, setSource] = useState<Source | null>(null);
  const read = useChange((body: Source) => api.post(PATH, { body: { ...body, dry_run: true } }));
  const create = useChange(
    (settings: Settings) => api.post(PATH, { body: { ...source, ...settings } }),
    ["/v1/tools"],
  );
  const texts = t().tools;
  const load = async (next: Source) => {
    setSource(next);
    create.reset();
    await read.mutateAsync(next).catch(() => null);
  };
  const finish = async (settings: Settings) => {
    const made = await create.mutateAsync(settings).catch(() => null);
    if (made?.data.tool) route(href(`/tools/${made.data.tool.id}`), true);
  };
  return (
    <Page
      title={texts.fromOpenApi}
      about={texts.fromOpenApiAbout}
      parents={[{ label: t().rail.tools, to: "/tools" }]}
    >
      <SourceForm
        isBusy={read.isPending}
        error={read.error}
        hasRead={Boolean(read.data)}
        onRead={(next) => void load(next)}
      />
      {read.data && !read.isPending && (
        <ChooseOperations
          key={read.submittedAt}
          document={read.data.data as Schemas["ImportedApi"]}
          isBusy={create.isPending}
          error={create.error}
          onCreate={(settings) => void finish(settings)}
        />
      )}
    </Page>
  );
}

function SourceForm(
  { isBusy, error, hasRead, onRead }: {
    isBusy: boolean;
    error: { fields: Record<string, string> } | null;
    hasRead: boolean;
    onRead: (source: Source) => void;
  },
) {
  const [url, setUrl] = useState("");
  const [text, setText] = useState("");
  const texts = t().tools;
  const errors = error?.fields ?? {};
  const upload = async (file: File | undefined) => {
    if (file) setText(await file.text());
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        onRead(text ? { document: text } : { url });
      }}
    >
      <Section title={texts.document}>
        <TextField
          label={texts.documentUrl}
          dir="ltr"
          placeholder="https://api.example.com/openapi.json"
          value={url}
          onInput={setUrl}
          error={errors.url}
          disabled={Boolean(text)}
        />
        <TextArea
          label={texts.documentText}
          class="code-input document"
          dir="ltr"
          spellcheck={false}
          rows={6}
          value={text}
          onInput={setText}
          error={errors.document}
        />
        <div class="row">
          <label class="button upload">
            {texts.chooseFile}
            <input
              type="file"
              accept=".json,.yaml,.yml,application/json,application/yaml"
              onChange={(event) => void upload(event.currentTarget.files?.[0])}
            />
          </label>
          <Button
            type="submit"
            kind={hasRead ? "quiet" : "primary"}
            busy={isBusy}
            disabled={!url && !text}
          >
            {isBusy ? texts.reading : texts.readDocument}
          </Button>
        </div>
        {Object.keys(errors).length === 0 && <Problem error={error} />}
      </Section>
    </form>
  );
}
