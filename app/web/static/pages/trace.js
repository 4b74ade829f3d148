// Draws one trace as a timeline. Data of the server is inserted as text, never as markup.
import { required } from "../shared/dom.js";
import { describe, post, Refusal, request } from "./api.js";
import { showStatus } from "./status.js";
import { forgetToken, keepToken, readToken } from "./session.js";

const id = decodePath(location.pathname.split("/").filter(Boolean)[1] ?? "");
const access = find("access");
const result = find("result");
const timeline = find("timeline");
const details = find("details");
const secondFactor = find("second");

// A trace in which something goes on is read again, less and less often.
const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;
const GOES_ON = new Set(["pending", "queued", "running", "waiting"]);
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
// Counts the readings: what an earlier one returns after a later one has begun is of no interest.
let readings = 0;
// The row whose details are shown, and what they are.
let openedId = "";
let shownDetails = "";

find("about").textContent = id;

/** @type {(id: string) => HTMLElement} */
function find(id) {
  return required(document.getElementById(id));
}

/** @type {(text: string) => string} */
function decodePath(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} kind
 * @param {string} className
 * @param {string} [text]
 */
function createElement(kind, className, text) {
  const node = document.createElement(kind);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/** @type {(number: number, name: string) => string} */
function formatCount(number, name) {
  return `${number} ${name}${number === 1 ? "" : "s"}`;
}

/** @type {(ms: number) => string} */
function formatDuration(ms) {
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 60_000) return `${Math.round(ms / 10) / 100} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 600) / 100} min`;
  return `${Math.round(ms / 36_000) / 100} h`;
}

/** @type {(actor: TraceActor) => string} */
function describeActor({ type, id, name }) {
  if (type === "system") return "system";
  if (type === "anonymous") return "a visitor";
  return name ?? id ?? type;
}

// Returns events and spans as one list: each row follows its cause, in the order of time. A request
// starts with its first event and is listed before it.
/** @type {(trace: Trace) => TraceRow[]} */
function buildRows(trace) {
  const rows = [
    ...trace.spans.map((span) => ({
      id: span.id,
      parent: span.parent_id,
      kind: span.kind,
      name: span.name,
      status: span.status,
      at: Date.parse(span.started_at),
      ms: span.duration_ms,
      waited: span.waited_ms ?? 0,
      isWaiting: span.is_waiting ?? false,
      by: "",
      more: span,
    })),
    ...trace.data.map((event) => ({
      id: event.id,
      parent: event.parent_id,
      kind: event.test ? "test event" : "event",
      name: event.type,
      status: "",
      at: Date.parse(event.created_at),
      ms: 0,
      waited: 0,
      isWaiting: false,
      by: describeActor(event.actor),
      more: event,
    })),
  ];
  const ids = new Set(rows.map((row) => row.id));
  /** @type {Map<string | null, Omit<TraceRow, "depth">[]>} */
  const children = new Map();
  for (const row of rows) {
    const isKnown = row.parent !== null && ids.has(row.parent) && row.parent !== row.id;
    const parent = isKnown ? row.parent : null;
    const siblings = children.get(parent) ?? [];
    siblings.push(row);
    children.set(parent, siblings);
  }
  /** @type {TraceRow[]} */
  const ordered = [];
  const visited = new Set();
  /** @type {(parent: string | null, depth: number) => void} */
  const walk = (parent, depth) => {
    for (const row of (children.get(parent) ?? []).sort((a, b) => a.at - b.at)) {
      if (visited.has(row)) continue;
      visited.add(row);
      ordered.push({ ...row, depth });
      walk(row.id, depth + 1);
    }
  };
  walk(null, 0);
  return ordered;
}

/** @type {(row: TraceRow, start: number, duration: number) => HTMLElement} */
function drawBar(row, start, duration) {
  const lane = createElement("div", "lane");
  const box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  box.setAttribute("viewBox", "0 0 1000 10");
  box.setAttribute("preserveAspectRatio", "none");
  box.setAttribute("aria-hidden", "true");
  /** @type {(at: number, ms: number, least: number, isWait: boolean) => void} */
  const draw = (at, ms, least, isWait) => {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const left = Math.max(((at - start) / duration) * 1000, 0);
    mark.setAttribute("x", String(Math.min(left, 994)));
    mark.setAttribute("width", String(Math.max((ms / duration) * 1000, least)));
    mark.setAttribute("y", isWait ? "4" : "1");
    mark.setAttribute("height", isWait ? "2" : "8");
    const kind = row.kind.replace(" ", "-");
    mark.setAttribute("class", `${kind} ${row.status}${isWait ? " wait" : ""}`);
    box.append(mark);
  };
  // It may have waited since long before the trace began.
  const waited = Math.min(row.waited, row.at - start);
  if (waited) draw(row.at - waited, waited, 0, true);
  draw(row.at, row.ms, 6, row.isWaiting);
  lane.append(box);
  return lane;
}

// What the row is about, each part under a heading of its own.
/** @type {(row: TraceRow) => void} */
function showDetails(row) {
  const content = JSON.stringify(row.more);
  // A reader keeps their place in details that have not changed.
  if (!details.hidden && content === shownDetails) return;
  shownDetails = content;
  const { input, output, error, data, ...rest } = row.more;
  /** @type {[string, unknown][]} */
  const parts = [["Error", error], ["Data", data], ["Input", input], ["Output", output]];
  const shown = parts.filter(([, value]) => value !== undefined && value !== null);
  details.replaceChildren(
    createElement("h2", "", row.by ? `${row.name}, by ${row.by}` : row.name),
    ...[...shown, ["Facts", rest]].flatMap(([name, value]) => [
      createElement("h3", name === "Error" ? "bad" : "", String(name)),
      createBox(String(name), value),
    ]),
  );
  details.hidden = false;
}

// A box that can be scrolled with the keyboard.
/** @type {(name: string, value: unknown) => HTMLElement} */
function createBox(name, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const box = createElement("pre", "", text);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", name);
  return box;
}

/** @type {(row: TraceRow, start: number) => string} */
function describeTime(row, start) {
  const parts = [`+${formatDuration(row.at - start)}`];
  if (row.waited >= 1) parts.push(`waited ${formatDuration(row.waited)}`);
  if (row.ms) parts.push(`${row.isWaiting ? "waited " : ""}${formatDuration(row.ms)}`);
  return parts.join(", ");
}

/** @type {(trace: Trace) => void} */
function drawTrace(trace) {
  const rows = buildRows(trace);
  const start = Math.min(...rows.map((row) => row.at));
  const duration = Math.max(trace.duration_ms, 1);
  const focused = timeline.querySelector(":focus")?.id;
  timeline.replaceChildren();
  for (const row of rows) {
    const line = createElement("button", "row");
    line.type = "button";
    line.id = `row-${row.id}`;
    line.setAttribute("role", "row");
    const label = createElement("span", `label depth-${Math.min(row.depth, 8)}`);
    label.setAttribute("role", "rowheader");
    label.append(
      createElement("span", `kind ${row.kind.replace(" ", "-")}`, row.kind),
      createElement("span", "name", row.name),
    );
    const state = createElement("span", `state ${row.status}`, row.status || row.by);
    state.setAttribute("role", "cell");
    const time = createElement(
      "span",
      "time",
      describeTime(row, start),
    );
    time.setAttribute("role", "cell");
    line.append(label, state, time, drawBar(row, start, duration));
    const open = () => {
      timeline.querySelector("[aria-current]")?.removeAttribute("aria-current");
      line.setAttribute("aria-current", "true");
      openedId = row.id;
      showDetails(row);
    };
    line.addEventListener("click", () => {
      open();
      details.scrollIntoView({ block: "nearest" });
    });
    timeline.append(line);
    if (row.id === openedId) open();
  }
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  const events = formatCount(trace.data.length, "event");
  const spans = formatCount(trace.spans.length, "span");
  showStatus(`${events} and ${spans} in ${formatDuration(trace.duration_ms)}`);
}

// Reads the trace again later if something goes on in it.
/** @type {(trace: Trace, delay: number) => void} */
function follow(trace, delay) {
  if (trace.spans.some((span) => GOES_ON.has(span.status))) lookLater(delay);
}

/** @type {(delay: number) => void} */
function lookLater(delay) {
  timer = setTimeout(() => {
    if (document.hidden) lookLater(delay);
    else showTrace(Math.min(delay * 2, MAX_DELAY_MS));
  }, delay);
}

function clear() {
  timeline.replaceChildren();
  openedId = shownDetails = "";
  details.hidden = true;
  details.replaceChildren();
}

async function showTrace(delay = FIRST_DELAY_MS) {
  clearTimeout(timer);
  readings += 1;
  const reading = readings;
  const token = readToken();
  access.hidden = token !== null;
  if (token === null) {
    result.hidden = true;
    return;
  }
  if (delay === FIRST_DELAY_MS) showStatus("Reading…");
  try {
    /** @type {Trace} */
    const trace = await request(`/api/v1/event-log/trace/${encodeURIComponent(id)}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    if (reading !== readings) return;
    drawTrace(trace);
    result.hidden = false;
    follow(trace, delay);
  } catch (error) {
    if (reading === readings) showFailure(error, delay);
  }
}

/** @type {(error: unknown, delay: number) => void} */
function showFailure(error, delay) {
  const isSignedOut = error instanceof Refusal && error.status === 401;
  if (isSignedOut) {
    forgetToken();
    access.hidden = false;
  } else {
    result.hidden = false;
  }
  // What was drawn stays while the server cannot be reached for a moment.
  if (isSignedOut || delay === FIRST_DELAY_MS) clear();
  else lookLater(delay);
  showStatus(describe(error), true);
}

/** @type {(token: string) => Promise<void>} */
function useToken(token) {
  keepToken(token);
  return showTrace();
}

// Each attempt starts with the password, so that no expired or foreign MFA token is used.
/** @type {(values: { email: string; password: string; code: string }) => Promise<Login | null>} */
async function signIn({ email, password, code }) {
  /** @type {Login} */
  const login = await post("/auth/login", { email, password });
  if (!login.mfa_required) return login;
  if (!secondFactor.hidden && code) {
    return post("/auth/mfa/verify", { mfa_token: login.mfa_token, code: code.trim() });
  }
  secondFactor.hidden = false;
  find("code").focus();
  showStatus("Now the code of your authenticator, or a recovery code.");
  return null;
}

/** @type {(form: HTMLFormElement, name: string) => string} */
function readText(form, name) {
  return String(new FormData(form).get(name) ?? "");
}

/** @type {HTMLFormElement} */
const signInForm = required(document.querySelector("#sign-in"));
signInForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [email, password, code] = ["email", "password", "code"].map((name) =>
    readText(signInForm, name)
  );
  try {
    const login = await signIn({ email, password, code });
    if (login === null) return;
    signInForm.reset();
    secondFactor.hidden = true;
    await useToken(login.access_token);
  } catch (error) {
    showStatus(describe(error), true);
  }
});

/** @type {HTMLFormElement} */
const pasteForm = required(document.querySelector("#paste"));
pasteForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = readText(pasteForm, "token").trim().replace(/^Bearer\s+/i, "");
  pasteForm.reset();
  if (/^[\x21-\x7e]+$/.test(token)) await useToken(token);
  else showStatus("This is not an access token.", true);
});

find("again").addEventListener("click", () => showTrace());
find("forget").addEventListener("click", () => {
  forgetToken();
  clear();
  showStatus("");
  showTrace();
});

showTrace();
