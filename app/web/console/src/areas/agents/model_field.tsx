import { useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { LinkButton } from "../../ui/button";
import { SelectField } from "../../ui/field";
import { formatCost, formatNumber } from "../../ui/format";

type Model = Schemas["ModelView"];

// The models that agents can use; none while they load.
export function useModels(): Model[] {
  return useModelQuery().data?.data ?? [];
}

export function useModelQuery() {
  return useRead("/api/v1/models", { query: {} }, {
    enabled: may("models:read"),
    staleTime: 60_000,
  });
}

// Says what is missing where no model can be used.
export function NoModels() {
  const models = useModelQuery();
  if (!models.data || models.data.data.length) return null;
  return (
    <p class="note warn">
      <span>{t().agents.noModels}</span>
      {may("models:write") && <LinkButton to="/settings">{t().agents.addKey}</LinkButton>}
    </p>
  );
}

// A model that is stored but not offered any more stays in the list.
export function ModelField(
  { value, onChange, error }: {
    value: string;
    onChange: (value: string) => void;
    error?: string | undefined;
  },
) {
  const models = useModels();
  const ids = models.map(({ id }) => id);
  const choices = [...(value && !ids.includes(value) ? [value] : []), ...ids];
  return (
    <SelectField
      label={t().agents.model}
      hint={describe(models.find(({ id }) => id === value))}
      value={value}
      choices={choices.map((id) => [id, id])}
      onChange={onChange}
      error={error}
    />
  );
}

function describe(model: Model | undefined): string {
  if (!model) return "";
  const texts = t().agents;
  const { context_window, input_cost_per_million, output_cost_per_million } = model;
  return [
    context_window && texts.context(formatNumber(context_window)),
    input_cost_per_million !== null && output_cost_per_million !== null &&
    texts.price(formatCost(input_cost_per_million), formatCost(output_cost_per_million)),
  ].filter(Boolean).join(" · ");
}
