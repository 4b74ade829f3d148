// A question that is recorded here, or in a file: what was understood, and the answer.
import { Mic, Square, Upload } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useChange } from "../../../api/queries";
import type { Input } from "../../../api/types";
import { t } from "../../../texts";
import { Button, LinkButton } from "../../../ui/button";
import { Markdown } from "../../../ui/content";
import { Problem } from "../../../ui/states";

const ASK = "/api/v1/agents/{agent_id}/chat/audio";
const MAX_SECONDS = 120;

export function SpokenQuestion({ agentId }: { agentId: string }) {
  const texts = t().agents.voice;
  const ask = useChange((recording: Blob) => {
    const form = new FormData();
    form.append("audio", recording, "question");
    const input = { path: { agent_id: agentId }, body: form };
    return api.post(ASK, input as unknown as Input<typeof ASK, "post">);
  });
  const recorder = useRecorder((recording) => ask.mutate(recording));
  const reply = ask.data;
  return (
    <div class="stack narrow">
      <div class="row">
        {recorder.isSupported && (
          <Button
            icon={recorder.isRecording ? Square : Mic}
            busy={ask.isPending}
            onClick={recorder.toggle}
          >
            {recorder.isRecording ? texts.finish : texts.record}
          </Button>
        )}
        <label class="button upload">
          <Upload aria-hidden="true" /> {texts.chooseRecording}
          <input
            type="file"
            accept=".wav,.mp3,.webm,audio/*"
            onChange={({ currentTarget }) => {
              const [file] = currentTarget.files ?? [];
              if (file && !ask.isPending) ask.mutate(file);
              currentTarget.value = "";
            }}
          />
        </label>
        <span role="status" class="soft">
          {recorder.isRecording ? texts.isRecording : ask.isPending && texts.isListening}
        </span>
      </div>
      {recorder.isDenied && <p class="problem" role="alert">{texts.noMicrophone}</p>}
      <Problem error={ask.error} />
      {reply && !ask.isPending && (
        <div class="card stack" role="group" aria-label={texts.answer}>
          <p class="question" dir="auto">{reply.transcript}</p>
          <Markdown text={reply.message.content} />
          <div>
            <LinkButton to={`/conversations/${reply.conversation_id}`}>
              {texts.openConversation}
            </LinkButton>
          </div>
        </div>
      )}
    </div>
  );
}

// Records until it is stopped, at most two minutes. The microphone is released with the component.
function useRecorder(onRecorded: (recording: Blob) => void) {
  const [isRecording, setRecording] = useState(false);
  const [isDenied, setDenied] = useState(false);
  const current = useRef<MediaRecorder | null>(null);
  const isGone = useRef(false);
  const latest = useRef(onRecorded);
  latest.current = onRecorded;
  useEffect(() => () => {
    isGone.current = true;
    current.current?.stop();
  }, []);
  const start = async () => {
    setDenied(false);
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true }).catch(() => null);
    if (!stream) return setDenied(true);
    const release = () => stream.getTracks().forEach((track) => track.stop());
    if (isGone.current) return release();
    const chunks: Blob[] = [];
    const recorder = new MediaRecorder(stream);
    const timer = setTimeout(() => recorder.stop(), MAX_SECONDS * 1000);
    recorder.ondataavailable = ({ data }) => chunks.push(data);
    recorder.onstop = () => {
      clearTimeout(timer);
      release();
      current.current = null;
      if (isGone.current) return;
      setRecording(false);
      latest.current(new Blob(chunks, { type: recorder.mimeType }));
    };
    current.current = recorder;
    recorder.start();
    setRecording(true);
  };
  return {
    // Pages without https have no microphone.
    isSupported: Boolean(navigator.mediaDevices) && "MediaRecorder" in globalThis,
    isRecording,
    isDenied,
    toggle: () => current.current ? current.current.stop() : void start(),
  };
}
