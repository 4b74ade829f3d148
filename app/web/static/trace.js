// One trace, drawn along time. Everything from the server is put in as text, never as markup.
const id = decodeURIComponent(location.pathname.split("/").filter(Boolean)[1] ?? "");
const status = document.querySelector("[role=status]");
const entrance = document.getElementById("entrance");
const shown = document.getElementById("shown");
const timeline = document.getElementById("timeline");
const details = document.getElementById("details");
const second = document.getElementById("second");
const KEY = "parley-token";
let mfaToken = null;

document.getElementById("about").textContent = id;

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

function length(ms) {
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 60_000) return `${Math.round(ms / 10) / 100} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 600) / 100} min`;
  return `${Math.round(ms / 36_000) / 100} h`;
}

// Events and spans are one list: a row stands below what caused it, in the order of time.
function rowsOf(trace) {
  const rows = [
    ...trace.data.map((event) => ({
      id: event.id, parent: event.parent_id, kind: event.test ? "test event" : "event",
      name: event.type, status: "", at: Date.parse(event.created_at), ms: 0, more: event,
    })),
    ...trace.spans.map((span) => ({
      id: span.id, parent: span.parent_id, kind: span.kind, name: span.name,
      status: span.status, at: Date.parse(span.started_at), ms: span.duration_ms, more: span,
    })),
  ];
  const known = new Set(rows.map((row) => row.id));
  const below = new Map();
  for (const row of rows) {
    const parent = known.has(row.parent) && row.parent !== row.id ? row.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), row]);
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
    });
    timeline.append(line);
  }
  say(`${trace.data.length} events and ${trace.spans.length} spans in ${length(trace.duration_ms)}`);
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
    if (error.status === 401) {
      sessionStorage.removeItem(KEY);
      entrance.hidden = false;
    } else {
      shown.hidden = false;
      timeline.replaceChildren();
    }
    say(error.status ? error.message : "The server cannot be reached. Try again.", true);
  }
}

function use(token) {
  sessionStorage.setItem(KEY, token);
  return show();
}

document.getElementById("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(event.target));
  try {
    const told = mfaToken
      ? await post("/auth/mfa/verify", { mfa_token: mfaToken, code: given.code })
      : await post("/auth/login", { email: given.email, password: given.password });
    if (told.mfa_required) {
      mfaToken = told.mfa_token;
      second.hidden = false;
      document.getElementById("code").focus();
      say(told.message);
      return;
    }
    event.target.reset();
    mfaToken = null;
    second.hidden = true;
    await use(told.access_token);
  } catch (error) {
    say(error.status ? error.message : "The server cannot be reached. Try again.", true);
  }
});

document.getElementById("paste").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = new FormData(event.target).get("token").trim().replace(/^Bearer\s+/i, "");
  event.target.reset();
  await use(token);
});

document.getElementById("again").addEventListener("click", show);
document.getElementById("forget").addEventListener("click", () => {
  sessionStorage.removeItem(KEY);
  details.hidden = true;
  say("");
  show();
});

show();
