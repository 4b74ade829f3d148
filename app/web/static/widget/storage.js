// What the browser keeps of a chat. Where storage is blocked, it is kept until the page is left.

/** @type {(name: string) => ChatStorage} */
export function openStorage(name) {
  const memory = new Map();
  /** @type {(field: string) => string} */
  const keyOf = (field) => `parley:${name}:${field}`;
  return {
    get(field) {
      try {
        return localStorage.getItem(keyOf(field)) ?? memory.get(field) ?? null;
      } catch {
        return memory.get(field) ?? null;
      }
    },
    set(field, value) {
      try {
        if (value === null) localStorage.removeItem(keyOf(field));
        else localStorage.setItem(keyOf(field), value);
      } catch {
        memory.set(field, value);
      }
    },
  };
}
