// One form, one call of the HTTP API; what is wrong is said beside its field.
const form = document.querySelector("form");
const status = document.querySelector("[role=status]");
const button = form.querySelector("button");
const address = new URL(location.href);

function say(text, bad) {
  status.textContent = text;
  status.className = bad ? "bad" : "";
}

function mark(details) {
  for (const input of form.querySelectorAll("input")) {
    const problem = details[input.name] ?? "";
    input.setAttribute("aria-invalid", String(problem !== ""));
    document.getElementById(`${input.name}-problem`).textContent = problem;
  }
  form.querySelector("[aria-invalid=true]")?.focus();
}

async function send() {
  const body = Object.fromEntries(new FormData(form));
  const token = address.searchParams.get("token");
  if (token) body[form.dataset.token] = token;
  const answer = await fetch(form.dataset.action, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (answer.ok) {
    form.remove();
    // What was used is of no use to whoever reads the history of this browser.
    history.replaceState(null, "", address.pathname);
    say(told.message, false);
    return;
  }
  const details = told.error.details ?? {};
  mark(details);
  const shown = [...form.elements].some((input) => details[input.name]);
  say(shown ? "" : details[form.dataset.token] ? `This link ${details[form.dataset.token]}` : told.error.message, true);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  say("", false);
  mark({});
  try {
    await send();
  } catch {
    say("The server cannot be reached. Try again.", true);
  } finally {
    button.disabled = false;
  }
});
