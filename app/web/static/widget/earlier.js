// The visitor's earlier conversations, in the place of the chat.
import { button, el, icon } from "../shared/dom.js";
import { formatTime } from "./message.js";

// Returns null when they cannot be read, and the chat says why, or when nobody waits any more.
/** @type {(chat: Chat, isAwaited: () => boolean, onClose: () => void) => Promise<EarlierList | null>} */
export async function buildList(chat, isAwaited, onClose) {
  try {
    const [items] = await Promise.all([listEarlier(chat), chat.loadAnswerParts()]);
    if (!isAwaited()) return null;
    return new EarlierList({
      texts: chat.texts,
      lang: chat.options.lang,
      items,
      onOpen: (id) => {
        onClose();
        openConversation(chat, id);
      },
      onClose,
    });
  } catch (error) {
    if (isAwaited()) chat.notice.show(error);
    return null;
  }
}

/** @type {(chat: Chat) => Promise<StoredItem[]>} */
async function listEarlier(chat) {
  const { session } = chat;
  if (session.isAnonymous) return chat.listEarlier();
  /** @type {{ data: CustomerConversation[] }} */
  const { data } = await (await session.request("GET", "/conversations")).json();
  return data
    .filter((item) => item.session_id !== session.id)
    .map(({ session_id: id, title, last_message_at: at }) => ({ id, title, at: Date.parse(at) }));
}

/** @type {(chat: Chat, id: string) => Promise<void>} */
async function openConversation(chat, id) {
  chat.leave();
  chat.session.choose(id);
  chat.log.clear();
  chat.isLoaded = false;
  chat.composer.focus();
  const { generation } = chat.session;
  await chat.load();
  // Its messages were deleted.
  const isHere = chat.isLoaded && generation === chat.session.generation;
  if (isHere && !chat.last) chat.conversations.remove(id);
}

export class EarlierList {
  /** @param {EarlierOptions} options */
  constructor({ texts, lang, items, onOpen, onClose }) {
    this.back = button([icon("back"), texts.back], onClose, { class: "back" });
    const entries = items.map(({ id, title, at }) => {
      const date = new Date(at);
      const time = formatTime(date, lang, { dateStyle: "medium", timeStyle: "short" });
      const entry = button(
        [
          el("span", { class: "name", dir: "auto" }, title),
          el("time", { datetime: date.toISOString(), dir: "auto" }, time),
        ],
        () => onOpen(id),
        { class: "entry" },
      );
      return el("li", {}, entry);
    });
    this.element = el(
      "section",
      { class: "earlier", "aria-labelledby": "earlier" },
      this.back,
      el("h3", { id: "earlier" }, texts.history),
      el("ul", {}, entries),
    );
  }

  focus() {
    this.back.focus();
  }
}
