// One trace, drawn along time. Everything from the server is put in as text, never as markup.
const id = decoded(location.pathname.split("/").filter(Boolean)[1] ?? "");
const status = document.querySelector("[role=status]");
const entrance = document.getElementById("entrance");
const shown = document.getElementById("shown");
const timeline = document.getElementById("timeline");
const details = document.getElementById("details");
const second = document.getElementById("second");
const KEY = "parley-token";
const AWAY = "The server cannot be reached. Try again.";

document.getElementById("about").textContent = id;

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function say(text, bad = false) {
  status.textContent = text;
  status.className = bad ? "bad" : "";
}

function made(kind, className, text) {
  const node = document.createElement(kind);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

async function ask(path, options) {
  const answer = await fetch(path, options);
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.error.message), { status: answer.status });
  return told;
}

function post(path, body) {
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function count(number, name) {
  return `${number} ${name}${number === 1 ? "" : "s"}`;
}

function length(ms) {
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 60_000) return `${Math.round(ms / 10) / 100} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 600) / 100} min`;
  return `${Math.round(ms / 36_000) / 100} h`;
}

// Events and spans are one list: a row stands below what caused it, in the order of time. A request
// begins with its first event, and stands before it.
function rowsOf(trace) {
  const rows = [
    ...trace.spans.map((span) => ({
      id: span.id, parent: span.parent_id, kind: span.kind, name: span.name,
      status: span.status, at: Date.parse(span.started_at), ms: span.duration_ms, more: span,
    })),
    ...trace.data.map((event) => ({
      id: event.id, parent: event.parent_id, kind: event.test ? "test event" : "event",
      name: event.type, status: "", at: Date.parse(event.created_at), ms: 0, more: event,
    })),
  ];
  const known = new Set(rows.map((row) => row.id));
  const below = new Map();
  for (const row of rows) {
    const parent = known.has(row.parent) && row.parent !== row.id ? row.parent : null;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(row);
  }
  const ordered = [];
  const seen = new Set();
  const walk = (parent, depth) => {
    for (const row of (below.get(parent) ?? []).sort((a, b) => a.at - b.at)) {
      if (seen.has(row)) continue;
      seen.add(row);
      ordered.push({ ...row, depth });
      walk(row.id, depth + 1);
    }
  };
  walk(null, 0);
  return ordered;
}

function bar(row, start, whole) {
  const lane = made("div", "lane");
  const box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  box.setAttribute("viewBox", "0 0 1000 10");
  box.setAttribute("preserveAspectRatio", "none");
  box.setAttribute("aria-hidden", "true");
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const left = ((row.at - start) / whole) * 1000;
  mark.setAttribute("x", String(Math.min(left, 994)));
  mark.setAttribute("width", String(Math.max((row.ms / whole) * 1000, 6)));
  mark.setAttribute("y", "1");
  mark.setAttribute("height", "8");
  mark.setAttribute("class", `${row.kind.replace(" ", "-")} ${row.status}`);
  box.append(mark);
  lane.append(box);
  return lane;
}

function draw(trace) {
  const rows = rowsOf(trace);
  const start = Math.min(...rows.map((row) => row.at));
  const whole = Math.max(trace.duration_ms, 1);
  timeline.replaceChildren();
  for (const row of rows) {
    const line = made("button", "row");
    line.type = "button";
    line.setAttribute("role", "row");
    const label = made("span", `label depth-${Math.min(row.depth, 8)}`);
    label.setAttribute("role", "rowheader");
    label.append(made("span", `kind ${row.kind.replace(" ", "-")}`, row.kind), made("span", "name", row.name));
    const state = made("span", `state ${row.status}`, row.status);
    state.setAttribute("role", "cell");
    const time = made("span", "time", `+${length(row.at - start)}${row.ms ? `, ${length(row.ms)}` : ""}`);
    time.setAttribute("role", "cell");
    line.append(label, state, time, bar(row, start, whole));
    line.addEventListener("click", () => {
      details.hidden = false;
      details.querySelector("h2").textContent = row.name;
      details.querySelector("pre").textContent = JSON.stringify(row.more, null, 2);
      details.scrollIntoView({ block: "nearest" });
    });
    timeline.append(line);
  }
  const events = count(trace.data.length, "event");
  const spans = count(trace.spans.length, "span");
  say(`${events} and ${spans} in ${length(trace.duration_ms)}`);
}

function clear() {
  timeline.replaceChildren();
  details.hidden = true;
  for (const part of details.children) part.textContent = "";
}

async function show() {
  const token = sessionStorage.getItem(KEY);
  entrance.hidden = token !== null;
  shown.hidden = true;
  if (token === null) return;
  say("Reading…");
  try {
    draw(await ask(`/api/v1/event-log/trace/${encodeURIComponent(id)}`, {
      headers: { authorization: `Bearer ${token}` },
    }));
    shown.hidden = false;
  } catch (error) {
    clear();
    if (error.status === 401) {
      sessionStorage.removeItem(KEY);
      entrance.hidden = false;
    } else {
      shown.hidden = false;
    }
    say(error.status ? error.message : AWAY, true);
  }
}

function use(token) {
  sessionStorage.setItem(KEY, token);
  return show();
}

// Each try is a whole one: nobody is held to a token that ran out, or to somebody else's.
async function signedIn({ email, password, code }) {
  const told = await post("/auth/login", { email, password });
  if (!told.mfa_required) return told;
  if (!second.hidden && code) {
    return post("/auth/mfa/verify", { mfa_token: told.mfa_token, code: code.trim() });
  }
  second.hidden = false;
  document.getElementById("code").focus();
  say("Now the code of your authenticator, or a recovery code.");
  return null;
}

document.getElementById("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  try {
    const told = await signedIn(Object.fromEntries(new FormData(form)));
    if (told === null) return;
    form.reset();
    second.hidden = true;
    await use(told.access_token);
  } catch (error) {
    say(error.status ? error.message : AWAY, true);
  }
});

document.getElementById("paste").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = new FormData(event.target).get("token").trim().replace(/^Bearer\s+/i, "");
  event.target.reset();
  if (/^[\x21-\x7e]+$/.test(token)) await use(token);
  else say("This is not an access token.", true);
});

document.getElementById("again").addEventListener("click", show);
document.getElementById("forget").addEventListener("click", () => {
  sessionStorage.removeItem(KEY);
  clear();
  say("");
  show();
});

show();
