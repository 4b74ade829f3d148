// Asks the documents a question, and shows what each part of the search finds.
import { Search } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, toCurl } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Checkbox, TextField } from "../../ui/field";
import { formatNumber } from "../../ui/format";
import { Badge } from "../../ui/small";
import { Empty, Problem, Skeleton } from "../../ui/states";
import { placeOf } from "./passages";

const PATH = "/api/v1/agents/{agent_id}/search";
const SHOWN = 10;
// Each part of the search contributes at most so many.
const LIMIT = 50;

type Passage = Schemas["PassageView"];
const PARTS = ["both", "vector", "words"] as const;
type Part = typeof PARTS[number];
const SCORES: Record<Part, (passage: Passage) => number | null> = {
  both: ({ relevance_score }) => relevance_score,
  vector: ({ vector_score }) => vector_score,
  words: ({ word_score }) => word_score,
};

export function RetrievalTest({ agentId }: { agentId: string }) {
  const [query, setQuery] = useState("");
  const [onlyPublic, setOnlyPublic] = useState(false);
  const path = { agent_id: agentId };
  const body = { query, limit: LIMIT, only_public: onlyPublic };
  const search = useChange((request: Schemas["SearchRequest"]) =>
    api.post(PATH, { path, body: request })
  );
  const texts = t().knowledge;
  const submit = (event: Event) => {
    event.preventDefault();
    search.mutate(body);
  };
  const fields = search.error?.fields ?? {};
  return (
    <>
      <form class="stack" onSubmit={submit}>
        <TextField
          label={texts.question}
          hint={texts.questionHint}
          value={query}
          onInput={setQuery}
          maxLength={10_000}
          error={fields.query}
          required
        />
        <div class="row">
          <Button kind="primary" type="submit" icon={Search} busy={search.isPending}>
            {texts.find}
          </Button>
          <Checkbox label={texts.asVisitor} value={onlyPublic} onChange={setOnlyPublic} />
          <CopyButton
            kind="plain"
            text={toCurl("POST", PATH, { path, body })}
            label={t().common.copyCurl}
          />
        </div>
      </form>
      {!fields.query && <Problem error={search.error} />}
      <div aria-live="polite" aria-busy={search.isPending}>
        {search.isPending
          ? <Skeleton />
          : search.data && <Results agentId={agentId} passages={search.data.data} />}
      </div>
    </>
  );
}

function Results({ agentId, passages }: { agentId: string; passages: Passage[] }) {
  const texts = t().knowledge;
  if (!passages.length) return <Empty title={texts.foundNothing}>{texts.foundNothingAbout}</Empty>;
  const quoted = passages.filter(({ is_quoted }) => is_quoted).length;
  return (
    <div class="stack">
      <p class="soft">{quoted ? texts.quotes(quoted) : texts.quotesNothing}</p>
      <div class="results">
        {PARTS.map((part) => (
          <Column
            key={part}
            agentId={agentId}
            part={part}
            passages={passages}
          />
        ))}
      </div>
    </div>
  );
}

function Column(
  { agentId, part, passages }: { agentId: string; part: Part; passages: Passage[] },
) {
  const score = SCORES[part];
  const found = passages
    .filter((passage) => score(passage) !== null)
    .sort((one, other) => (score(other) ?? 0) - (score(one) ?? 0));
  const most = score(found[0] ?? {} as Passage) || 1;
  const texts = t().knowledge;
  return (
    <section aria-label={texts.parts[part]}>
      <h2>{texts.parts[part]}</h2>
      <p class="hint">{texts.partsAbout[part]}</p>
      {found.length === 0 && <p class="soft">{texts.partFoundNothing}</p>}
      <ol>
        {found.slice(0, SHOWN).map((passage) => (
          <Result
            key={`${passage.document_id} ${passage.content}`}
            agentId={agentId}
            passage={passage}
            score={score(passage) ?? 0}
            share={(score(passage) ?? 0) / most}
          />
        ))}
      </ol>
    </section>
  );
}

function Result(
  { agentId, passage, score, share }: {
    agentId: string;
    passage: Passage;
    score: number;
    share: number;
  },
) {
  const place = placeOf(passage);
  return (
    <li class={passage.is_quoted ? "quoted" : ""}>
      <div class="result-head">
        <a href={href(`/knowledge/${agentId}/${passage.document_id}`)} dir="auto">
          {passage.document_name}
        </a>
        <span class="figure">
          {formatNumber(score, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}
        </span>
      </div>
      <progress value={Math.max(0, share)} max={1} aria-hidden="true" />
      {(place || passage.is_quoted) && (
        <p class="soft result-place">
          {passage.is_quoted && <Badge tone="accent">{t().knowledge.quoted}</Badge>}
          <span dir="auto">{place}</span>
        </p>
      )}
      <details>
        <summary dir="auto">{passage.content.slice(0, 400)}</summary>
        <p dir="auto" class="passage-text">{passage.content}</p>
      </details>
    </li>
  );
}
