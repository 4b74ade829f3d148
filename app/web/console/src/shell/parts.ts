// Parts of the console that are loaded when they are needed.
import { loadTexts, type Part } from "../texts";

const KEY = "parley-reloaded";

// After an upgrade, the files that an open page names are gone: the page is loaded again, once.
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    const part = await load();
    sessionStorage.removeItem(KEY);
    return part;
  } catch (error) {
    if (sessionStorage.getItem(KEY)) throw error;
    sessionStorage.setItem(KEY, "1");
    location.reload();
    return new Promise(() => {});
  }
}

// A screen and the texts that it shows.
export function loadScreen<T>(load: () => Promise<T>, texts: Part[]): Promise<T> {
  return loadPart(async () => (await Promise.all([load(), loadTexts(texts)]))[0]);
}
