// The texts of the console, in the language of the user. What every screen needs is there from the
// start; the texts of an area are loaded with it.
import { signal } from "@preact/signals";

import { loadPart } from "../load_part";
import * as en from "./en";

type Texts<T> = {
  [K in keyof T]: T[K] extends (...values: infer V) => string ? (...values: V) => string
    : T[K] extends string ? string
    : Texts<T[K]>;
};
type Shell = Texts<typeof en.shell>;
export type Part = keyof typeof en.parts;
type Parts = {
  [K in Part]: Texts<Awaited<ReturnType<(typeof en.parts)[K]>>["default"]>;
};
export type Catalog = Shell & Parts;
export interface Language {
  shell: Shell;
  parts: { [K in Part]: () => Promise<{ default: Parts[K] }> };
}

const LOADERS: Record<string, () => Promise<Language>> = {
  en: () => Promise.resolve(en),
  de: () => loadPart(() => import("./de")),
};
const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);
const KEY = "parley-language";

export const LANGUAGES: Record<string, string> = {
  en: "English",
  de: "Deutsch",
};
export const language = signal("en");
const catalog = signal(en.shell as unknown as Catalog);
const wanted = new Set<Part>();
// One at a time, so that what was asked for last is what is shown.
let loading: Promise<void> = Promise.resolve();
let shown = "";

// Components that call it are drawn again when the language changes. The texts of an area are there
// once its screens are shown.
export function t(): Catalog {
  return catalog.value;
}

export async function loadTexts(parts: Part[]): Promise<void> {
  if (parts.every((part) => wanted.has(part))) return loading;
  parts.forEach((part) => wanted.add(part));
  try {
    await useLanguage(() => language.peek());
  } catch (error) {
    parts.forEach((part) => wanted.delete(part));
    throw error;
  }
}

// Loads the language that the user chose, or the first of the browser's that there is.
export async function loadLanguage(): Promise<void> {
  const names = [localStorage.getItem(KEY), ...navigator.languages];
  const code = names.map((name) => name?.slice(0, 2)).find((name) => name && name in LOADERS);
  await useLanguage(() => code ?? "en");
}

export async function chooseLanguage(code: string): Promise<void> {
  localStorage.setItem(KEY, code);
  await useLanguage(() => code);
}

function useLanguage(choose: () => string): Promise<void> {
  const next = loading.catch(() => {}).then(() => show(choose()));
  loading = next;
  return next;
}

async function show(code: string): Promise<void> {
  const { shell, parts } = await (LOADERS[code] ?? LOADERS.en)();
  const names = [...wanted];
  const now = [code, ...names].join();
  // Every screen is drawn again with new texts.
  if (now === shown) return;
  const texts = await Promise.all(
    names.map(async (name) => (await parts[name]()).default),
  );
  catalog.value = {
    ...shell,
    ...Object.fromEntries(names.map((name, index) => [name, texts[index]])),
  } as Catalog;
  shown = now;
  language.value = code;
  document.documentElement.lang = code;
  document.documentElement.dir = RIGHT_TO_LEFT.has(code) ? "rtl" : "ltr";
}
