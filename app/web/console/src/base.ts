// Where the console is: the path of the instance, which a proxy may have put under another one.
export const BASE = document.querySelector<HTMLMetaElement>('meta[name="parley-base"]')?.content ??
  "";
export const CONSOLE = `${BASE}/console`;
export const DOCS = `${BASE}/docs`;

// The address of a screen, such as `/agents`.
export function href(path: string, query?: Record<string, string | undefined>): string {
  return `${CONSOLE}${path === "/" ? "" : path}${search(query)}`;
}

export function search(query: Record<string, string | undefined> | undefined): string {
  const pairs = Object.entries(query ?? {}).filter((pair): pair is [string, string] =>
    Boolean(pair[1])
  );
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}
