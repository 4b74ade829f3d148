// Where a page leads to.

// Returns the whole address of a path of this site, or of the fallback: "//host", and a path that a
// browser reads as one of another site, are not followed.
/** @type {(path: string | null, origin: string, fallback: string) => string} */
export function findNext(path, origin, fallback) {
  if (path?.startsWith("/") && URL.canParse(path, origin)) {
    const url = new URL(path, origin);
    if (url.origin === origin) return url.href;
  }
  return new URL(fallback, origin).href;
}
