// The messages of a conversation, from its end backwards, and those that are added while it is open.
import { useEffect, useRef, useState } from "preact/hooks";

import { api } from "../../api/client";
import { type Problem, toProblem } from "../../api/problem";
import type { Schemas } from "../../api/types";

export type Message = Schemas["MessageView"];

const PATH = "/api/v1/conversations/{conversation_id}/messages";
const LIMIT = 50;
const POLL_MS = 5_000;

export interface Messages {
  // undefined until the end of the conversation is there.
  messages: Message[] | undefined;
  hasOlder: boolean;
  error: Problem | null;
  loadOlder: () => void;
  retry: () => void;
  update: (id: string, changes: Partial<Message>) => void;
}

// `onNew` is called when messages have been added.
export function useMessages(id: string, onNew: () => void): Messages {
  const [messages, setMessages] = useState<Message[]>();
  const [hasOlder, setOlder] = useState(false);
  const [error, setError] = useState<Problem | null>(null);
  const latest = useRef<Message[]>();
  const busy = useRef(new Set<string>());

  const read = (query: { before?: string; after?: string }) =>
    api.get(PATH, { path: { conversation_id: id }, query: { ...query, limit: LIMIT } });
  const show = (change: (now: Message[]) => Message[]) => {
    latest.current = change(latest.current ?? []);
    setMessages(latest.current);
  };

  // One request per end of the conversation at a time.
  const attempt = async (end: "older" | "newer", action: () => Promise<void>) => {
    if (busy.current.has(end)) return;
    busy.current.add(end);
    try {
      await action();
      setError(null);
    } catch (problem) {
      setError(toProblem(problem));
    }
    busy.current.delete(end);
  };

  const readOlder = () =>
    attempt("older", async () => {
      const first = latest.current?.[0];
      const page = await read(first ? { before: first.id } : {});
      setOlder(page.has_more ?? false);
      show((now) => [...page.data, ...now]);
    });

  const readNewer = () =>
    attempt("newer", async () => {
      const last = latest.current?.at(-1);
      const page = await read(last ? { after: last.id } : {});
      if (!page.data.length) return;
      show((now) => [...now, ...page.data]);
      onNew();
    });

  useEffect(() => {
    void readOlder();
    const timer = setInterval(() => {
      if (!document.hidden && latest.current) void readNewer();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, []);

  return {
    messages,
    hasOlder,
    error,
    loadOlder: () => {
      if (hasOlder && !error) void readOlder();
    },
    retry: () => void readOlder(),
    update: (messageId, changes) =>
      show((now) =>
        now.map((message) => (message.id === messageId ? { ...message, ...changes } : message))
      ),
  };
}
