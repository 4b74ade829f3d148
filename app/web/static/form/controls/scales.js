// Fields whose answer is a number on a scale.
import { DEFAULT_STARS } from "../check-numbers.js";
import { button, el } from "../../shared/dom.js";

// More stars than this are a list of numbers.
const MAX_STARS = 10;

export function rating(field, context) {
  const most = countStars(field);
  return most > MAX_STARS ? buildNumbers(field, most) : buildStars(field, most, context);
}

function countStars(field) {
  return field.validation.max ?? DEFAULT_STARS;
}

// Returns the answers as words, where they are few.
export function listStars(field) {
  const most = countStars(field);
  return most > MAX_STARS ? [] : Array.from({ length: most }, (_, index) => String(index + 1));
}

function buildNumbers(field, most) {
  const options = Array.from({ length: most }, (_, index) => el("option", {}, String(index + 1)));
  const input = el(
    "select",
    { id: `field-${field.id}`, required: field.required, class: "short" },
    el("option", { value: "" }, "Please choose"),
    ...options,
  );
  return {
    element: el("div", { class: "input" }, input),
    inputs: [input],
    read: () => (input.value ? Number(input.value) : undefined),
    write: (value) => {
      input.value = value ?? "";
    },
    focus: () => input.focus(),
  };
}

function buildStars(field, most, context) {
  const stars = Array.from({ length: most }, (_, index) => buildStar(field, index + 1, most));
  const list = el("div", { class: "stars" }, ...stars);
  const read = () => Number(list.querySelector("input:checked")?.value) || undefined;
  const shown = el("output", { class: "value" });
  const clear = button(
    "Clear",
    () => {
      write(undefined);
      list.querySelector("input").focus();
      context.changed();
    },
    { class: "link" },
  );
  const show = () => {
    shown.textContent = read() ? `${read()} of ${most}` : "";
    clear.hidden = field.required || !read();
  };
  function write(value) {
    for (const input of list.querySelectorAll("input")) {
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
    focus: () => list.querySelector("input:checked, input").focus(),
  };
}

function buildStar(field, number, most) {
  const text = `${number} of ${most}`;
  const input = el("input", {
    type: "radio",
    name: `field-${field.id}`,
    value: number,
    "aria-label": text,
  });
  return el("label", { class: "star", title: text }, input, el("span", { class: "shape" }));
}

// A slider always has a position; it is an answer once the visitor has used it.
export function slider(field, context) {
  const { min = 0, max = 100, step = 1 } = field.validation;
  const input = el("input", { type: "range", id: `field-${field.id}`, min, max, step });
  const shown = el("output", { class: "value", for: input.id });
  const clear = button(
    "Clear",
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
    input.setAttribute("aria-valuetext", isAnswered ? input.value : "Not answered");
    shown.textContent = isAnswered ? input.value : "–";
    clear.hidden = field.required || !isAnswered;
  };
  const answer = () => {
    isAnswered = true;
    show();
    context.changed();
  };
  function write(value) {
    isAnswered = typeof value === "number";
    input.value = value ?? (min + max) / 2;
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
    el("span", {}, min),
    el("span", {}, max),
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
