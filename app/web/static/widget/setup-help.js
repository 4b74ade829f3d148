// Tells the owner of a site, in the browser's console, why the chat is refused there.

const PREFIX_CHARS = 12;
let isExplained = false;

// A browser does not say which of both is wrong when it refuses a frame.
/** @type {(apiKey: string, cause: "key" | "origin" | "either") => void} */
export function explainSetup(apiKey, cause) {
  if (isExplained) return;
  isExplained = true;
  const { origin } = location;
  const advice = [];
  if (cause !== "key") {
    advice.push(`Add "${origin}" to allowed_domains of this key: PUT /api/v1/embed/api-keys/:id.`);
  }
  if (cause !== "origin") {
    advice.push(
      "If there is no such key, or it was revoked, create one with POST /api/v1/embed/api-keys and put it into data-api-key.",
    );
  }
  const key = `${apiKey.slice(0, PREFIX_CHARS)}…`;
  // deno-lint-ignore no-console
  console.error(`Parley: the chat is refused on ${origin} with the key ${key} ${advice.join(" ")}`);
}
