// The entry of a form's page. The form itself is in the page, as JSON.
import { el, required } from "../shared/dom.js";
import { readAddress } from "./address.js";
import { FormApi } from "./api.js";
import { applyBranding } from "./branding.js";
import { FormView } from "./form.js";
import { isFramed, notify, reportHeight } from "./frame.js";
import { toPlainText } from "./links.js";
import { findDirection } from "./text.js";
import { getLanguage, useOwnTexts } from "./texts.js";
import { toWebAddress } from "./web-address.js";

/** @type {(form: Form, address: PageAddress) => void} */
function start(form, address) {
  const main = required(document.querySelector("main"));
  main.dir = document.documentElement.dir ||
    findDirection(toPlainText(`${form.name} ${form.fields[0]?.label ?? ""}`));
  applyBranding(form.branding, {
    theme: address.theme,
    header: required(main.querySelector("header")),
  });
  notify("ready", { name: form.name });
  const place = el("div", { class: "place" });
  main.append(place);
  const api = new FormApi(form.slug, toWebAddress(address.page ?? document.referrer));
  if (address.mode === "chat") showChat({ form, api, address, place });
  else new FormView({ form, api, address, place }).restore();
}

// Most visitors see the form; the chat is loaded for those who want it.
/** @type {(context: PageContext) => Promise<void>} */
async function showChat(context) {
  const { ChatView } = await import("./chat.js");
  new ChatView(context).start();
}

// The server has chosen the language.
/** @type {(language: string) => Promise<void>} */
async function speak(language) {
  if (language === getLanguage()) return;
  const { loadLanguage } = await import("./languages.js");
  await loadLanguage(language);
}

const data = document.getElementById("form");
const address = readAddress();
const isChat = data !== null && address.mode === "chat";
document.documentElement.classList.toggle("framed", isFramed);
document.documentElement.classList.toggle("chat", isChat);
// A chat is as high as the frame; its messages scroll.
if (!isChat) reportHeight();
await speak(document.documentElement.lang);
// A link to the page must not change what it says.
if (isFramed) useOwnTexts(address.texts);
if (data) start(JSON.parse(data.textContent), address);
