// The panel in a frame of its own origin, where the other scripts of the page cannot read the chat.
import { button, el, icon } from "../shared/dom.js";
import { explainSetup } from "./setup-help.js";
import { adoptStyles } from "./styles.js";
import { loadTexts } from "./texts.js";

const STYLES = ["../shared/theme.css", "./panel.css"];

// How long the page in the frame may take to say that it is there, once it is loaded.
const READY_MS = 2000;

/** @type {(context: PanelContext) => Promise<MountedPanel>} */
export async function mount(context) {
  const { base, options, shadow } = context;
  const origin = new URL(base).origin;
  await adoptStyles(
    shadow,
    STYLES.map((path) => new URL(path, import.meta.url)),
  );
  const texts = await loadTexts(context);
  const address = new URL("embed/frame", base);
  address.searchParams.set("api_key", options.apiKey ?? "");
  const frame = el("iframe", {
    class: "panel",
    src: address,
    title: options.title || texts.chat,
    allow: "microphone; autoplay; clipboard-write",
    referrerpolicy: "strict-origin",
    hidden: true,
  });
  const refusal = buildRefusal(context, texts);
  const shown = () => frame.isConnected ? frame : refusal;
  /** @type {string | null | undefined} */
  let userToken = options.userToken;
  let isReady = false;
  let isFocused = false;
  const send = (/** @type {string} */ type, details = {}) => {
    if (isReady) frame.contentWindow?.postMessage({ ...details, type: `parley:${type}` }, origin);
  };
  /** @type {Record<string, () => void>} */
  const receivers = {
    "parley:ready"() {
      isReady = true;
      send("options", { options: { ...options, userToken, dir: context.host.dir } });
      if (context.isOpen()) send("open", { focus: isFocused });
    },
    "parley:close": () => context.close(),
    "parley:reply"() {
      if (!context.isOpen()) context.addUnread();
    },
  };
  const receive = (/** @type {MessageEvent} */ event) => {
    if (event.source === frame.contentWindow && event.origin === origin) {
      receivers[event.data?.type]?.();
    }
  };
  addEventListener("message", receive);
  // A browser that refuses to show the page in the frame loads another in its place.
  frame.addEventListener("load", () =>
    setTimeout(() => {
      if (isReady) return;
      explainSetup(options.apiKey ?? "", "either");
      frame.replaceWith(refusal);
      refusal.hidden = frame.hidden;
    }, READY_MS));
  shadow.append(frame);
  return {
    open({ focus = true } = {}) {
      isFocused = focus;
      shown().hidden = false;
      if (focus) frame.focus();
      send("open", { focus });
    },
    close() {
      shown().hidden = true;
      send("closed");
    },
    identify(token) {
      userToken = token;
      send("identify", { userToken: token });
    },
    destroy() {
      removeEventListener("message", receive);
      shown().remove();
    },
  };
}

// Stands in the place of a frame that the embed key does not allow on this page.
/** @type {(context: PanelContext, texts: Texts) => HTMLElement} */
function buildRefusal({ close }, texts) {
  return el(
    "section",
    { class: "panel refused", role: "dialog", "aria-label": texts.conversation, hidden: true },
    button(icon("close"), close, {
      class: "plain",
      "aria-label": texts.close,
      title: texts.close,
    }),
    el("p", { role: "alert" }, texts.origin),
  );
}
