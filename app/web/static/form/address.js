// What the address of the page says. Its fragment is for secrets and for the embedding script: a
// browser sends it to no server.

const MODES = new Set(["form", "chat"]);
const THEMES = new Set(["light", "dark"]);

export function readAddress({ search, hash } = window.location) {
  const query = new URLSearchParams(search);
  const fragment = new URLSearchParams(hash.slice(1));
  return {
    mode: MODES.has(query.get("mode")) ? query.get("mode") : "form",
    theme: THEMES.has(fragment.get("theme")) ? fragment.get("theme") : null,
    draft: fragment.get("draft"),
    // The page that embeds this one.
    page: fragment.get("page"),
    isEmbedded: fragment.has("embed"),
    values: { ...Object.fromEntries(query), ...readValues(fragment.get("values")) },
  };
}

function readValues(text) {
  try {
    const values = JSON.parse(text ?? "{}");
    return values && typeof values === "object" ? values : {};
  } catch {
    return {};
  }
}

export function setDraft(token) {
  const address = new URL(window.location.href);
  const fragment = new URLSearchParams(address.hash.slice(1));
  fragment.set("draft", token);
  address.hash = fragment.toString();
  window.history.replaceState(null, "", address);
}
