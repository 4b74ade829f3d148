// Types of app/web/static/widget: what the server sends, and what its modules share.
import type { Chat as ChatClass } from "../static/widget/chat.js";
import type { MessageView as MessageClass } from "../static/widget/message.js";
import type { Announcer as AnnouncerClass } from "../static/widget/announcer.js";
import type { ChatError as ErrorClass, Session as SessionClass } from "../static/widget/session.js";
import type { EarlierList as EarlierClass } from "../static/widget/earlier.js";
import type { Attachments as AttachmentsClass } from "../static/widget/attachments.js";
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
  type EarlierList = EarlierClass;
  type Voice = VoiceClass;
  type Attachments = AttachmentsClass;

  type Texts = Record<keyof typeof TEXTS, string>;

  // A language: the texts of the panel, and those of the launcher.
  type WidgetTable = Texts & { open: string; unread: string };

  // The data attributes of the script tag.
  type WidgetOptions = Record<string, string | undefined>;

  // What the launcher, or the page in a frame, offers to the panel.
  interface PanelContext {
    base: string;
    options: WidgetOptions;
    host: HTMLElement;
    shadow: ShadowRoot;
    isFilled?: boolean;
    // The labels of the launcher's button, and how it shows them.
    texts?: { open: string; close: string; unread: string };
    show?(): void;
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
    storage: ChatStorage;
    shadow: ShadowRoot;
    texts: Texts;
    options: WidgetOptions;
    announcer: Announcer;
    onAgent(agent: Agent): void;
    onReply(): void;
  }

  interface Agent {
    name: string;
    allow_voice?: boolean;
    allow_feedback?: boolean;
    allow_attachments?: boolean;
  }

  interface ComposerOptions {
    texts: Texts;
    onSend(): void;
    onAct(): void;
  }

  interface EarlierOptions {
    texts: Texts;
    lang?: string;
    items: StoredItem[];
    onOpen(id: string): void;
    onClose(): void;
  }

  interface MessageOptions {
    role: Role;
    texts: Texts;
    name: string;
    isGreeting?: boolean;
  }

  type Role = "user" | "assistant";

  type Rating = "up" | "down";

  interface Feedback {
    rating: Rating;
    comment: string | null;
  }

  // What became of an answer. `interrupted` is one that broke off or was stopped.
  interface Outcome {
    status: "complete" | "interrupted" | "failed";
    sources: Source[];
    feedback: Feedback | null;
    // The turn has just ended.
    isNew?: boolean;
  }

  // A file of a message.
  interface Attachment {
    id: string;
    name: string;
    size_bytes: number;
  }

  interface ChatMessage extends Outcome {
    attachments?: Attachment[];
    id: string;
    role: Role;
    content: string;
    created_at: string;
  }

  // A question and its answer, once it is there.
  interface Exchange {
    text: string;
    question: MessageView;
    answer: MessageView | null;
    files: Attachment[];
  }

  interface SourceMetadata {
    heading?: unknown;
    number?: unknown;
    page?: unknown;
    row?: unknown;
    url?: unknown;
  }

  interface Source {
    document_name: string;
    chunk_preview: string;
    metadata?: SourceMetadata;
  }

  interface SessionState {
    agent: Agent;
    messages: ChatMessage[];
    visitor_name?: string | null;
    has_earlier?: boolean;
  }

  interface CustomerConversation {
    session_id: string;
    title: string;
    last_message_at: string;
  }

  // The data of the events of a turn.
  interface TurnData {
    message_id: string;
    delta: string;
    position: number;
    sources: Source[];
    code: string;
  }

  interface ChatStorage {
    get(field: string): string | null;
    set(field: string, value: string | null): void;
  }

  interface StoredItem {
    id: string;
    title: string;
    at: number;
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
    assistant_reply: { id: string; content: string };
    sources: Source[];
  }
}
