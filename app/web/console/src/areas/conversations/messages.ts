// The messages of a conversation, from its end backwards, and those that are added while it is open.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

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
  const isBusy = useRef(false);
  const latest = useRef<Message[]>();
  latest.current = messages;

  const read = (query: { before?: string; after?: string }) =>
    api.get(PATH, { path: { conversation_id: id }, query: { ...query, limit: LIMIT } });

  const attempt = useCallback(async (action: () => Promise<void>) => {
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      await action();
      setError(null);
    } catch (problem) {
      setError(toProblem(problem));
    }
    isBusy.current = false;
  }, []);

  const readOlder = () =>
    attempt(async () => {
      const first = latest.current?.[0];
      const page = await read(first ? { before: first.id } : {});
      setOlder(page.has_more ?? false);
      setMessages((now) => [...page.data, ...now ?? []]);
    });

  const readNewer = () =>
    attempt(async () => {
      const last = latest.current?.at(-1);
      const page = await read(last ? { after: last.id } : {});
      if (!page.data.length) return;
      setMessages((now) => [...now ?? [], ...page.data]);
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
      setMessages((now) =>
        now?.map((message) => (message.id === messageId ? { ...message, ...changes } : message))
      ),
  };
}
