// Speaking with the agent: how it sounds, what it understands, and where visitors may do so.
import { Volume2 } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { api, send } from "../../../api/client";
import { useChange, useList } from "../../../api/queries";
import { may } from "../../../api/session";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button, LinkButton } from "../../../ui/button";
import { Switch, TextArea, TextField } from "../../../ui/field";
import { Section } from "../../../ui/page";
import { Problem, Skeleton } from "../../../ui/states";
import type { TabProps } from "../tabs";
import { SpokenQuestion } from "./spoken_question";

const SPEAK = "/api/v1/agents/{agent_id}/chat/tts";
const KEYS = "/api/v1/embed/api-keys";
type Key = Schemas["EmbedKeyView"];

export function Voice({ agent }: TabProps) {
  const texts = t().agents.voice;
  return (
    <>
      {may("agents:chat") && (
        <>
          <Section title={texts.speakTitle} about={texts.speakAbout}>
            <SpeakForm agentId={agent.id} />
          </Section>
          <Section title={texts.listenTitle} about={texts.listenAbout}>
            <SpokenQuestion agentId={agent.id} />
          </Section>
        </>
      )}
      <Section title={texts.visitorsTitle} about={texts.visitorsAbout}>
        <Visitors agentId={agent.id} />
      </Section>
    </>
  );
}

function SpeakForm({ agentId }: { agentId: string }) {
  const texts = t().agents.voice;
  const [text, setText] = useState(texts.sample);
  const [voice, setVoice] = useState("");
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => () => address ? URL.revokeObjectURL(address) : undefined, [address]);
  const speak = useChange(async () => {
    const body = { text, ...(voice ? { voice } : {}) };
    const response = await send("POST", SPEAK, { path: { agent_id: agentId }, body });
    setAddress(URL.createObjectURL(await response.blob()));
  });
  const errors = speak.error?.fields ?? {};
  return (
    <form
      class="stack narrow"
      onSubmit={(event) => {
        event.preventDefault();
        speak.mutate(undefined);
      }}
    >
      <TextArea
        label={texts.text}
        value={text}
        onInput={setText}
        error={errors.text}
        maxLength={5000}
        required
      />
      <TextField
        label={texts.voiceName}
        hint={texts.voiceHint}
        value={voice}
        onInput={setVoice}
        error={errors.voice}
        dir="ltr"
        maxLength={64}
        isOptional
      />
      <div class="row">
        <Button type="submit" icon={Volume2} busy={speak.isPending}>{texts.speak}</Button>
        {address && <audio controls autoplay src={address} aria-label={texts.recording} />}
      </div>
      {Object.keys(errors).length === 0 && <Problem error={speak.error} />}
    </form>
  );
}

// What visitors may do is a rule of each embed key.
function Visitors({ agentId }: { agentId: string }) {
  const list = useList(KEYS, { query: { agent_id: agentId } });
  const texts = t().agents.voice;
  const change = useChange(
    ({ key, isOn }: { key: Key; isOn: boolean }) =>
      api.put(`${KEYS}/{key_id}`, { path: { key_id: key.id }, body: { allow_voice: isOn } }),
    [KEYS],
  );
  const pending = change.isPending ? change.variables : null;
  if (!list.rows) return list.error ? <Problem error={list.error} /> : <Skeleton rows={2} />;
  if (!list.rows.length) {
    return (
      <p class="row">
        <span class="soft">{texts.noKeys}</span>
        <LinkButton to={`/agents/${agentId}?tab=embedding`}>{texts.openEmbed}</LinkButton>
      </p>
    );
  }
  return (
    <div class="stack">
      {list.rows.map((key) => (
        <Switch
          key={key.id}
          label={key.name}
          hint={key.allowed_domains.join(", ") || t().agents.embed.anywhere}
          value={pending?.key.id === key.id ? pending.isOn : key.allow_voice}
          disabled={change.isPending}
          onChange={(isOn) => change.mutate({ key, isOn })}
        />
      ))}
      {list.hasMore && (
        <div>
          <Button onClick={list.more} busy={list.isLoadingMore}>{t().agents.voice.moreKeys}</Button>
        </div>
      )}
      <Problem error={change.error} />
    </div>
  );
}
