// Fields that are answered by a choice. Options of a data table are requested when they are shown.
import { button, el } from "../../shared/dom.js";
import { linkedProse, toPlainText } from "../links.js";
import { fold } from "../text.js";
import { getText, joinList, joinWords } from "../texts.js";

// A longer list can be searched.
const SEARCHED_OPTIONS = 8;

// Calls `show` with the options, now or when they have arrived. Returns where it says what it
// waits for, or null.
/** @type {(field: Field, context: ControlContext, show: ShowOptions) => HTMLElement | null} */
function withOptions(field, context, show) {
  if (!field.has_data_source) {
    show(field.options);
    return null;
  }
  const status = el("div", { class: "loading", role: "status" });
  const load = async () => {
    status.replaceChildren(getText("loadingOptions"));
    try {
      show(await context.loadOptions(field));
      // An answer that waited for its option.
      context.changed();
      status.replaceChildren();
    } catch {
      status.replaceChildren(
        `${getText("optionsFailed")} `,
        button(getText("tryAgain"), load, { class: "link" }),
      );
    }
  };
  load();
  return status;
}

/** @type {BuildControl} */
export function select(field, context) {
  const input = el("select", { id: `field-${field.id}`, required: field.required });
  let waiting = "";
  const status = withOptions(field, context, (options) => {
    const first = el("option", { value: "" }, field.placeholder || getText("choose"));
    const others = options.map(({ value, label }) =>
      el("option", { value, dir: "auto" }, toPlainText(label))
    );
    input.replaceChildren(first, ...others);
    input.value = waiting;
  });
  return {
    element: el("div", { class: "input" }, input, status),
    inputs: [input],
    read: () => input.value || undefined,
    write: (value) => {
      waiting = String(value ?? "");
      input.value = waiting;
    },
    focus: () => input.focus(),
  };
}

/** @type {(type: string, name: string, option: FieldOption) => HTMLElement} */
function buildChoice(type, name, option) {
  const input = el("input", { type, name, value: option.value });
  return el("label", { class: "choice" }, input, linkedProse("span", option.label));
}

/** @type {BuildControl} */
export function radio(field, context) {
  const list = el("div", { class: "choices" });
  const name = `field-${field.id}`;
  const clear = button(
    getText("clearChoice"),
    () => {
      write(undefined);
      list.querySelector("input")?.focus();
      context.changed();
    },
    { class: "link", hidden: true },
  );
  const read = () => listInputs(list).find((input) => input.checked)?.value;
  /** @type {Answer | undefined} */
  let waiting;
  const write = (/** @type {Answer | undefined} */ value) => {
    waiting = value;
    for (const input of list.querySelectorAll("input")) input.checked = input.value === value;
    clear.hidden = field.required || read() === undefined;
  };
  const status = withOptions(field, context, (options) => {
    list.replaceChildren(...options.map((option) => buildChoice("radio", name, option)));
    write(waiting);
  });
  list.addEventListener("change", () => {
    clear.hidden = field.required;
  });
  return {
    element: el("div", { class: "input" }, list, status, clear),
    inputs: [],
    role: "radiogroup",
    read,
    write,
    focus: () => list.querySelector("input")?.focus(),
  };
}

/** @type {(list: HTMLElement) => HTMLInputElement[]} */
function listInputs(list) {
  return [...list.querySelectorAll("input")];
}

// Calls `onShown` when the options are in the list.
/**
 * @param {Field} field
 * @param {ControlContext} context
 * @param {HTMLElement} list
 * @param {ShowOptions} onShown
 */
function buildBoxes(field, context, list, onShown = () => {}) {
  /** @type {string[]} */
  let waiting = [];
  const write = (/** @type {Answer | undefined} */ values) => {
    waiting = Array.isArray(values) ? values : [];
    for (const input of listInputs(list)) input.checked = waiting.includes(input.value);
  };
  const status = withOptions(field, context, (options) => {
    const name = `field-${field.id}`;
    list.replaceChildren(...options.map((option) => buildChoice("checkbox", name, option)));
    write(waiting);
    onShown(options);
  });
  const read = () => {
    const values = listInputs(list)
      .filter((input) => input.checked)
      .map((input) => input.value);
    return values.length ? values : undefined;
  };
  return { status, read, write };
}

/** @type {BuildControl} */
export function checkboxGroup(field, context) {
  const list = el("div", { class: "choices" });
  const { status, read, write } = buildBoxes(field, context, list);
  return {
    element: el("div", { class: "input" }, list, status),
    inputs: [],
    role: "group",
    read,
    write,
    toMessage: () => nameChosen(list),
    focus: () => list.querySelector("input")?.focus(),
  };
}

// A list that opens, with a search where it is long.
/** @type {BuildControl} */
export function multiSelect(field, context) {
  const [opener, list] = [el("summary"), el("div", { class: "choices" })];
  const search = buildSearch(list);
  const content = el("div", { class: "picked" }, search, list);
  const details = el("details", { class: "picker" }, opener, content);
  const showChosen = () => {
    const text = joinWords(listChosen(list), "listAnd");
    const shown = text || field.placeholder || getText("choose");
    opener.replaceChildren(el("span", { class: text ? "" : "empty", dir: "auto" }, shown));
  };
  const boxes = buildBoxes(field, context, list, (options) => {
    search.hidden = options.length <= SEARCHED_OPTIONS;
    showChosen();
  });
  list.addEventListener("change", showChosen);
  closeByEscape(details, opener);
  return {
    element: el("div", { class: "input" }, details, boxes.status),
    inputs: [],
    role: "group",
    hint: describeCount(field.validation),
    read: boxes.read,
    toMessage: () => nameChosen(list),
    write: (values) => {
      boxes.write(values);
      showChosen();
    },
    focus: () => opener.focus(),
  };
}

// What the chat sends and shows: the labels, as the visitor would type them.
/** @type {(list: HTMLElement) => [string, string]} */
function nameChosen(list) {
  const labels = listChosen(list);
  // A label may have a comma, but it is one line.
  return [labels.join("\n"), joinList(labels)];
}

// Returns the labels of the options that are checked.
/** @type {(element: HTMLElement) => string[]} */
function listChosen(element) {
  return [...element.querySelectorAll(".choice:has(:checked)")].map((label) => label.textContent);
}

/** @type {(list: HTMLElement) => HTMLInputElement} */
function buildSearch(list) {
  const search = el("input", {
    type: "search",
    placeholder: getText("search"),
    "aria-label": getText("searchOptions"),
    hidden: true,
    autocomplete: "off",
    dir: "auto",
  });
  search.addEventListener("input", () => {
    const text = fold(search.value);
    for (const label of list.querySelectorAll("label")) {
      label.hidden = !fold(label.textContent).includes(text);
    }
  });
  search.addEventListener("keydown", (event) => {
    // It would send the form.
    if (event.key === "Enter") event.preventDefault();
  });
  return search;
}

/** @type {(details: HTMLDetailsElement, opener: HTMLElement) => void} */
function closeByEscape(details, opener) {
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    opener.focus();
  });
}

/** @type {(validation: Validation) => string} */
function describeCount({ min_selections: fewest = 0, max_selections: most }) {
  if (fewest && fewest === most) return getText("chooseExactly", { count: most });
  if (fewest && most) return getText("chooseRange", { min: fewest, max: most });
  if (most) return getText("chooseAtMost", { count: most });
  return fewest > 1 ? getText("chooseAtLeast", { count: fewest }) : "";
}

// One box: its label stands beside it.
/** @type {(field: Field) => Control} */
export function checkbox(field) {
  const input = el("input", {
    type: "checkbox",
    id: `field-${field.id}`,
    required: field.required,
  });
  return {
    element: el("div", { class: "input" }),
    inputs: [input],
    isBox: true,
    read: () => input.checked,
    write: (value) => {
      input.checked = value === true;
    },
    focus: () => input.focus(),
  };
}
