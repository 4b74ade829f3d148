import { t } from "../../texts";
import { NumberField, TextArea, TextField } from "../../ui/field";
import type { Editor } from "../../ui/editor";
import { ModelField } from "./model_field";
import type { AgentState, Values } from "./state";

export function Behaviour({ editor }: { editor: Editor<AgentState, Values> }) {
  const { values, set, errors } = editor;
  const texts = t().agents;
  return (
    <div class="stack">
      <TextArea
        label={texts.prompt}
        value={values.system_prompt}
        onInput={(system_prompt) => set({ system_prompt })}
        error={errors.system_prompt}
        class="prompt"
        rows={12}
      />
      <ModelField
        value={values.primary_model}
        onChange={(primary_model) => set({ primary_model })}
        error={errors.primary_model}
      />
      <div class="columns">
        <NumberField
          label={texts.temperature}
          hint={texts.temperatureHint}
          value={values.temperature}
          onInput={(temperature) => set({ temperature: temperature ?? 0 })}
          error={errors.temperature}
          min={0}
          max={2}
          step={0.1}
        />
        <NumberField
          label={texts.maxTokens}
          hint={texts.maxTokensHint}
          value={values.max_tokens}
          onInput={(max_tokens) => set({ max_tokens: max_tokens ?? 1 })}
          error={errors.max_tokens}
          min={1}
        />
      </div>
      <TextField
        label={t().common.name}
        value={values.name}
        onInput={(name) => set({ name })}
        error={errors.name}
        required
      />
      <TextField
        label={t().common.description}
        hint={texts.descriptionHint}
        value={values.description}
        onInput={(description) => set({ description })}
        error={errors.description}
        isOptional
      />
    </div>
  );
}
