// Answers that the address of the page has: those of hidden fields, and a beginning for others.
import { check, hasValue, isEmpty } from "./checks.js";

// Nobody else may agree or sign for a visitor, or choose a file.
const NEVER = new Set(["checkbox", "signature", "file"]);
const NUMERIC = new Set(["number", "rating", "slider"]);
const SEVERAL = new Set(["multi_select", "checkbox_group"]);

// Returns the values that the fields take, by their ids.
export function selectValues(fields, values) {
  const found = {};
  for (const field of fields) {
    if (!hasValue(field) || NEVER.has(field.type) || !Object.hasOwn(values, field.id)) continue;
    const value = convert(field, values[field.id]);
    if (!isEmpty(value) && !check(field, value).problem) found[field.id] = value;
  }
  return found;
}

function convert(field, value) {
  if (NUMERIC.has(field.type)) return Number(value);
  if (SEVERAL.has(field.type)) return Array.isArray(value) ? value : String(value).split(",");
  return field.type === "hidden" ? value : String(value);
}
