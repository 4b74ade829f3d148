// Parts of the console that are loaded when they are needed.
import { BASE } from "./base";

const KEY = "parley-reloaded";
const ASK_AGAIN_MS = 1_000;

// While the server restarts, it waits. After an upgrade, the files that an open page names are gone:
// the page is loaded again, once for each build.
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch {
    await waitForServer();
  }
  try {
    return await load();
  } catch (error) {
    const build = document.querySelector<HTMLScriptElement>("script[type=module]")?.src ?? "";
    if (sessionStorage.getItem(KEY) === build) throw error;
    sessionStorage.setItem(KEY, build);
    location.reload();
    return new Promise(() => {});
  }
}

async function waitForServer(): Promise<void> {
  while (!await isThere()) await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
}

function isThere(): Promise<boolean> {
  return fetch(`${BASE}/health/live`, { cache: "no-store" }).then(({ ok }) => ok, () => false);
}
