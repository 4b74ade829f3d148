// The panel of the chat widget: opens, closes, and keeps the focus while it is open.
import { button, el, icon } from "../shared/dom.js";
import { Announcer } from "./announcer.js";
import { Chat } from "./chat.js";
import { Session } from "./session.js";
import { openStorage } from "./storage.js";
import { adoptStyles } from "./styles.js";
import { buildTexts } from "./texts.js";

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
  const texts = buildTexts(options);
  const session = new Session({
    base,
    agentId: options.agentId ?? "",
    apiKey: options.apiKey ?? "",
    userToken: options.userToken || null,
    storage: openStorage(options.agentId ?? ""),
  });
  const panel = new Panel(context, texts, session);
  shadow.append(panel.element);
  return panel;
}

class Panel {
  /** @param {PanelContext} context @param {Texts} texts @param {Session} session */
  constructor(context, texts, session) {
    this.context = context;
    this.announcer = new Announcer();
    this.title = el("h2", { dir: "auto", id: "title" }, context.options.title || "\u00a0");
    this.restartButton = button(icon("restart"), () => this.chat.restart(), {
      class: "plain",
      "aria-label": texts.restart,
      title: texts.restart,
      hidden: !session.canRestart,
    });
    this.chat = new Chat({
      session,
      texts,
      options: context.options,
      announcer: this.announcer,
      onAgent: (agent) => this.showAgent(agent),
      onReply: () => {
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
        lang: context.options.lang || null,
        on: { keydown: (event) => this.handleKey(event) },
      },
      el(
        "header",
        {},
        this.title,
        this.restartButton,
        button(icon("close"), () => context.close(), {
          class: "plain",
          "aria-label": texts.close,
          title: texts.close,
        }),
      ),
      this.chat.element,
      this.announcer.element,
    );
    this.fit = () => this.fitKeyboard();
  }

  open({ focus = true } = {}) {
    this.element.hidden = false;
    this.chat.start();
    if (focus) this.chat.focus();
    visualViewport?.addEventListener("resize", this.fit);
    this.fit();
  }

  close() {
    this.element.hidden = true;
    this.chat.silence();
    visualViewport?.removeEventListener("resize", this.fit);
  }

  /** @type {(userToken: string | null) => Promise<void>} */
  identify(userToken) {
    this.restartButton.hidden = Boolean(userToken);
    return this.chat.identify(userToken);
  }

  destroy() {
    this.chat.stop();
    this.close();
  }

  /** @type {(agent: Agent) => void} */
  showAgent(agent) {
    if (!this.context.options.title) this.title.textContent = agent.name;
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
      this.context.close();
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
