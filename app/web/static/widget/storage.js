// What the browser keeps of a chat. Where storage is blocked, it is kept until the page is left.

const MAX_ITEMS = 20;
const MAX_AGE_MS = 90 * 24 * 3600 * 1000;

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

// A list of things with ids, the newest first: at most 20, of the last 90 days.
export class StoredList {
  /** @param {ChatStorage} storage @param {string} field */
  constructor(storage, field) {
    this.storage = storage;
    this.field = field;
  }

  /** @type {() => StoredItem[]} */
  list() {
    try {
      /** @type {StoredItem[]} */
      const items = JSON.parse(this.storage.get(this.field) ?? "[]");
      return items.filter(({ id, at }) => id && Date.now() - at < MAX_AGE_MS);
    } catch {
      return [];
    }
  }

  /** @type {(id: string) => boolean} */
  has(id) {
    return this.list().some((item) => item.id === id);
  }

  // An item that is known keeps its title.
  /** @type {(id: string, title?: string) => void} */
  add(id, title = "") {
    const items = this.list();
    const known = items.find((item) => item.id === id);
    const item = { id, title: known?.title || title, at: Date.now() };
    this.save([item, ...items.filter((other) => other !== known)].slice(0, MAX_ITEMS));
  }

  /** @type {(id: string) => void} */
  remove(id) {
    this.save(this.list().filter((item) => item.id !== id));
  }

  /** @type {(items: StoredItem[]) => void} */
  save(items) {
    this.storage.set(this.field, JSON.stringify(items));
  }
}
