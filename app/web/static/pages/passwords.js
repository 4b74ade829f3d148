// Shows which rules a new password fulfils while it is typed, and the password itself on demand. The
// server decides.
import { required } from "../shared/dom.js";

/** @type {Record<string, RegExp>} */
const RULES = {
  length: /^[\s\S]{8,}$/u,
  upper: /\p{Lu}/u,
  lower: /\p{Ll}/u,
  digit: /\p{Nd}/u,
};

/** @type {(password: string) => string[]} */
export function listFulfilled(password) {
  return Object.keys(RULES).filter((name) => RULES[name].test(password));
}

/** @type {(input: HTMLInputElement, toggle: HTMLButtonElement, isShown: boolean) => void} */
function setShown(input, toggle, isShown) {
  const verb = isShown ? "Hide" : "Show";
  input.type = isShown ? "text" : "password";
  toggle.textContent = verb;
  toggle.setAttribute("aria-label", `${verb} the password`);
}

/** @type {(form: HTMLFormElement) => void} */
export function addPasswordHelp(form) {
  for (const box of form.querySelectorAll(".password")) {
    const input = required(box.querySelector("input"));
    const toggle = required(box.querySelector("button"));
    const rules = required(document.getElementById(`${input.id}-rules`));
    input.addEventListener("input", () => {
      const fulfilled = listFulfilled(input.value);
      for (const item of rules.querySelectorAll("li")) {
        item.classList.toggle("met", fulfilled.includes(item.dataset.rule ?? ""));
      }
    });
    toggle.addEventListener("click", () => {
      setShown(input, toggle, input.type === "password");
      input.focus();
    });
    // So that no browser keeps it among the texts of a form.
    form.addEventListener("submit", () => setShown(input, toggle, false));
  }
}
