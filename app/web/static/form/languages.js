// Loads the texts of the page in another language than English.
import { useTable } from "./texts.js";

/** @type {Record<string, () => Promise<typeof import("./languages/de.js")>>} */
const TABLES = {
  de: () => import("./languages/de.js"),
  fr: () => import("./languages/fr.js"),
  es: () => import("./languages/es.js"),
  pt: () => import("./languages/pt.js"),
  it: () => import("./languages/it.js"),
  nl: () => import("./languages/nl.js"),
  pl: () => import("./languages/pl.js"),
  tr: () => import("./languages/tr.js"),
  ru: () => import("./languages/ru.js"),
  ar: () => import("./languages/ar.js"),
  hi: () => import("./languages/hi.js"),
  ja: () => import("./languages/ja.js"),
  zh: () => import("./languages/zh.js"),
};

// A page whose texts cannot be loaded stays English.
/** @type {(language: string) => Promise<void>} */
export async function loadLanguage(language) {
  try {
    useTable(language, await TABLES[language]());
  } catch {
    document.documentElement.lang = "en";
    document.documentElement.dir = "ltr";
  }
}
