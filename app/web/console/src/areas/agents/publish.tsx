// Shows what publishing changes, and asks for a line about it.
import { useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { toProblem } from "../../api/problem";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { changesBetween, Diff } from "../../ui/diff";
import { TextField } from "../../ui/field";
import { Problem } from "../../ui/states";
import { type AgentState, toValues, type Values } from "./state";

export function PublishDialog(
  { state, onClose, onPublished, onStale }: {
    state: AgentState;
    onClose: () => void;
    onPublished: () => void;
    // Somebody has saved another draft meanwhile: the state has to be read again.
    onStale: () => void;
  },
) {
  const [note, setNote] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const texts = t().agents;
  const { agent } = state;
  const values = toValues(state);
  const live = toValues({ agent, draft: null });
  const code = error === null ? null : toProblem(error).code;
  const isStale = code === "precondition_failed";
  const isOutdated = Boolean(state.draft?.draft.is_outdated) ||
    code === "draft_outdated";
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await publish(state, values, note, isOutdated);
      onPublished();
    } catch (problem) {
      setError(problem);
      if (toProblem(problem).code === "precondition_failed") onStale();
    } finally {
      setBusy(false);
    }
  };
  const changes = changesBetween(live, values);
  return (
    <Dialog
      title={texts.publishTitle}
      isWide={changes.length > 0}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="publish" busy={isBusy}>
            {isOutdated ? texts.publishOver : texts.publish}
          </Button>
        </>
      }
    >
      <form id="publish" class="stack" onSubmit={submit}>
        {agent.status !== "published" && <p>{texts.publishFirst}</p>}
        {isOutdated && <p class="note warn">{texts.outdated}</p>}
        {isStale && <p class="note warn" role="alert">{texts.otherDraft}</p>}
        {changes.length > 0 && (
          <>
            <TextField
              label={texts.note}
              hint={texts.noteHint}
              value={note}
              onInput={setNote}
              maxLength={500}
              isOptional
              autoFocus
            />
            <Diff
              changes={changes}
              labels={fieldLabels()}
              left={texts.live}
              right={texts.draft}
            />
          </>
        )}
        {error !== null && !isOutdated && !isStale && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

export function fieldLabels(): Record<keyof Values, string> {
  const texts = t().agents;
  return {
    name: t().common.name,
    description: t().common.description,
    primary_model: texts.model,
    system_prompt: texts.prompt,
    temperature: texts.temperature,
    max_tokens: texts.maxTokens,
  };
}

// An agent that was never live becomes so with its first publishing.
async function publish(
  { agent, draft }: AgentState,
  values: Values,
  note: string,
  overwrite: boolean,
): Promise<void> {
  const path = { agent_id: agent.id };
  let shown = draft;
  if (agent.status !== "published") {
    const body = { ...values, status: "published" as const };
    if (!draft) {
      await api.put("/api/v1/agents/{agent_id}", { path, body: { status: "published" } });
      return;
    }
    const ifMatch = tagOf(draft);
    shown = await api.put("/api/v1/agents/{agent_id}/draft", { path, body }, { ifMatch });
  }
  // Not what somebody else has saved meanwhile, which nobody has seen here.
  const body = { note, overwrite, saved_at: shown?.draft.saved_at ?? null };
  await api.post("/api/v1/agents/{agent_id}/draft/publish", { path, body });
}
