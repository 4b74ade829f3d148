// The chat widget's launcher: a button on the page of a customer. The panel is loaded when a visitor
// comes near the button, or when the browser has nothing else to do.
(() => {
  const script = document.currentScript;
  if (!(script instanceof HTMLScriptElement) || window.Parley) return;
  /** @type {WidgetOptions} */
  const options = { ...script.dataset };
  if (!options.agentId || !options.apiKey) {
    // deno-lint-ignore no-console
    console.error("Parley: the script tag needs data-agent-id and data-api-key");
    return;
  }
  const address = script.src;
  const base = new URL("../", address).href;
  const isFrame = options.mode === "frame";
  const unreadKey = `parley:${options.agentId}:unread`;
  const openKey = `parley:${options.agentId}:open`;
  const STYLE = `
    :host {
      all: initial !important; position: fixed !important; z-index: 2147483000 !important;
      inset: auto !important; bottom: 0 !important; width: 0 !important; height: 0 !important;
      display: block !important; color-scheme: var(--scheme, light dark) !important;
    }
    :host([data-side="left"]) { left: 0 !important; }
    :host([data-side="right"]) { right: 0 !important; }
    @media print { :host { display: none !important; } }
    .launcher {
      position: absolute; bottom: max(20px, env(safe-area-inset-bottom)); display: inline-flex;
      align-items: center; gap: 10px; box-sizing: border-box; min-width: 56px; height: 56px;
      padding: 0 16px; border: 0; border-radius: 28px; font: 600 16px/1 system-ui, sans-serif;
      white-space: nowrap; color: var(--on-accent, #fff); background: var(--accent, #4338ca);
      box-shadow: 0 6px 20px rgb(0 0 0 / .25); cursor: pointer;
      transition: transform .15s, filter .15s;
    }
    :host([data-side="left"]) .launcher { left: max(20px, env(safe-area-inset-left)); }
    :host([data-side="right"]) .launcher { right: max(20px, env(safe-area-inset-right)); }
    .launcher:hover { transform: translateY(-2px); filter: brightness(1.08); }
    .launcher:focus-visible {
      outline: 3px solid var(--focus, #6366f1); outline-offset: 3px; box-shadow: 0 0 0 3px #fff;
    }
    .launcher svg {
      width: 24px; height: 24px; fill: none; stroke: currentColor; stroke-width: 1.8;
      stroke-linecap: round; stroke-linejoin: round;
    }
    .badge {
      position: absolute; top: -4px; inset-inline-end: -2px; min-width: 20px; height: 20px;
      padding: 0 5px; box-sizing: border-box; border-radius: 10px;
      font: 700 12px/20px system-ui, sans-serif; text-align: center; color: #fff;
      background: #b42318;
    }
    [hidden] { display: none !important; }
    @media (prefers-reduced-motion: reduce) { .launcher { transition: none; } }`;
  const SVG = "http://www.w3.org/2000/svg";
  const CLOSE = "M6 9.5l6 6 6-6";
  const OPEN =
    "M4 5.5A1.5 1.5 0 0 1 5.5 4h13A1.5 1.5 0 0 1 20 5.5v9a1.5 1.5 0 0 1-1.5 1.5H10l-5 4v-4.2a1.5 1.5 0 0 1-1-1.3zM8 8.5h8M8 12h5";
  const texts = {
    open: options.textOpen ?? "Open chat",
    close: options.textClose ?? "Close chat",
    unread: options.textUnread ?? "{count} unread",
  };

  const host = document.createElement("parley-chat");
  const shadow = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  shadow.adoptedStyleSheets = [sheet];
  const button = document.createElement("button");
  const badge = document.createElement("span");
  const path = document.createElementNS(SVG, "path");
  /** @type {Promise<MountedPanel> | null} */
  let panel = null;
  let isOpen = false;

  function build() {
    const isRtl = options.dir === "rtl" ||
      (options.dir !== "ltr" && getComputedStyle(document.documentElement).direction === "rtl");
    host.dir = isRtl ? "rtl" : "ltr";
    const isStart = options.position === "start";
    host.dataset.side = isStart === isRtl ? "right" : "left";
    if (options.theme === "light" || options.theme === "dark") {
      host.style.setProperty("--scheme", options.theme);
    }
    const { color = "" } = options;
    if (/^#[0-9a-f]{6}$/i.test(color)) {
      host.style.setProperty("--accent", color);
      host.style.setProperty("--on-accent", isLight(color) ? "#000" : "#fff");
    }
    button.type = "button";
    button.className = "launcher";
    button.setAttribute("aria-haspopup", "dialog");
    badge.className = "badge";
    badge.setAttribute("aria-hidden", "true");
    button.append(buildIcon(), options.launcherText ?? "", badge);
    button.addEventListener("click", () => (isOpen ? close() : open()));
    for (const name of ["pointerenter", "focus", "touchstart"]) {
      button.addEventListener(name, load, { once: true, passive: true });
    }
    shadow.append(button);
    show();
    document.body.append(host);
    const whenIdle = window.requestIdleCallback ?? ((call) => setTimeout(call, 2000));
    whenIdle(() => load().catch(() => {}));
    if (options.open !== undefined || read(sessionStorage, openKey)) open({ focus: false });
  }

  // The brightness that eyes see, from 0 to 1.
  /** @type {(color: string) => boolean} */
  function isLight(color) {
    const [red, green, blue] = [1, 3, 5].map(
      (start) => (parseInt(color.slice(start, start + 2), 16) / 255) ** 2.2,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18;
  }

  function buildIcon() {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    svg.append(path);
    return svg;
  }

  /** @type {(storage: Storage, key: string) => string | null} */
  function read(storage, key) {
    try {
      return storage.getItem(key);
    } catch {
      return null;
    }
  }

  /** @type {(storage: Storage, key: string, value: string) => void} */
  function write(storage, key, value) {
    try {
      storage.setItem(key, value);
    } catch {
      // Storage is blocked.
    }
  }

  function show() {
    const unread = Number(read(localStorage, unreadKey)) || 0;
    badge.hidden = !unread || isOpen;
    badge.textContent = unread > 9 ? "9+" : String(unread);
    const name = isOpen ? texts.close : texts.open;
    button.setAttribute(
      "aria-label",
      badge.hidden ? name : `${name}, ${texts.unread.replace("{count}", String(unread))}`,
    );
    button.setAttribute("aria-expanded", String(isOpen));
    path.setAttribute("d", isOpen ? CLOSE : OPEN);
  }

  /** @type {(count: number) => void} */
  function setUnread(count) {
    write(localStorage, unreadKey, String(count));
    show();
  }

  /** @type {PanelContext} */
  const context = {
    base,
    options,
    shadow,
    host,
    texts,
    show,
    isOpen: () => isOpen,
    close,
    addUnread: () => setUnread((Number(read(localStorage, unreadKey)) || 0) + 1),
  };

  function load() {
    panel ??= import(new URL(isFrame ? "./frame-host.js" : "./panel.js", address).href)
      .then((module) => module.mount(context))
      .catch((error) => {
        panel = null;
        throw error;
      });
    return panel;
  }

  async function open({ focus = true } = {}) {
    isOpen = true;
    write(sessionStorage, openKey, "1");
    setUnread(0);
    try {
      (await load()).open({ focus });
    } catch (error) {
      // deno-lint-ignore no-console
      console.error("Parley:", error);
      isOpen = false;
      show();
    }
  }

  async function close() {
    isOpen = false;
    write(sessionStorage, openKey, "");
    show();
    (await load()).close();
    button.focus();
  }

  window.Parley = Object.freeze({
    open: () => open(),
    close: () => close(),
    // The token that the customer's server has signed, or null after a sign-out.
    identify: async (/** @type {string | null} */ userToken) => (await load()).identify(userToken),
    destroy() {
      host.remove();
      panel?.then((loaded) => loaded.destroy());
      delete window.Parley;
    },
  });

  if (document.body) build();
  else document.addEventListener("DOMContentLoaded", build, { once: true });
})();
