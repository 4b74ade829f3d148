// The rules of app/domain/forms/definition/fields/choices.py.
import { toPlainText } from "./links.js";
import { getText, joinList, joinWords } from "./texts.js";
import { WrongValue } from "./wrong-value.js";

const LISTED_OPTIONS = 20;
const MAX_SELECTIONS = 500;

/** @type {(field: Field) => string} */
function describeOptions(field) {
  const labels = field.options.map((option) => toPlainText(option.label));
  if (labels.length > LISTED_OPTIONS) {
    const count = labels.length - LISTED_OPTIONS;
    return getText("listMore", { words: joinList(labels.slice(0, LISTED_OPTIONS)), count });
  }
  return joinWords(labels);
}

/** @type {(field: Field, value: unknown) => string} */
export function checkOption(field, value) {
  if (typeof value !== "string") throw new WrongValue("string");
  if (!field.has_data_source && !field.options.some((option) => option.value === value)) {
    throw new WrongValue("option", { options: describeOptions(field) });
  }
  return value;
}

/** @type {(field: Field, values: unknown) => string[]} */
export function checkOptions(field, values) {
  if (!Array.isArray(values)) throw new WrongValue("optionList");
  if (values.length > MAX_SELECTIONS) {
    throw new WrongValue("optionCount", { count: MAX_SELECTIONS });
  }
  for (const value of values) checkOption(field, value);
  if (new Set(values).size < values.length) throw new WrongValue("optionOnce");
  return values;
}

/** @type {Check} */
export function checkSelections(field, value) {
  const values = checkOptions(field, value);
  const { min_selections: fewest, max_selections: most } = field.validation;
  if (fewest && values.length < fewest) throw new WrongValue("minSelections", { count: fewest });
  if (most && values.length > most) throw new WrongValue("maxSelections", { count: most });
  return values;
}

/** @type {Check} */
export function checkBox(field, value) {
  if (typeof value !== "boolean") throw new WrongValue("boolean");
  if (field.required && !value) throw new WrongValue("checked");
  return value;
}
