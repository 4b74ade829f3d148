// Answers that the address of the page has: those of hidden fields, and a beginning for others.
import { check, hasValue, isEmpty } from "./checks.js";
import { typeOf } from "./controls/registry.js";

// Returns the values that the fields take, by their ids.
/** @type {(fields: Field[], values: Answers) => Answers} */
export function selectValues(fields, values) {
  /** @type {Answers} */
  const found = {};
  for (const field of fields) {
    const { fromAddress = String } = typeOf(field);
    if (!hasValue(field) || !fromAddress || !Object.hasOwn(values, field.id)) continue;
    const value = fromAddress(values[field.id]);
    if (!isEmpty(value) && !check(field, value).problem) found[field.id] = value;
  }
  return found;
}
