// The texts of the console, in the language of the user.
import { signal } from "@preact/signals";

import { en } from "./en";

type Texts<T> = {
  [K in keyof T]: T[K] extends (...values: infer V) => string ? (...values: V) => string
    : T[K] extends string ? string
    : Texts<T[K]>;
};
export type Catalog = Texts<typeof en>;

const LOADERS: Record<string, () => Promise<Catalog>> = {
  en: () => Promise.resolve(en),
  de: () => import("./de").then((module) => module.de),
};
const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);
const KEY = "parley-language";

export const LANGUAGES: Record<string, string> = { en: "English", de: "Deutsch" };
export const language = signal("en");
const catalog = signal<Catalog>(en);

// Components that call it are drawn again when the language changes.
export function t(): Catalog {
  return catalog.value;
}

// Loads the language that the user chose, or the first of the browser's that there is.
export async function loadLanguage(): Promise<void> {
  const wanted = [localStorage.getItem(KEY), ...navigator.languages];
  const code = wanted.map((name) => name?.slice(0, 2)).find((name) => name && name in LOADERS);
  await useLanguage(code ?? "en");
}

export async function chooseLanguage(code: string): Promise<void> {
  localStorage.setItem(KEY, code);
  await useLanguage(code);
}

async function useLanguage(code: string): Promise<void> {
  const load = LOADERS[code] ?? LOADERS.en;
  catalog.value = await load();
  language.value = code;
  document.documentElement.lang = code;
  document.documentElement.dir = RIGHT_TO_LEFT.has(code) ? "rtl" : "ltr";
}
