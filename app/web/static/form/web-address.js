// Returns an address only if it is one of the web: never one that runs a script.
/** @type {(text: string | null) => string | null} */
export function toWebAddress(text) {
  try {
    const url = new URL(text ?? "");
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}
