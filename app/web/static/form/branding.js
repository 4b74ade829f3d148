// The colours and the logo of a form's author, with texts that stay readable on them.
import { applyAccent, findScheme, parseColor } from "../shared/colors.js";
import { el } from "../shared/dom.js";
import { toWebAddress } from "./web-address.js";

/** @type {(branding: Branding, page: { theme: string | null; header: Element }) => void} */
export function applyBranding(branding, { theme, header }) {
  const { style } = document.documentElement;
  const background = parseColor(branding.background_color);
  if (background) style.setProperty("--backdrop", branding.background_color);
  const scheme = theme ?? (background ? findScheme(background) : null);
  if (scheme) style.setProperty("color-scheme", scheme);
  document.documentElement.classList.toggle("colored", background !== null);
  applyAccent(style, branding.primary_color);
  addLogo(branding.logo_url, header);
}

/** @type {(address: string | null, header: Element) => void} */
function addLogo(address, header) {
  const url = address && toWebAddress(address);
  if (!url) return;
  // The name of the form says what it is.
  const logo = el("img", { class: "logo", src: url, alt: "", referrerpolicy: "no-referrer" });
  logo.addEventListener("error", () => logo.remove());
  header.prepend(logo);
}
