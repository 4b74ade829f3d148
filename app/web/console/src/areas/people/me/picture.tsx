import { ImageUp, Trash2 } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { api } from "../../../api/client";
import { queries, useChange } from "../../../api/queries";
import { session, updateUser } from "../../../api/session";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { Card, Section } from "../../../ui/page";
import { Avatar, pathOfPicture } from "../../../ui/small";
import { Problem } from "../../../ui/states";
import { notify } from "../../../ui/toast";
import { nameOf } from "../roles";
import type { ProfileRecord } from "./profile";

const KINDS = ["image/png", "image/jpeg", "image/webp"];
const MAX_BYTES = 2 * 1024 * 1024;

// A file that was chosen is shown before it is sent.
export function Picture({ profile }: { profile: ProfileRecord }) {
  const texts = t().people.me;
  const input = useRef<HTMLInputElement>(null);
  const [file, setFile] = useState<File | null>(null);
  const [refusal, setRefusal] = useState("");
  const preview = useObjectUrl(file);
  const done = (text: string, url: string | null) => {
    setFile(null);
    updateUser({ avatar_url: url });
    void queries.invalidateQueries({ queryKey: ["/api/v1/profile"] });
    notify(text);
  };
  const send = useChange(async (chosen: File) => {
    const body = new FormData();
    body.set("avatar", chosen);
    const { avatar_url } = await api.post("/api/v1/profile/avatar", { body });
    done(texts.pictureSaved, avatar_url);
  });
  const remove = useChange(async () => {
    await api.delete("/api/v1/profile/avatar", {});
    done(texts.pictureRemoved, null);
  });
  const choose = (chosen: File | undefined) => {
    if (!chosen) return;
    send.reset();
    const isKnown = KINDS.includes(chosen.type);
    setRefusal(!isKnown ? texts.pictureKind : chosen.size > MAX_BYTES ? texts.pictureSize : "");
    setFile(isKnown && chosen.size <= MAX_BYTES ? chosen : null);
  };
  const isVerified = session.value?.user.email_verified;
  const picture = session.value?.user.avatar_url ?? null;
  return (
    <Section title={texts.picture}>
      <Card class="picture">
        <Avatar name={nameOf(profile)} src={preview ?? pathOfPicture(picture)} />
        <div class="stack">
          <p class="soft">
            {preview ? texts.preview : isVerified ? texts.pictureHint : texts.verifyFirst}
          </p>
          <input
            ref={input}
            type="file"
            hidden
            aria-label={texts.choosePicture}
            accept={KINDS.join()}
            onChange={(event) => {
              choose(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
          {isVerified && (
            <div class="actions">
              {file && (
                <Button
                  kind="primary"
                  busy={send.isPending}
                  onClick={() => send.mutate(file)}
                >
                  {texts.usePicture}
                </Button>
              )}
              {file && <Button onClick={() => setFile(null)}>{t().common.cancel}</Button>}
              {!file && (
                <Button icon={ImageUp} onClick={() => input.current?.click()}>
                  {texts.choosePicture}
                </Button>
              )}
              {!file && picture && (
                <Button
                  icon={Trash2}
                  busy={remove.isPending}
                  onClick={() => remove.mutate(undefined)}
                >
                  {texts.removePicture}
                </Button>
              )}
            </div>
          )}
          {refusal && <p class="problem" role="alert">{refusal}</p>}
          <Problem error={send.error ?? remove.error} />
        </div>
      </Card>
    </Section>
  );
}

function useObjectUrl(file: File | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!file) return undefined;
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => {
      setUrl(null);
      URL.revokeObjectURL(made);
    };
  }, [file]);
  return url;
}
