// Reads again what has changed, as soon as the server tells that something has. One tab listens for
// all of a browser, which opens few connections to a server. Where nobody may listen, or nothing is
// heard, screens ask now and then all the same.
import { computed, effect } from "@preact/signals";

import { readEvents } from "../../../static/shared/event-stream.js";
import { announce } from "./changes";
import { Problem, send } from "./client";
import { queries } from "./queries";
import { may, session, tenant } from "./session";
import type { PathOf, Schemas } from "./types";

type Path = PathOf<"get">;

const STREAM: Path = "/api/v1/event-log/stream";
const NAME = "parley-live";
const AGAIN_MS = 3_000;
const REFUSED_MS = 60_000;
// No screen is read again more often than this.
const PAUSE_MS = 2_000;

// What screens show of the events whose types begin like this.
const SHOWN: Record<string, Path[]> = {
  "agent.chat.": ["/api/v1/conversations", "/api/v1/conversations/{conversation_id}"],
  "system.document.": [
    "/api/v1/knowledge",
    "/api/v1/agents/{agent_id}/documents",
    "/api/v1/agents/{agent_id}/status",
  ],
  "system.source.": ["/api/v1/agents/{agent_id}/sources"],
  "system.work.": ["/api/v1/work", "/api/v1/work/queues"],
};

const channel = new BroadcastChannel(NAME);
const changed = new Set<Path>();
let flushing: ReturnType<typeof setTimeout> | null = null;

function note(types: string[]): void {
  for (const [start, paths] of Object.entries(SHOWN)) {
    if (types.some((type) => type.startsWith(start))) paths.forEach((path) => changed.add(path));
  }
  flush();
}

function flush(): void {
  if (flushing !== null || document.hidden || !changed.size) return;
  for (const path of changed) {
    void queries.invalidateQueries({ queryKey: [path] });
    announce(path);
  }
  changed.clear();
  flushing = setTimeout(() => {
    flushing = null;
    flush();
  }, PAUSE_MS);
}

document.addEventListener("visibilitychange", flush);

// Tabs that look at another tenant hear of that one.
const listener = computed(() =>
  session.value && may("events:read") ? `${session.value.user.id} ${tenant.value ?? ""}` : null
);

effect(() => {
  const name = listener.value;
  if (!name) return undefined;
  const controller = new AbortController();
  const tell = (types: string[]) => {
    note(types);
    channel.postMessage({ name, types });
  };
  channel.onmessage = ({ data }) => data.name === name && note(data.types);
  // Browsers offer locks to pages with https or on this machine; elsewhere, screens only ask.
  navigator.locks?.request(
    `${NAME} ${name}`,
    { signal: controller.signal },
    () => listen(tell, controller.signal),
  ).catch(() => {});
  return () => controller.abort();
});

async function listen(tell: (types: string[]) => void, signal: AbortSignal): Promise<void> {
  for (let connection = 0; !signal.aborted; connection += 1) {
    let pause = AGAIN_MS;
    try {
      const response = await send("GET", STREAM, {}, { signal });
      // Nobody knows what was missed.
      if (connection) tell(Object.keys(SHOWN));
      for await (const { data } of readEvents<Schemas["NewEvents"]>(response)) tell(data.types);
    } catch (error) {
      const isRefused = error instanceof Problem && error.status >= 400 && error.status < 500;
      if (isRefused) pause = REFUSED_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
