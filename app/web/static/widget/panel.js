// The panel of the chat widget: opens, closes, and keeps the focus while it is open.
import { button, el, icon } from "../shared/dom.js";
import { Announcer } from "./announcer.js";
import { Chat } from "./chat.js";
import { Session } from "./session.js";
import { openStorage } from "./storage.js";
import { adoptStyles } from "./styles.js";
import { loadTexts } from "./texts.js";

const STYLES = ["../shared/theme.css", "./panel.css"];
const FOCUSABLE = "a[href], button:not([disabled]), textarea, summary, [tabindex='0']";

// `context` is what the launcher, or the page in a frame, offers: the shadow root to draw in, the
// options of the script tag, and what happens outside of the panel.
/** @type {(context: PanelContext) => Promise<MountedPanel>} */
export async function mount(context) {
  const { base, host, options, shadow } = context;
  await adoptStyles(
    shadow,
    STYLES.map((path) => new URL(path, import.meta.url)),
  );
  if (options.color) {
    const { applyAccent } = await import("../shared/colors.js");
    applyAccent(host.style, options.color);
  }
  const texts = await loadTexts(context);
  const storage = openStorage(options.agentId ?? "");
  const session = new Session({
    base,
    agentId: options.agentId ?? "",
    apiKey: options.apiKey ?? "",
    userToken: options.userToken || null,
    storage,
  });
  const panel = new Panel(context, texts, session, storage);
  shadow.append(panel.element);
  return panel;
}

class Panel {
  /** @type {EarlierList | null} */
  earlier = null;
  // Which list of them is on its way.
  /** @type {object | null} */
  awaited = null;

  /** @param {PanelContext} context @param {Texts} texts @param {Session} session @param {ChatStorage} storage */
  constructor(context, texts, session, storage) {
    this.context = context;
    this.texts = texts;
    this.announcer = new Announcer();
    this.title = el("h2", { dir: "auto", id: "title" }, context.options.title || texts.chat);
    this.earlierButton = this.buildButton("history", texts.history, () => this.showEarlier());
    this.restartButton = this.buildButton("restart", texts.restart, () => this.restart());
    this.chat = new Chat({
      session,
      storage,
      shadow: context.shadow,
      texts,
      options: context.options,
      announcer: this.announcer,
      onAgent: (agent) => this.showAgent(agent),
      onReply: () => {
        this.showButtons();
        if (!context.isOpen()) context.addUnread();
      },
    });
    this.element = el(
      "section",
      {
        class: context.isFilled ? "panel filled" : "panel",
        role: "dialog",
        "aria-modal": "true",
        "aria-labelledby": "title",
        hidden: true,
        lang: context.options.lang,
        on: { keydown: (event) => this.handleKey(event) },
      },
      el(
        "header",
        {},
        this.title,
        this.earlierButton,
        this.restartButton,
        this.buildButton("close", texts.close, () => context.close()),
      ),
      this.chat.element,
      this.announcer.element,
    );
    this.fit = () => this.fitKeyboard();
    this.showButtons();
  }

  /** @type {(name: Icon, label: string, listener: () => void) => HTMLElement} */
  buildButton(name, label, listener) {
    return button(icon(name), listener, { class: "plain", "aria-label": label, title: label });
  }

  // A new conversation is for one that has begun.
  showButtons() {
    this.restartButton.hidden = !this.chat.last;
    this.earlierButton.hidden = !this.chat.hasEarlier;
  }

  restart() {
    this.hideEarlier();
    this.chat.restart();
  }

  async showEarlier() {
    if (this.earlier) {
      this.hideEarlier();
      return;
    }
    const { chat } = this;
    const awaited = this.awaited = {};
    const { buildList } = await import("./earlier.js");
    const isAwaited = () => this.awaited === awaited;
    const list = await buildList(chat, isAwaited, () => this.hideEarlier());
    if (!list) return;
    this.earlier = list;
    chat.element.hidden = true;
    chat.element.before(list.element);
    list.focus();
  }

  hideEarlier() {
    this.awaited = null;
    if (!this.earlier) return;
    this.earlier.element.remove();
    this.earlier = null;
    this.chat.element.hidden = false;
    this.chat.composer.focus();
  }

  open({ focus = true } = {}) {
    this.element.hidden = false;
    this.chat.start();
    if (focus) this.chat.composer.focus();
    visualViewport?.addEventListener("resize", this.fit);
    this.fit();
  }

  close() {
    this.element.hidden = true;
    this.awaited = null;
    this.chat.silence();
    visualViewport?.removeEventListener("resize", this.fit);
  }

  /** @type {(userToken: string | null) => Promise<void>} */
  identify(userToken) {
    this.hideEarlier();
    return this.chat.identify(userToken);
  }

  destroy() {
    this.chat.destroy();
    this.close();
  }

  /** @type {(agent: Agent) => void} */
  showAgent(agent) {
    if (!this.context.options.title) this.title.textContent = agent.name;
    this.showButtons();
  }

  // The keyboard of a phone covers a part of the page without changing its size.
  fitKeyboard() {
    const height = visualViewport?.height;
    if (height) this.element.style.setProperty("--visible-height", `${Math.round(height)}px`);
  }

  /** @type {(event: KeyboardEvent) => void} */
  handleKey(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      if (this.earlier) this.hideEarlier();
      else this.context.close();
    } else if (event.key === "Tab") {
      this.keepFocus(event);
    }
  }

  /** @type {(event: KeyboardEvent) => void} */
  keepFocus(event) {
    /** @type {NodeListOf<HTMLElement>} */
    const found = this.element.querySelectorAll(FOCUSABLE);
    const all = [...found].filter((item) => item.checkVisibility());
    const [first, last] = [all[0], all[all.length - 1]];
    const { activeElement } = this.context.shadow;
    const edge = event.shiftKey ? first : last;
    if (activeElement !== edge && activeElement) return;
    event.preventDefault();
    (event.shiftKey ? last : first).focus();
  }
}
