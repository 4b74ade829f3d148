// The page in the frame: shows the panel, and talks with the launcher on the page around it. Only
// the sites that the embed key allows can show this page in a frame.
import { required } from "../shared/dom.js";
import { mount } from "./panel.js";

/** @type {HTMLElement} */
const host = required(document.querySelector("parley-chat"));
const shadow = host.attachShadow({ mode: "open" });
const apiKey = new URL(location.href).searchParams.get("api_key") ?? undefined;
/** @type {MountedPanel | null} */
let panel = null;
let isOpen = false;
// Who the visitor became while the panel was not there yet.
/** @type {string | null | undefined} */
let userToken;

/** @type {(type: string) => void} */
function notify(type) {
  window.parent.postMessage({ type: `parley:${type}` }, "*");
}

/** @type {(options: WidgetOptions) => Promise<void>} */
async function start(options) {
  if (panel) return;
  host.dir = options.dir === "rtl" ? "rtl" : "ltr";
  if (options.theme === "light" || options.theme === "dark") {
    host.style.setProperty("--scheme", options.theme);
  }
  panel = await mount({
    base: new URL("../", location.href).href,
    host,
    shadow,
    isFilled: true,
    options: { ...options, apiKey, agentId: host.dataset.agentId },
    isOpen: () => isOpen,
    addUnread: () => notify("reply"),
    close: () => notify("close"),
  });
  if (userToken !== undefined) panel.identify(userToken);
  if (isOpen) panel.open({ focus: false });
}

/** @type {Record<string, (message: PanelMessage) => unknown>} */
const receivers = {
  "parley:options": ({ options }) => options && start(options),
  "parley:open"({ focus }) {
    isOpen = true;
    panel?.open({ focus });
  },
  "parley:closed"() {
    isOpen = false;
    panel?.close();
  },
  "parley:identify"(message) {
    userToken = message.userToken ?? null;
    panel?.identify(userToken);
  },
};

addEventListener("message", (event) => {
  if (event.source === window.parent && event.data) receivers[event.data.type]?.(event.data);
});
notify("ready");
