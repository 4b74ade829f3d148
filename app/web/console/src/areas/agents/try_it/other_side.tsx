// What the agent in the editor is compared with: the live agent, an earlier version, another model.
import { useRead } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { useModels } from "../model_field";
import type { Fields } from "../state";

type Version = Schemas["VersionView"];

const VERSIONS = "/api/v1/agents/{agent_id}/versions";
const LIVE = "live";

export interface OtherSide {
  choice: string;
  versions: Version[];
  // The fields that its turns need to be with other values than the live ones.
  fields: Fields;
}

export function useOtherSide(
  agentId: string,
  choice: string | undefined,
  draft: Fields,
): OtherSide | null {
  const versions = useRead(VERSIONS, { path: { agent_id: agentId }, query: { per_page: 100 } }, {
    enabled: choice !== undefined,
  });
  if (choice === undefined) return null;
  const rows = versions.data?.data ?? [];
  return { choice, versions: rows, fields: fieldsOf(choice, draft, rows) };
}

function fieldsOf(choice: string, draft: Fields, versions: Version[]): Fields {
  const [kind, key = ""] = split(choice);
  if (kind === "model") return { ...draft, primary_model: key };
  const version = versions.find(({ version }) => String(version) === key);
  if (kind !== "version" || !version) return {};
  const { primary_model, system_prompt, temperature, max_tokens } = version;
  return { primary_model, system_prompt, temperature, max_tokens };
}

// Names of models have colons too.
function split(choice: string): [string, string?] {
  const colon = choice.indexOf(":");
  return colon < 0 ? [choice] : [choice.slice(0, colon), choice.slice(colon + 1)];
}

// The live agent when the editor has something else, or else another model.
export function useFirstChoice(draft: Fields): string {
  const models = useModels();
  const last = models.at(-1);
  return Object.keys(draft).length || !last ? LIVE : `model:${last.id}`;
}

export function OtherSidePicker(
  { side, onChange }: { side: OtherSide; onChange: (choice: string) => void },
) {
  const texts = t().agents;
  const { choice, versions } = side;
  const [kind, model] = split(choice);
  const ids = useModels().map(({ id }) => id);
  const models = kind === "model" && model && !ids.includes(model) ? [model, ...ids] : ids;
  const option = (value: string, label: string) => (
    <option key={value} value={value} selected={value === choice}>{label}</option>
  );
  return (
    <select
      class="chat-side"
      aria-label={texts.tryIt.compareWith}
      value={choice}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {option(LIVE, texts.tryIt.liveVersion)}
      <optgroup label={texts.tryIt.otherModel}>
        {models.map((id) => option(`model:${id}`, id))}
      </optgroup>
      <optgroup label={texts.tabs.versions}>
        {versions.map(({ version, note }) =>
          option(
            `version:${version}`,
            [texts.versionTitle(version), note].filter(Boolean).join(" · "),
          )
        )}
      </optgroup>
    </select>
  );
}
