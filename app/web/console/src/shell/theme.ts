import { effect, signal } from "@preact/signals";

import { readStored, store } from "../ui/state";

export type Theme = "system" | "light" | "dark";
export const THEMES: Theme[] = ["system", "light", "dark"];
const KEY = "parley-theme";

export const theme = signal<Theme>(readStored<Theme>(KEY) ?? "system");

effect(() => {
  const scheme = theme.value === "system" ? "light dark" : theme.value;
  document.documentElement.style.setProperty("--scheme", scheme);
  store(KEY, theme.value === "system" ? null : theme.value);
});
