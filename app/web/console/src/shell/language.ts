// The language of the profile, which follows the user from browser to browser.
import { computed, effect } from "@preact/signals";

import { api } from "../api/client";
import { session, updateUser } from "../api/session";
import { chooseLanguage, LANGUAGES } from "../texts";

const ofProfile = computed(() => {
  const user = session.value?.user;
  return user?.has_chosen_language ? user.language.slice(0, 2) : undefined;
});

// After the sign-in, the language of the profile wins, if somebody has chosen one.
effect(() => {
  if (ofProfile.value && ofProfile.value in LANGUAGES) void chooseLanguage(ofProfile.value);
});

export async function saveLanguage(language: string): Promise<void> {
  await chooseLanguage(language);
  if (!session.peek()) return;
  updateUser({ language, has_chosen_language: true });
  // What fails here is read again with the next session.
  await api.put("/api/v1/profile", { body: { language } }).catch(() => null);
}
