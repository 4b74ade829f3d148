import { useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Switch, TextField } from "../../ui/field";
import { Problem } from "../../ui/states";

export const LIST = "/api/v1/views";
const ONE = "/api/v1/views/{saved_view_id}";

// The row of a list has no tag, so that the view is read before it is changed.
export async function changeView(id: string, body: Schemas["UpdateSavedView"]) {
  const path = { saved_view_id: id };
  const view = await api.get(ONE, { path });
  return api.put(ONE, { path, body }, { ifMatch: tagOf(view) });
}

export function ViewDialog(
  { view, filters, onSaved, onClose }: {
    view: Schemas["SavedViewView"] | undefined;
    filters: Record<string, string>;
    onSaved: (id: string) => void;
    onClose: () => void;
  },
) {
  const [name, setName] = useState(view?.name ?? "");
  const [isShared, setShared] = useState(view?.is_shared ?? false);
  const texts = t().conversations;
  const save = useChange(() => {
    const body = { name: name.trim(), is_shared: isShared };
    return view
      ? changeView(view.id, body)
      : api.post(LIST, { body: { ...body, kind: "conversations", filters } });
  }, [LIST]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!save.isPending) save.mutate(undefined, { onSuccess: ({ id }) => onSaved(id) });
  };
  return (
    <Dialog title={view ? texts.editView : texts.saveView} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          value={name}
          onInput={setName}
          error={save.error?.fields.name}
          required
          maxLength={100}
          autoFocus
        />
        <Switch
          label={texts.share}
          hint={texts.shareHint}
          value={isShared}
          onChange={setShared}
        />
        {!save.error?.fields.name && <Problem error={save.error} />}
        <div class="form-end">
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" busy={save.isPending}>{t().common.save}</Button>
        </div>
      </form>
    </Dialog>
  );
}
