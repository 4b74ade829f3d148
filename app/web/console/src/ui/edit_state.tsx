// What an editor shows beside its fields: whether all is saved, edits of an earlier visit, and
// changes of somebody else.
import { CircleCheck, CircleDot } from "lucide-preact";
import type { ComponentChildren } from "preact";

import { t } from "../texts";
import { Button, type Kind } from "./button";
import { Dialog } from "./dialog";
import { changesBetween, Diff } from "./diff";
import type { Editor } from "./editor";
import { formatAgo } from "./format";
import { Problem } from "./states";

interface Props<Rec extends object, Values extends object> {
  editor: Editor<Rec, Values>;
}

export function SaveState<Rec extends object, Values extends object>(
  { editor }: Props<Rec, Values>,
) {
  const texts = t().common;
  return (
    <span class="save-state" role="status">
      {editor.isSaving ? texts.saving : editor.isChanged
        ? (
          <>
            <CircleDot aria-hidden="true" /> {texts.unsaved}
          </>
        )
        : editor.isSaved && (
          <>
            <CircleCheck aria-hidden="true" /> {texts.saved}
          </>
        )}
    </span>
  );
}

export function SaveButton<Rec extends object, Values extends object>(
  { editor, label, kind = "primary" }: Props<Rec, Values> & { label?: string; kind?: Kind },
) {
  return (
    <Button
      kind={kind}
      busy={editor.isSaving}
      disabled={!editor.isChanged}
      onClick={() => editor.isChanged && editor.save()}
    >
      {label ?? t().common.save}
    </Button>
  );
}

export function EditNotes<Rec extends object, Values extends object>(
  { editor, toValues, labels }: Props<Rec, Values> & {
    toValues: (record: Rec) => Values;
    labels: Record<string, string>;
  },
) {
  const { copy, conflict } = editor;
  return (
    <>
      {copy && (
        <div class="note" role="status">
          <span>{t().localCopy.offer(formatAgo(copy.at))}</span>
          <Button onClick={copy.restore}>{t().localCopy.restore}</Button>
          <Button kind="plain" onClick={copy.discard}>{t().localCopy.discard}</Button>
        </div>
      )}
      <Problem error={editor.problem} />
      {conflict && (
        <Dialog
          title={t().conflict.title}
          canDismiss={false}
          isWide
          onClose={conflict.takeTheirs}
          actions={
            <>
              <Button onClick={conflict.takeTheirs}>{t().conflict.takeTheirs}</Button>
              <Button kind="primary" onClick={conflict.keepMine}>{t().conflict.keepYours}</Button>
            </>
          }
        >
          <p>{t().conflict.about}</p>
          <Diff
            changes={changesBetween(toValues(conflict.theirs), editor.values)}
            labels={labels}
            left={t().conflict.theirs}
            right={t().conflict.yours}
          />
        </Dialog>
      )}
    </>
  );
}

// A record that is edited in a dialog. Cancelling gives the edits up.
export function EditDialog<Rec extends object, Values extends object>(
  { title, onClose, extra, children, ...notes }:
    & Props<Rec, Values>
    & Pick<Parameters<typeof EditNotes<Rec, Values>>[0], "toValues" | "labels">
    & {
      title: string;
      onClose: () => void;
      extra?: ComponentChildren;
      children: ComponentChildren;
    },
) {
  const { editor } = notes;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          {extra}
          <span class="grow" />
          <SaveState editor={editor} />
          <Button
            onClick={() => {
              editor.discard();
              onClose();
            }}
          >
            {t().common.cancel}
          </Button>
          <SaveButton editor={editor} />
        </>
      }
    >
      <EditNotes {...notes} />
      <form
        class="stack"
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void editor.save();
        }}
      >
        {children}
      </form>
    </Dialog>
  );
}
