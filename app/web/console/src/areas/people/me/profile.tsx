import { api, tagOf } from "../../../api/client";
import { keyOf, queries, useRead } from "../../../api/queries";
import { updateUser } from "../../../api/session";
import type { Schemas } from "../../../api/types";
import { language as shown, LANGUAGES, t } from "../../../texts";
import { EditNotes, SaveButton, SaveState } from "../../../ui/edit_state";
import { useEditor } from "../../../ui/editor";
import { type Choice, SelectField, TextField } from "../../../ui/field";
import { Section } from "../../../ui/page";
import { Loaded } from "../../../ui/states";
import { Picture } from "./picture";

export type ProfileRecord = Schemas["ProfileView"];
const PATH = "/api/v1/profile";

type Values = Pick<ProfileRecord, "first_name" | "last_name" | "timezone" | "language">;

function toValues(profile: ProfileRecord): Values {
  const { first_name, last_name, timezone } = profile;
  // Until one is chosen, the console has the language of the browser.
  const language = profile.has_chosen_language ? profile.language : shown.value;
  return { first_name, last_name, timezone, language };
}

// Shows a change everywhere at once: the rail has the name, and the texts have the language.
export function adopt(profile: ProfileRecord): void {
  queries.setQueryData(keyOf(PATH, {}), profile);
  updateUser(profile);
}

export function Profile() {
  const profile = useRead(PATH, {});
  return (
    <Loaded query={profile}>
      {(loaded) => (
        <>
          <Picture profile={loaded} />
          <ProfileForm profile={loaded} />
        </>
      )}
    </Loaded>
  );
}

function ProfileForm({ profile }: { profile: ProfileRecord }) {
  const texts = t().people.me;
  const labels = {
    first_name: t().accounts.firstName,
    last_name: t().accounts.lastName,
    timezone: texts.timezone,
    language: texts.language,
  };
  const editor = useEditor<ProfileRecord, Values>({
    name: `profile ${profile.id}`,
    record: profile,
    toValues,
    save: async (body, origin) => {
      await api.put(PATH, { body }, { ifMatch: tagOf(origin) });
      return api.get(PATH, {});
    },
    reload: () => api.get(PATH, {}),
    onSaved: adopt,
  });
  const { values, set, errors } = editor;
  const submit = (event: Event) => {
    event.preventDefault();
    void editor.save();
  };
  return (
    <Section title={texts.profile}>
      <EditNotes editor={editor} toValues={toValues} labels={labels} />
      <form class="card form-grid" onSubmit={submit}>
        <TextField
          label={labels.first_name}
          autocomplete="given-name"
          value={values.first_name}
          onInput={(first_name) => set({ first_name })}
          error={errors.first_name}
          maxLength={100}
        />
        <TextField
          label={labels.last_name}
          autocomplete="family-name"
          value={values.last_name}
          onInput={(last_name) => set({ last_name })}
          error={errors.last_name}
          maxLength={100}
        />
        <SelectField
          label={labels.timezone}
          value={values.timezone}
          choices={zoneChoices(values.timezone)}
          onChange={(timezone) => set({ timezone })}
          error={errors.timezone}
        />
        <SelectField
          label={labels.language}
          hint={texts.languageHint}
          value={values.language}
          choices={languageChoices(values.language)}
          onChange={(language) => set({ language })}
          error={errors.language}
        />
        <div class="form-end">
          <SaveState editor={editor} />
          <SaveButton editor={editor} />
        </div>
      </form>
    </Section>
  );
}

function zoneChoices(current: string): Choice[] {
  const zones = new Set(["UTC", ...Intl.supportedValuesOf("timeZone"), current]);
  return [...zones].map((zone) => [zone, zone.replaceAll("_", " ")]);
}

// Another program may have stored a language that the console does not have.
function languageChoices(current: string): Choice[] {
  const own = Object.entries(LANGUAGES);
  if (current in LANGUAGES) return own;
  const name = new Intl.DisplayNames(shown.value, { type: "language" }).of(current) ?? current;
  return [...own, [current, name]];
}
