// Loads the texts of the widget in another language than English.

/** @type {Record<string, () => Promise<{ TEXTS: WidgetTable }>>} */
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

// Replaces texts, and those of the launcher, by those of the language of the options. A
// language that is not there, or cannot be loaded, leaves them English.
/** @type {(texts: Texts, context: PanelContext) => Promise<void>} */
export async function load(texts, { host, options, shadow, show, texts: labels }) {
  const language = (options.lang ?? "").toLowerCase().split(/[-_]/)[0];
  if (!Object.hasOwn(TABLES, language)) return;
  try {
    const { TEXTS: { open, unread, ...others } } = await TABLES[language]();
    Object.assign(texts, others);
    if (language === "ar" && options.dir !== "ltr") {
      host.dir = "rtl";
      shadow.adoptedStyleSheets.push(buildSheet());
    }
    if (!labels) return;
    labels.open = options.textOpen ?? open;
    labels.close = options.textClose ?? others.close;
    labels.unread = options.textUnread ?? unread;
    show?.();
  } catch {
    // The connection is lost; the panel says so.
  }
}

// An empty field with dir="auto" would show its placeholder from left to right.
function buildSheet() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("textarea:placeholder-shown { direction: rtl; }");
  return sheet;
}
