import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Checkbox, PasswordField, SelectField, TextField } from "../../ui/field";
import { Problem } from "../../ui/states";
import { notify } from "../../ui/toast";
import { MODEL_PROVIDERS, SEARCH_PROVIDERS, titleOf } from "./providers";
import { KEYS } from "./provider_keys";

const OWN = "";
const SEARCH_NAMES = SEARCH_PROVIDERS.map(([name]) => name);

export function NewProviderKey({ onClose }: { onClose: () => void }) {
  const [chosen, setChosen] = useState("openai");
  const [own, setOwn] = useState("");
  const [name, setName] = useState("");
  const [key, setKey] = useState("");
  const [address, setAddress] = useState("");
  const [isDefault, setDefault] = useState(false);
  const texts = t().settings.keys;
  const isOwn = chosen === OWN;
  const provider = isOwn ? own : chosen;
  const create = useChange(
    () =>
      api.post(KEYS, {
        body: {
          provider,
          name: name || titleOf(provider),
          api_key: key,
          is_default: isDefault,
          base_url: address || null,
        },
      }),
    [KEYS, "/api/v1/models"],
  );
  const errors = create.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    const added = await create.mutateAsync(undefined).catch(() => null);
    if (!added) return;
    onClose();
    notify(texts.added(added.name));
  };
  return (
    <Dialog
      title={texts.addTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="new-key" busy={create.isPending}>
            {texts.add}
          </Button>
        </>
      }
    >
      <form id="new-key" class="stack" autocomplete="off" onSubmit={submit}>
        <SelectField
          label={texts.provider}
          value={chosen}
          choices={[...MODEL_PROVIDERS, ...SEARCH_PROVIDERS, [OWN, texts.own]]}
          error={isOwn ? undefined : errors.provider}
          hint={SEARCH_NAMES.includes(chosen) ? texts.searchAbout : isOwn ? texts.ownAbout : ""}
          onChange={(value) => {
            setChosen(value);
            setAddress("");
            create.reset();
          }}
        />
        {isOwn && (
          <TextField
            label={texts.ownName}
            hint={texts.ownNameHint}
            value={own}
            onInput={setOwn}
            error={errors.provider}
            maxLength={64}
            required
          />
        )}
        <PasswordField
          label={texts.key}
          hint={texts.keyHint}
          value={key}
          onInput={setKey}
          error={errors.api_key}
          autocomplete="off"
          maxLength={4096}
          required
        />
        {!SEARCH_NAMES.includes(chosen) && (
          <TextField
            label={texts.address}
            hint={texts.addressHint}
            placeholder="https://models.example.com/v1"
            type="url"
            value={address}
            onInput={setAddress}
            error={errors.base_url}
            required={isOwn}
            isOptional={!isOwn}
            maxLength={2000}
          />
        )}
        <TextField
          label={t().common.name}
          hint={texts.nameHint}
          placeholder={titleOf(provider)}
          value={name}
          onInput={setName}
          error={errors.name}
          maxLength={100}
          isOptional
        />
        <Checkbox label={texts.makeDefault} value={isDefault} onChange={setDefault} />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}
