// What the address of the page says. Its fragment is for secrets and for the embedding script: a
// browser sends it to no server.

const MODES = ["form", "chat"];
const THEMES = ["light", "dark"];

export function readAddress({ search, hash } = window.location) {
  const query = new URLSearchParams(search);
  const fragment = new URLSearchParams(hash.slice(1));
  return {
    mode: MODES.find((mode) => mode === query.get("mode")) ?? "form",
    theme: THEMES.find((theme) => theme === fragment.get("theme")) ?? null,
    draft: fragment.get("draft"),
    // The page of the form where the draft was saved.
    step: fragment.get("step"),
    // The page that embeds this one.
    page: fragment.get("page"),
    isEmbedded: fragment.has("embed"),
    // Of the page around, by their names.
    texts: readTexts(fragment.get("texts")),
    values: { ...Object.fromEntries(query), ...readValues(fragment.get("values")) },
  };
}

/** @type {(text: string | null) => Answers} */
function readValues(text) {
  try {
    const values = JSON.parse(text ?? "{}");
    return values && typeof values === "object" ? values : {};
  } catch {
    return {};
  }
}

/** @type {(text: string | null) => Record<string, string>} */
function readTexts(text) {
  const texts = Object.entries(readValues(text)).map(([name, value]) => [name, String(value)]);
  return Object.fromEntries(texts);
}

/** @type {(token: string, step: string) => void} */
export function setDraft(token, step) {
  const address = new URL(window.location.href);
  const fragment = new URLSearchParams(address.hash.slice(1));
  fragment.set("draft", token);
  if (step) fragment.set("step", step);
  address.hash = fragment.toString();
  window.history.replaceState(window.history.state, "", address);
}
