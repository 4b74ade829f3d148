// Who reads a path again when it has changed, beside the cache of queries.
const readers = new Map<string, Set<() => unknown>>();

// Calls `read` when the path has to be read again. Returns how to stop that.
export function onChanged(path: string, read: () => unknown): () => void {
  const all = readers.get(path) ?? new Set();
  readers.set(path, all.add(read));
  return () => void all.delete(read);
}

export function announce(path: string): void {
  readers.get(path)?.forEach((read) => read());
}
