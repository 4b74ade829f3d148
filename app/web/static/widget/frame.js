// The page in the frame: shows the panel, and talks with the launcher on the page around it. Only
// the sites that the embed key allows can show this page in a frame.
import { mount } from "./panel.js";

const host = document.querySelector("parley-chat");
const shadow = host.attachShadow({ mode: "open" });
const apiKey = new URL(location.href).searchParams.get("api_key");
let panel = null;
let isOpen = false;

function notify(type) {
  window.parent.postMessage({ type: `parley:${type}` }, "*");
}

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
  if (isOpen) panel.open({ focus: false });
}

const receivers = {
  "parley:options": ({ options }) => start(options),
  "parley:open"({ focus }) {
    isOpen = true;
    panel?.open({ focus });
  },
  "parley:closed"() {
    isOpen = false;
    panel?.close();
  },
  "parley:identify": ({ userToken }) => panel?.identify(userToken),
};

addEventListener("message", (event) => {
  if (event.source === window.parent && event.data) receivers[event.data.type]?.(event.data);
});
notify("ready");
