// Fields that are answered in one input: texts, numbers, dates.
import { MAX_LINE_CHARACTERS, MAX_TEXT_CHARACTERS } from "../check-texts.js";
import { readLimit } from "../check-dates.js";
import { el } from "../../shared/dom.js";
import { countCharacters, strip } from "../text.js";
import { formatCount, getText } from "../texts.js";
import { guessAutocomplete } from "./autocomplete.js";

// A counter appears when this share of the longest text is used.
const COUNTED_SHARE = 0.8;
const MAX_ROWS = 12;

// Reads and writes the text of the input, unless told otherwise.
/**
 * @param {HTMLInputElement | HTMLTextAreaElement} input
 * @param {Partial<Pick<Control, "read" | "write">> & { after?: HTMLElement[] }} options
 * @returns {Control}
 */
function buildControl(input, { read, write, after = [] } = {}) {
  return {
    element: el("div", { class: "input" }, input, ...after),
    inputs: [input],
    read: read ?? (() => (strip(input.value) ? input.value : undefined)),
    write: write ??
      ((value) => {
        input.value = String(value ?? "");
      }),
    focus: () => input.focus(),
  };
}

/** @type {(field: Field, attributes: Attributes) => HTMLInputElement} */
function buildInput(field, attributes) {
  return el("input", {
    id: `field-${field.id}`,
    placeholder: field.placeholder,
    required: field.required,
    dir: "auto",
    ...attributes,
  });
}

/** @type {(field: Field) => Control} */
export function text(field) {
  const input = buildInput(field, { type: "text", autocomplete: guessAutocomplete(field) });
  return buildControl(input, { after: [buildCounter(field, input, MAX_LINE_CHARACTERS)] });
}

/** @type {(field: Field) => Control} */
export const email = (field) =>
  buildControl(
    buildInput(field, { type: "email", autocomplete: "email", spellcheck: "false" }),
  );
/** @type {(field: Field) => Control} */
export const phone = (field) =>
  buildControl(buildInput(field, { type: "tel", autocomplete: "tel", dir: "ltr" }));

/** @type {(field: Field) => Control} */
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

/** @type {(field: Field) => Control} */
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
  const write = (/** @type {Answer | undefined} */ value) => {
    input.value = String(value ?? "");
    grow();
  };
  return buildControl(input, { write, after: [buildCounter(field, input, MAX_TEXT_CHARACTERS)] });
}

/** @type {(field: Field, input: FieldInput, atMost: number) => HTMLElement} */
function buildCounter(field, input, atMost) {
  const longest = field.validation.max_length ?? atMost;
  const counter = el("p", { class: "counter" });
  input.addEventListener("input", () => {
    const length = countCharacters(input.value);
    const isNear = length >= longest * COUNTED_SHARE;
    const values = { used: formatCount(length), most: formatCount(longest) };
    counter.textContent = isNear ? getText("charactersUsed", values) : "";
  });
  return counter;
}

/** @type {(field: Field) => Control} */
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

/** @type {(min?: number | null, max?: number | null) => string} */
function describeRange(min = null, max = null) {
  if (min !== null && max !== null) return getText("rangeBetween", { min, max });
  if (max !== null) return getText("rangeAtMost", { max });
  return min ? getText("rangeAtLeast", { min }) : "";
}

/** @type {(field: Field) => Control} */
export function date(field) {
  const { min_date: min, max_date: max } = field.validation;
  const autocomplete = guessAutocomplete(field);
  return buildMoment(
    buildInput(field, { type: "date", min, max, autocomplete, dir: null, class: "short" }),
  );
}

// The visitor enters a local time; the answer is in UTC.
/** @type {(field: Field) => Control} */
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
  const write = (/** @type {Answer | undefined} */ value) => {
    input.value = value ? toLocal(Date.parse(String(value))) : "";
  };
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { ...buildControl(input, { read, write }), hint: getText("timeZone", { zone }) };
}

/** @type {(input: HTMLInputElement) => Control} */
function buildMoment(input) {
  return buildControl(input, { read: () => input.value || readBad(input) });
}

// A date that is entered in part is not empty: the check refuses it.
/** @type {(input: HTMLInputElement) => string | undefined} */
function readBad(input) {
  return input.validity.badInput ? "incomplete" : undefined;
}

/** @type {(local: string) => string} */
function toUtc(local) {
  const moment = new Date(local);
  return Number.isNaN(moment.getTime()) ? local : `${moment.toISOString().slice(0, 19)}Z`;
}

/** @type {(milliseconds: number) => string} */
function toLocal(milliseconds) {
  const moment = new Date(milliseconds);
  const shifted = new Date(milliseconds - moment.getTimezoneOffset() * 60_000);
  return Number.isNaN(shifted.getTime()) ? "" : shifted.toISOString().slice(0, 16);
}
