// A document that somebody writes here, without a file.
import { useState } from "preact/hooks";

import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextArea, TextField } from "../../ui/field";
import { addFiles } from "./uploads";

export function AddText(
  { agentId, isInternal, onClose }: { agentId: string; isInternal: boolean; onClose: () => void },
) {
  const [name, setName] = useState("");
  const [text, setText] = useState("");
  const texts = t().knowledge;
  const submit = (event: Event) => {
    event.preventDefault();
    const fileName = /\.(?:md|txt)$/i.test(name) ? name : `${name.trim()}.md`;
    addFiles(agentId, [new File([text], fileName, { type: "text/markdown" })], isInternal);
    onClose();
  };
  return (
    <Dialog
      title={texts.writeText}
      onClose={onClose}
      isWide
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="add-text">{texts.addText}</Button>
        </>
      }
    >
      <form id="add-text" class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          hint={texts.textNameHint}
          value={name}
          onInput={setName}
          maxLength={200}
          required
        />
        <TextArea label={texts.text} value={text} onInput={setText} rows={10} required />
      </form>
    </Dialog>
  );
}
