// Fields whose answer is a number on a scale.
import { DEFAULT_STARS } from "../check-numbers.js";
import { button, el } from "../../shared/dom.js";
import { formatNumber, getText } from "../texts.js";

// More stars than this are a list of numbers.
const MAX_STARS = 10;

/** @type {BuildControl} */
export function rating(field, context) {
  const most = countStars(field);
  return most > MAX_STARS ? buildNumbers(field, most) : buildStars(field, most, context);
}

/** @type {(field: Field) => number} */
function countStars(field) {
  return field.validation.max ?? DEFAULT_STARS;
}

// Returns the answers as words, where they are few.
/** @type {(field: Field) => string[]} */
export function listStars(field) {
  const most = countStars(field);
  return most > MAX_STARS ? [] : Array.from({ length: most }, (_, index) => String(index + 1));
}

/** @type {(field: Field, most: number) => Control} */
function buildNumbers(field, most) {
  const options = Array.from({ length: most }, (_, index) => el("option", {}, String(index + 1)));
  const input = el(
    "select",
    { id: `field-${field.id}`, required: field.required, class: "short" },
    el("option", { value: "" }, getText("choose")),
    ...options,
  );
  return {
    element: el("div", { class: "input" }, input),
    inputs: [input],
    read: () => (input.value ? Number(input.value) : undefined),
    write: (value) => {
      input.value = String(value ?? "");
    },
    focus: () => input.focus(),
  };
}

/** @type {(field: Field, most: number, context: ControlContext) => Control} */
function buildStars(field, most, context) {
  const stars = Array.from({ length: most }, (_, index) => buildStar(field, index + 1, most));
  const list = el("div", { class: "stars" }, ...stars);
  const inputs = [...list.querySelectorAll("input")];
  const read = () => Number(inputs.find((input) => input.checked)?.value) || undefined;
  const shown = el("output", { class: "value" });
  const clear = button(
    getText("clear"),
    () => {
      write(undefined);
      inputs[0].focus();
      context.changed();
    },
    { class: "link" },
  );
  const show = () => {
    shown.textContent = read() ? describe(read() ?? 0, most) : "";
    clear.hidden = field.required || !read();
  };
  /** @type {(value: Answer | undefined) => void} */
  function write(value) {
    for (const input of inputs) {
      input.checked = Number(input.value) === value;
    }
    show();
  }
  list.addEventListener("change", show);
  show();
  return {
    element: el("div", { class: "input scale" }, list, shown, clear),
    inputs: [],
    role: "radiogroup",
    read,
    write,
    focus: () => inputs[0].focus(),
  };
}

/** @type {(stars: number, total: number) => string} */
function describe(stars, total) {
  return getText("stars", { stars, total });
}

/** @type {(field: Field, number: number, most: number) => HTMLElement} */
function buildStar(field, number, most) {
  const text = describe(number, most);
  const input = el("input", {
    type: "radio",
    name: `field-${field.id}`,
    value: number,
    "aria-label": text,
  });
  return el("label", { class: "star", title: text }, input, el("span", { class: "shape" }));
}

// A slider always has a position; it is an answer once the visitor has used it.
/** @type {BuildControl} */
export function slider(field, context) {
  const { min = 0, max = 100, step = 1 } = field.validation;
  const input = el("input", { type: "range", id: `field-${field.id}`, min, max, step });
  const shown = el("output", { class: "value", for: input.id });
  const clear = button(
    getText("clear"),
    () => {
      write(undefined);
      input.focus();
      context.changed();
    },
    { class: "link" },
  );
  let isAnswered = false;
  const show = () => {
    input.classList.toggle("unused", !isAnswered);
    const value = formatNumber(Number(input.value));
    input.setAttribute("aria-valuetext", isAnswered ? value : getText("notAnswered"));
    shown.textContent = isAnswered ? value : "–";
    clear.hidden = field.required || !isAnswered;
  };
  const answer = () => {
    isAnswered = true;
    show();
    context.changed();
  };
  /** @type {(value: Answer | undefined) => void} */
  function write(value) {
    isAnswered = typeof value === "number";
    input.value = String(value ?? (min + max) / 2);
    show();
  }
  input.addEventListener("input", answer);
  // Also where the position is right from the beginning.
  input.addEventListener("pointerup", answer);
  input.addEventListener("keydown", ({ key }) => {
    if (key === " " || key === "Enter") answer();
  });
  write(undefined);
  const ends = el(
    "div",
    { class: "ends", "aria-hidden": "true" },
    el("span", {}, formatNumber(min)),
    el("span", {}, formatNumber(max)),
  );
  return {
    element: el(
      "div",
      { class: "input scale" },
      el("div", { class: "track" }, input, ends),
      shown,
      clear,
    ),
    inputs: [input],
    read: () => (isAnswered ? Number(input.value) : undefined),
    write,
    focus: () => input.focus(),
  };
}
