// A test run of a tool, with a form for its input.
import { Play } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { api, toCurl } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Json } from "../../ui/content";
import { CopyButton } from "../../ui/copy";
import { formatDuration } from "../../ui/format";
import { JsonField } from "../../ui/json_field";
import { Section } from "../../ui/page";
import { type Fields, isObject, type Schema, startOf } from "../../ui/schema";
import { SchemaForm } from "../../ui/schema_form";
import { useFilters } from "../../ui/state";
import { Problem } from "../../ui/states";
import { useValidity } from "../../ui/validity";
import { RunStatus } from "./executions";
import { inputOf, type Tool } from "./types";

const PATH = "/v1/tools/{tool_id}/execute";
const EXECUTION = "/v1/tools/{tool_id}/executions/{execution_id}";

type Result = Schemas["ExecutionResult"];

function startValue(schema: Schema | null): Fields {
  const value = schema && startOf(schema, schema);
  return isObject(value) ? value : {};
}

// The input of an earlier run, which the address names.
function useEarlierInput(
  tool: Tool,
  onInput: (input: Fields) => void,
): unknown {
  const [{ again }, change] = useFilters();
  const earlier = useRead(EXECUTION, {
    path: { tool_id: tool.id, execution_id: again ?? "" },
  }, {
    enabled: Boolean(again),
  });
  useEffect(() => {
    if (!earlier.data) return;
    onInput(earlier.data.data.input ?? {});
    change({ again: undefined });
  }, [earlier.data]);
  return again ? earlier.error : null;
}

export function RunTool({ tool }: { tool: Tool }) {
  const schema = inputOf(tool);
  const [input, setInput] = useState<Fields>(() => startValue(schema));
  const [isJson, setJson] = useState(schema === null);
  const validity = useValidity();
  const path = { tool_id: tool.id };
  const texts = t().tools;
  const run = useChange(
    (body: Fields) => api.post(PATH, { path, body: { input: body } }),
    [
      "/v1/tools/{tool_id}/executions",
      "/v1/tools/{tool_id}/stats",
      "/v1/tools",
    ],
  );
  const earlierError = useEarlierInput(tool, (next) => {
    setInput(next);
    run.reset();
  });
  const errors = run.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    if (validity.isValid) run.mutate(input);
  };
  return (
    <div class="split">
      <form class="stack" onSubmit={submit}>
        <Section
          title={texts.input}
          actions={schema && (
            <Button
              kind="plain"
              onClick={() => setJson(!isJson)}
            >
              {isJson ? texts.asForm : texts.asJson}
            </Button>
          )}
        >
          {!tool.is_enabled && (
            <div class="note warn">
              <span>{texts.isDisabled}</span>
            </div>
          )}
          <Problem error={earlierError} />
          {isJson || !schema
            ? (
              <JsonField
                name="input"
                label={texts.inputJson}
                value={input}
                onChange={(value) => setInput((value ?? {}) as Fields)}
                validity={validity}
                isObject
              />
            )
            : (
              <SchemaForm
                schema={schema}
                name="input"
                value={input}
                onChange={setInput}
                errors={errors}
                validity={validity}
                labels={tool.input_schema ? undefined : texts.inputs}
              />
            )}
        </Section>
        <Errors errors={errors} isJson={isJson} />
        {Object.keys(errors).length === 0 && <Problem error={run.error} />}
        <div class="row">
          <Button
            kind="primary"
            type="submit"
            icon={Play}
            busy={run.isPending}
            disabled={!validity.isValid || !tool.is_enabled}
          >
            {run.isPending ? texts.running : texts.runNow}
          </Button>
          <CopyButton
            text={toCurl("POST", PATH, { path, body: { input } })}
            label={t().common.copyCurl}
          />
        </div>
      </form>
      <Output result={run.data?.data} isRunning={run.isPending} />
    </div>
  );
}

// Every message, because not all paths have a field of their own.
function Errors(
  { errors, isJson }: { errors: Record<string, string>; isJson: boolean },
) {
  const all = Object.entries(errors).filter(([path]) => isJson || path.split(".").length !== 2);
  return (
    <>
      {all.map(([path, text]) => (
        <p key={path} class="problem" role="alert" dir="auto">
          {`${path}: ${text}`}
        </p>
      ))}
    </>
  );
}

function Output(
  { result, isRunning }: { result: Result | undefined; isRunning: boolean },
) {
  const texts = t().tools;
  return (
    <Section title={texts.output}>
      <div class="stack" aria-live="polite" aria-busy={isRunning}>
        {!result && <p class="soft">{isRunning ? texts.running : texts.noOutput}</p>}
        {result && (
          <>
            <div class="row">
              <RunStatus status={result.status} />
              <span class="soft">
                {formatDuration(result.execution_time_ms)}
              </span>
            </div>
            {result.error && (
              <div class="note bad">
                <span dir="auto">
                  {result.error.message || result.error.code}
                </span>
                <code>{result.error.code}</code>
              </div>
            )}
            {"output" in result && <Json value={result.output} label={texts.output} />}
          </>
        )}
      </div>
    </Section>
  );
}
