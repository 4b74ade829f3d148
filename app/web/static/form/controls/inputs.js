// Fields that are answered in one input: texts, numbers, dates.
import { MAX_LINE_CHARACTERS, MAX_TEXT_CHARACTERS } from "../check-texts.js";
import { readLimit } from "../check-dates.js";
import { el } from "../../shared/dom.js";
import { countCharacters, formatCount, strip } from "../text.js";
import { guessAutocomplete } from "./autocomplete.js";

// A counter appears when this share of the longest text is used.
const COUNTED_SHARE = 0.8;
const MAX_ROWS = 12;

// A control has its element, the inputs that a label and messages belong to, and reads and writes
// the answer. `undefined` is no answer.
function buildControl(input, { read, write, after = [] } = {}) {
  return {
    element: el("div", { class: "input" }, input, ...after),
    inputs: [input],
    read: read ?? (() => (strip(input.value) ? input.value : undefined)),
    write: write ??
      ((value) => {
        input.value = value ?? "";
      }),
    focus: () => input.focus(),
  };
}

function buildInput(field, attributes) {
  return el("input", {
    id: `field-${field.id}`,
    placeholder: field.placeholder,
    required: field.required,
    dir: "auto",
    ...attributes,
  });
}

export function text(field) {
  const input = buildInput(field, { type: "text", autocomplete: guessAutocomplete(field) });
  return buildControl(input, { after: [buildCounter(field, input, MAX_LINE_CHARACTERS)] });
}

export const email = (field) =>
  buildControl(
    buildInput(field, { type: "email", autocomplete: "email", spellcheck: "false" }),
  );
export const phone = (field) =>
  buildControl(buildInput(field, { type: "tel", autocomplete: "tel", dir: "ltr" }));

export function url(field) {
  const input = buildInput(field, {
    type: "url",
    inputmode: "url",
    autocomplete: "url",
    spellcheck: "false",
    dir: "ltr",
  });
  input.addEventListener("change", () => {
    // What people call a web address often lacks its scheme.
    if (/^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+([/?#]\S*)?$/u.test(strip(input.value))) {
      input.value = `https://${strip(input.value)}`;
    }
  });
  return buildControl(input);
}

export function textarea(field) {
  const input = el("textarea", {
    id: `field-${field.id}`,
    placeholder: field.placeholder,
    required: field.required,
    dir: "auto",
    rows: 4,
  });
  const grow = () => {
    const rows = input.value.split("\n").length + 1;
    input.rows = Math.min(Math.max(rows, 4), MAX_ROWS);
  };
  input.addEventListener("input", grow);
  const write = (value) => {
    input.value = value ?? "";
    grow();
  };
  return buildControl(input, { write, after: [buildCounter(field, input, MAX_TEXT_CHARACTERS)] });
}

function buildCounter(field, input, atMost) {
  const longest = field.validation.max_length ?? atMost;
  const counter = el("p", { class: "counter" });
  input.addEventListener("input", () => {
    const length = countCharacters(input.value);
    const isNear = length >= longest * COUNTED_SHARE;
    counter.textContent = isNear ? `${formatCount(length)} of ${formatCount(longest)}` : "";
  });
  return counter;
}

export function number(field) {
  const { min, max, step } = field.validation;
  const isWhole = Number.isInteger(step) && (min ?? -1) >= 0;
  const input = buildInput(field, {
    type: "number",
    min,
    max,
    step: step ?? "any",
    inputmode: isWhole ? "numeric" : "decimal",
    dir: null,
    class: "short",
  });
  const read = () => {
    if (input.validity.badInput) return Number.NaN;
    return input.value === "" ? undefined : Number(input.value);
  };
  return { ...buildControl(input, { read }), hint: describeRange(min, max) };
}

function describeRange(min = null, max = null) {
  if (min !== null && max !== null) return `From ${min} to ${max}.`;
  if (max !== null) return `At most ${max}.`;
  return min ? `At least ${min}.` : "";
}

export function date(field) {
  const { min_date: min, max_date: max } = field.validation;
  const autocomplete = guessAutocomplete(field);
  return buildMoment(
    buildInput(field, { type: "date", min, max, autocomplete, dir: null, class: "short" }),
  );
}

// The visitor enters a local time; the answer is in UTC.
export function datetime(field) {
  const { min_date: first, max_date: last } = field.validation;
  const input = buildInput(field, {
    type: "datetime-local",
    min: first && toLocal(readLimit(first, "T00:00:00Z")),
    max: last && toLocal(readLimit(last, "T23:59:00Z")),
    dir: null,
    class: "short",
  });
  const read = () => input.value && !input.validity.badInput ? toUtc(input.value) : readBad(input);
  const write = (value) => {
    input.value = value ? toLocal(Date.parse(value)) : "";
  };
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { ...buildControl(input, { read, write }), hint: `In your time zone, ${zone}.` };
}

function buildMoment(input) {
  return buildControl(input, { read: () => input.value || readBad(input) });
}

// A date that is entered in part is not empty: the check refuses it.
function readBad(input) {
  return input.validity.badInput ? "incomplete" : undefined;
}

function toUtc(local) {
  const moment = new Date(local);
  return Number.isNaN(moment.getTime()) ? local : `${moment.toISOString().slice(0, 19)}Z`;
}

function toLocal(milliseconds) {
  const moment = new Date(milliseconds);
  const shifted = new Date(milliseconds - moment.getTimezoneOffset() * 60_000);
  return Number.isNaN(shifted.getTime()) ? "" : shifted.toISOString().slice(0, 16);
}
