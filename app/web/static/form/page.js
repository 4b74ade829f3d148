// The entry of a form's page. The form itself is in the page, as JSON.
import { readAddress } from "./address.js";
import { FormApi } from "./api.js";
import { applyBranding } from "./branding.js";
import { ChatView } from "./chat.js";
import { el } from "../shared/dom.js";
import { FormView } from "./form.js";
import { notify, reportHeight } from "./frame.js";
import { toWebAddress } from "./outcome.js";
import { findDirection } from "./text.js";

function start(form) {
  const address = readAddress();
  const main = document.querySelector("main");
  main.dir = findDirection(`${form.name} ${form.fields[0]?.label ?? ""}`);
  applyBranding(form.branding, { theme: address.theme, header: main.querySelector("header") });
  notify("ready", { name: form.name });
  const place = el("div", { class: "place" });
  main.append(place);
  const api = new FormApi(form.slug, toWebAddress(address.page ?? document.referrer));
  if (address.mode === "chat") new ChatView({ form, api, address, place }).start();
  else new FormView({ form, api, address, place }).restore();
}

const data = document.getElementById("form");
if (data) start(JSON.parse(data.textContent));
reportHeight();
