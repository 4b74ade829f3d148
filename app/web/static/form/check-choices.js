// The rules of app/domain/forms/definition/fields/choices.py.
import { toPlainText } from "./links.js";
import { joinWords } from "./text.js";
import { WrongValue } from "./wrong-value.js";

const LISTED_OPTIONS = 20;
const MAX_SELECTIONS = 500;

/** @type {(field: Field) => string} */
function describeOptions(field) {
  const labels = field.options.map((option) => toPlainText(option.label));
  if (labels.length > LISTED_OPTIONS) {
    const rest = labels.length - LISTED_OPTIONS;
    return `${labels.slice(0, LISTED_OPTIONS).join(", ")} and ${rest} more`;
  }
  return joinWords(labels);
}

/** @type {(field: Field, value: unknown) => string} */
export function checkOption(field, value) {
  if (typeof value !== "string") throw new WrongValue("must be a string");
  if (!field.has_data_source && !field.options.some((option) => option.value === value)) {
    throw new WrongValue(`must be one of the options: ${describeOptions(field)}`);
  }
  return value;
}

/** @type {(field: Field, values: unknown) => string[]} */
export function checkOptions(field, values) {
  if (!Array.isArray(values)) throw new WrongValue("must be a list of options");
  if (values.length > MAX_SELECTIONS) {
    throw new WrongValue(`must have at most ${MAX_SELECTIONS} options`);
  }
  for (const value of values) checkOption(field, value);
  if (new Set(values).size < values.length) throw new WrongValue("must have each option once");
  return values;
}

/** @type {Check} */
export function checkSelections(field, value) {
  const values = checkOptions(field, value);
  const { min_selections: fewest, max_selections: most } = field.validation;
  if (values.length < (fewest ?? 0)) {
    throw new WrongValue(`must have at least ${fewest} of the options`);
  }
  if (values.length > (most ?? MAX_SELECTIONS)) {
    throw new WrongValue(`must have at most ${most} of the options`);
  }
  return values;
}

/** @type {Check} */
export function checkBox(field, value) {
  if (typeof value !== "boolean") throw new WrongValue("must be true or false");
  if (field.required && !value) throw new WrongValue("must be checked");
  return value;
}
