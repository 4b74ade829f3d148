// The panel in a frame of its own origin, where the other scripts of the page cannot read the chat.
import { el } from "../shared/dom.js";
import { adoptStyles } from "./styles.js";

const STYLES = ["../shared/theme.css", "./panel.css"];

/** @type {(context: PanelContext) => Promise<MountedPanel>} */
export async function mount(context) {
  const { base, options, shadow } = context;
  const origin = new URL(base).origin;
  await adoptStyles(
    shadow,
    STYLES.map((path) => new URL(path, import.meta.url)),
  );
  const address = new URL("embed/frame", base);
  address.searchParams.set("api_key", options.apiKey ?? "");
  const frame = el("iframe", {
    class: "panel",
    src: address,
    title: options.title || options.textConversation || "Chat",
    allow: "microphone; autoplay; clipboard-write",
    referrerpolicy: "strict-origin",
    hidden: true,
  });
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
  shadow.append(frame);
  return {
    open({ focus = true } = {}) {
      isFocused = focus;
      frame.hidden = false;
      if (focus) frame.focus();
      send("open", { focus });
    },
    close() {
      frame.hidden = true;
      send("closed");
    },
    identify(token) {
      userToken = token;
      send("identify", { userToken: token });
    },
    destroy() {
      removeEventListener("message", receive);
      frame.remove();
    },
  };
}
