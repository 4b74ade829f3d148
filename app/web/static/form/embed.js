// Shows a form on a page of another site, where its script tag stands:
// <script async src="https://parley.example.com/embed/form.js" data-form="contact-8k2m4q6t"></script>
// data-mode="chat" asks the questions one by one; data-values='{"campaign": "spring"}' answers hidden
// fields; data-title, data-theme ("light", "dark") and data-height (of the chat) are for the frame.
// data-lang="de" names the language, by default that of the page; data-text-… replaces a text.
(() => {
  const script = document.currentScript;
  if (!(script instanceof HTMLScriptElement)) return;
  const { form, mode, values, title, theme, lang, height = "600" } = script.dataset;
  if (!form) return;
  const address = new URL(`../f/${encodeURIComponent(form)}`, script.src);

  // The texts of the page around are light on a dark page.
  /** @type {(script: HTMLScriptElement) => string} */
  function findTheme(script) {
    const { color } = getComputedStyle(script.parentElement ?? document.body);
    const numbers = (/^rgb/.test(color) && color.match(/[\d.]+/g)) || [];
    const [red = 0, green = 0, blue = 0] = numbers.map(Number);
    return red * 0.3 + green * 0.6 + blue * 0.1 > 140 ? "dark" : "light";
  }

  /** @type {(script: HTMLScriptElement) => HTMLIFrameElement} */
  function buildFrame(script) {
    const scheme = theme === "light" || theme === "dark" ? theme : findTheme(script);
    if (mode) address.searchParams.set("mode", mode);
    if (lang) address.searchParams.set("lang", lang);
    // The language of the form itself comes before that of the page.
    address.searchParams.set("page-lang", document.documentElement.lang || "en");
    const texts = Object.entries(script.dataset).filter(([name]) => /^text[A-Z]/.test(name))
      .map(([name, text]) => [name[4].toLowerCase() + name.slice(5), text]);
    // A fragment is sent to no server. The query of this page may have secrets, so it is left out.
    const fragment = new URLSearchParams({
      embed: "1",
      theme: scheme,
      page: location.origin + location.pathname,
      ...(values ? { values } : {}),
      ...(texts.length ? { texts: JSON.stringify(Object.fromEntries(texts)) } : {}),
    });
    address.hash = fragment.toString();
    const frame = document.createElement("iframe");
    Object.assign(frame, { src: address.href, title: title || "Form", loading: "lazy" });
    frame.height = height;
    for (
      const [name, value] of Object.entries({
        display: "block",
        width: "100%",
        border: "0",
        "color-scheme": scheme,
      })
    ) {
      frame.style.setProperty(name, value);
    }
    return frame;
  }

  // Moves to a place in the frame, unless it is in sight.
  /** @type {(frame: HTMLElement, top: number) => void} */
  function show(frame, top) {
    const position = frame.getBoundingClientRect().top + top;
    if (position < 0 || position > innerHeight * 0.8) {
      scrollBy({ top: position - innerHeight * 0.15 });
    }
  }

  /** @type {(text: string) => void} */
  function redirect(text) {
    const url = new URL(text, location.href);
    if (url.protocol === "http:" || url.protocol === "https:") location.assign(url.href);
  }

  /** @type {(frame: HTMLIFrameElement, message: FrameMessage) => void} */
  function receive(frame, { type, height: pixels = 0, top = Number.NaN, name, url, submissionId }) {
    if (type === "parley:height" && pixels > 0) frame.height = String(Math.ceil(pixels));
    else if (type === "parley:show" && Number.isFinite(top)) show(frame, top);
    else if (type === "parley:ready" && !title && typeof name === "string") frame.title = name;
    else if (type === "parley:redirect" && typeof url === "string") redirect(url);
    else if (type === "parley:submitted") {
      frame.dispatchEvent(
        new CustomEvent("parley:submitted", { bubbles: true, detail: { submissionId } }),
      );
    }
  }

  /** @type {(script: HTMLScriptElement) => void} */
  function start(script) {
    const frame = buildFrame(script);
    addEventListener("message", ({ source, origin, data }) => {
      if (source === frame.contentWindow && origin === address.origin && data) receive(frame, data);
    });
    if (document.head.contains(script)) document.body.append(frame);
    else script.replaceWith(frame);
  }

  if (document.body) start(script);
  else addEventListener("DOMContentLoaded", () => start(script));
})();
