// Sends the form to the HTTP API and shows each error beside its field.
const form = document.querySelector("form");
const status = document.querySelector("[role=status]");
const button = form.querySelector("button");
const address = new URL(location.href);

function showStatus(text, isError) {
  status.textContent = text;
  status.className = isError ? "bad" : "";
}

function showProblems(details) {
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
  const response = await fetch(form.dataset.action, {
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
  const isShown = [...form.elements].some((input) => details[input.name]);
  const linkProblem = details[form.dataset.token];
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
