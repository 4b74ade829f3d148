// Sends the form to the HTTP API and shows each error beside its field.
import { required } from "../shared/dom.js";

const form = required(document.querySelector("form"));
/** @type {HTMLElement} */
const status = required(document.querySelector("[role=status]"));
const button = required(form.querySelector("button"));
// Where the form is sent, and the name of the field for the token of the link.
const { action = "", token: tokenField = "" } = form.dataset;
const address = new URL(location.href);

/** @type {(text: string, isError: boolean) => void} */
function showStatus(text, isError) {
  status.textContent = text;
  status.className = isError ? "bad" : "";
}

/** @type {(details: Record<string, string>) => void} */
function showProblems(details) {
  const inputs = form.querySelectorAll("input");
  for (const input of inputs) {
    const problem = details[input.name] ?? "";
    input.setAttribute("aria-invalid", String(problem !== ""));
    required(document.getElementById(`${input.name}-problem`)).textContent = problem;
  }
  [...inputs].find((input) => details[input.name])?.focus();
}

async function send() {
  const body = Object.fromEntries(new FormData(form));
  const token = address.searchParams.get("token");
  if (token) body[tokenField] = token;
  const response = await fetch(action, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const result = await response.json();
  if (response.ok) {
    form.remove();
    // Removes the used token from the browser's history.
    history.replaceState(null, "", address.pathname);
    showStatus(result.message, false);
    return;
  }
  const details = result.error.details ?? {};
  showProblems(details);
  const isShown = [...form.querySelectorAll("input")].some((input) => details[input.name]);
  const linkProblem = details[tokenField];
  showStatus(isShown ? "" : linkProblem ? `This link ${linkProblem}` : result.error.message, true);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  showStatus("", false);
  showProblems({});
  try {
    await send();
  } catch {
    showStatus("The server cannot be reached. Try again.", true);
  } finally {
    button.disabled = false;
  }
});
