// Sends the form to the HTTP API and shows each error beside its field.
import { button as createButton, el, required } from "../shared/dom.js";
import { describe, post, Refusal, UNREACHABLE } from "./api.js";
import { lookUp } from "./mailed-links.js";
import { findNext } from "./next.js";
import { addPasswordHelp } from "./passwords.js";
import { keepToken } from "./session.js";
import { showStatus } from "./status.js";

const page = required(document.querySelector("main"));
const form = required(document.querySelector("form"));
/** @type {HTMLButtonElement} */
const button = required(form.querySelector("button[type=submit]"));
// Where the form is sent, the name of the field for the token of the link, and what is looked up by
// it.
const { action = "", token: tokenField = "", lookUp: kind = "" } = form.dataset;
const address = new URL(location.href);
const token = address.searchParams.get("token") ?? "";
// Where people go who have joined.
const FIRST_PAGE = "/docs";

/** @type {(title: string, about: string) => void} */
function showHeader(title, about) {
  document.title = title;
  const heading = required(page.querySelector("h1"));
  heading.textContent = title;
  required(heading.nextElementSibling).textContent = about;
}

/** @type {(details: Record<string, string>) => void} */
function showProblems(details) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = form.querySelectorAll("input[name]");
  for (const input of inputs) {
    const problem = details[input.name] ?? "";
    input.setAttribute("aria-invalid", String(problem !== ""));
    required(document.getElementById(`${input.name}-problem`)).textContent = problem;
  }
  [...inputs].find((input) => details[input.name])?.focus();
}

/** @type {(end: LinkEnd) => void} */
function showEnd(end) {
  showHeader(end.title, end.text);
  form.remove();
  showStatus("");
  if (end.link) page.append(el("p", {}, el("a", { href: end.link.href }, end.link.text)));
}

// Signs in with what was just typed, and leads on.
/** @type {(email: string, password: string) => Promise<void>} */
async function enter(email, password) {
  /** @type {Login} */
  const login = await post("/auth/login", { email, password });
  keepToken(login.access_token);
  location.replace(findNext(address.searchParams.get("next"), location.origin, FIRST_PAGE));
}

async function send() {
  const fields = new FormData(form);
  const body = Object.fromEntries(fields);
  if (token) body[tokenField] = token;
  /** @type {{ message: string }} */
  const result = await post(action, body);
  form.remove();
  // Removes the used token from the browser's history.
  history.replaceState(null, "", address.pathname);
  showStatus(result.message);
  if (kind === "invitation") {
    await enter(String(fields.get("email")), String(fields.get("password")));
  }
}

/** @type {(error: Refusal) => void} */
function showRefusal(error) {
  const { details } = error;
  showProblems(details);
  const isShown = [...form.querySelectorAll("input")].some((input) => details[input.name]);
  const linkProblem = details[tokenField];
  showStatus(isShown ? "" : linkProblem ? `This link ${linkProblem}` : error.message, true);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  showStatus("");
  showProblems({});
  try {
    await send();
  } catch (error) {
    if (!form.isConnected) showStatus("You have joined. Sign in to continue.");
    else if (error instanceof Refusal) showRefusal(error);
    else showStatus(UNREACHABLE, true);
  } finally {
    button.disabled = false;
  }
});

async function showForm() {
  showStatus("Loading…");
  try {
    const view = await lookUp(kind, token);
    if (view.end) {
      showEnd(view.end);
      return;
    }
    if (view.title && view.about) showHeader(view.title, view.about);
    fillEmail(view.email ?? "");
    form.hidden = false;
    showStatus("");
  } catch (error) {
    showStatus(describe(error), true);
    const retry = createButton("Try again", () => {
      retry.remove();
      showForm();
    });
    page.append(retry);
  }
}

// The address is that of the link. Password managers read it, too.
/** @type {(email: string) => void} */
function fillEmail(email) {
  /** @type {HTMLInputElement | null} */
  const input = form.querySelector("#email");
  if (input === null) return;
  input.value = email;
  input.readOnly = true;
}

addPasswordHelp(form);
if (kind) showForm();
