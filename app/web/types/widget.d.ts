// Types of app/web/static/widget: what the server sends, and what its modules share.
import type { Chat as ChatClass } from "../static/widget/chat.js";
import type { MessageView as MessageClass } from "../static/widget/message.js";
import type { Announcer as AnnouncerClass } from "../static/widget/announcer.js";
import type { ChatError as ErrorClass, Session as SessionClass } from "../static/widget/session.js";
import type { Voice as VoiceClass } from "../static/widget/voice.js";
import type { TEXTS } from "../static/widget/texts.js";

declare global {
  interface Window {
    Parley?: object;
  }

  type Chat = ChatClass;
  type MessageView = MessageClass;
  type Announcer = AnnouncerClass;
  type Session = SessionClass;
  type ChatError = ErrorClass;
  type Voice = VoiceClass;

  type Texts = Record<keyof typeof TEXTS, string>;

  // The data attributes of the script tag.
  type WidgetOptions = Record<string, string | undefined>;

  // What the launcher, or the page in a frame, offers to the panel.
  interface PanelContext {
    base: string;
    options: WidgetOptions;
    host: HTMLElement;
    shadow: ShadowRoot;
    isFilled?: boolean;
    isOpen(): boolean;
    close(): void;
    addUnread(): void;
  }

  interface MountedPanel {
    open(options?: { focus?: boolean }): void;
    close(): void;
    identify(userToken: string | null): unknown;
    destroy(): void;
  }

  interface ChatOptions {
    session: Session;
    texts: Texts;
    options: WidgetOptions;
    announcer: Announcer;
    onAgent(agent: Agent): void;
    onReply(): void;
  }

  interface Agent {
    name: string;
    allow_voice: boolean;
  }

  type Role = "user" | "assistant";

  interface ChatMessage {
    role: Role;
    content: string;
    status?: string;
    sources?: Source[];
    isGreeting?: boolean;
  }

  interface Source {
    document_name: string;
    chunk_preview: string;
    metadata?: { page?: unknown; url?: unknown };
  }

  interface SessionState {
    agent: Agent;
    messages: ChatMessage[];
    visitor_name?: string | null;
  }

  // The data of the events of a turn.
  interface TurnData {
    delta: string;
    position: number;
    sources: Source[];
    code: string;
  }

  interface ChatStorage {
    get(field: string): string | null;
    set(field: string, value: string | null): void;
  }

  interface Player {
    button: HTMLElement;
    stop(): void;
  }

  interface SessionOptions {
    base: string;
    agentId: string;
    apiKey: string;
    userToken: string | null;
    storage: ChatStorage;
  }

  // What the launcher says to the panel in a frame.
  interface PanelMessage {
    options?: WidgetOptions;
    focus?: boolean;
    userToken?: string | null;
  }

  // Builds the body of a request for a session.
  type BuildBody = (sessionId: string) => object;

  type Ask = (
    method: string,
    path: string,
    build?: BuildBody,
    signal?: AbortSignal,
  ) => Promise<Response>;

  type Fetch = (
    method: string,
    path: string,
    credential: string | null,
    body?: object,
    signal?: AbortSignal,
  ) => Promise<Response>;

  // Names the text that a visitor reads.
  type ErrorKind = keyof Texts | "hidden";

  interface VoiceReply {
    transcript: string;
    assistant_reply: { content: string };
    sources: Source[];
  }
}
