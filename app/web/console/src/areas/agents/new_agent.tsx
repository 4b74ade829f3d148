import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextArea, TextField } from "../../ui/field";
import { whileHere } from "../../ui/state";
import { Problem } from "../../ui/states";
import { ModelField, NoModels, useModels } from "./model_field";

export function NewAgent({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const models = useModels();
  const [name, setName] = useState("");
  const [chosen, setModel] = useState("");
  const [prompt, setPrompt] = useState("");
  const model = chosen || models[0]?.id || "";
  const create = useChange(
    () =>
      api.post("/api/v1/agents", {
        body: { name, primary_model: model, system_prompt: prompt || t().agents.firstPrompt },
      }),
    ["/api/v1/agents"],
  );
  const texts = t().agents;
  const errors = create.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    create.mutate(undefined, {
      onSuccess: whileHere(({ id }) => route(href(`/agents/${id}`))),
    });
  };
  return (
    <Dialog
      title={t().common.newAgent}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="new-agent" busy={create.isPending}>
            {texts.create}
          </Button>
        </>
      }
    >
      <form id="new-agent" class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          value={name}
          onInput={setName}
          error={errors.name}
          maxLength={100}
          autoFocus
          required
        />
        <NoModels />
        <ModelField value={model} onChange={setModel} error={errors.primary_model} />
        <TextArea
          label={texts.prompt}
          hint={texts.promptHint}
          placeholder={texts.firstPrompt}
          value={prompt}
          onInput={setPrompt}
          error={errors.system_prompt}
          isOptional
        />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}
