// Checks answers as the server does, so that a visitor sees at once what is wrong. The server
// decides: what is hard to check here (addresses, patterns) may pass and be refused there, but
// nothing that it takes is refused here.
import { required } from "../shared/dom.js";
import { typeOf } from "./controls/registry.js";
import { strip } from "./text.js";
import { WrongValue } from "./wrong-value.js";

// False for types that show something and are not answered.
/** @type {(field: Field) => boolean} */
export function hasValue(field) {
  return Boolean(typeOf(field).check);
}

// True for a value that stands for no answer.
/** @type {(value: unknown) => boolean} */
export function isEmpty(value) {
  if (value === null || value === undefined) return true;
  if (typeof value === "string") return !strip(value);
  return Array.isArray(value) && value.length === 0;
}

// True for what a control reads before anybody uses it, such as an unchecked box.
/** @type {(field: Field, value: unknown) => boolean} */
export function isUntouched(field, value) {
  return isEmpty(value) || value === typeOf(field).initialValue;
}

// Returns { value } with the stored form of an answer that is not empty, or { problem } with what is
// wrong with it.
/** @type {(field: Field, value: unknown) => CheckResult} */
export function check(field, value) {
  try {
    return { value: required(typeOf(field).check)(field, value) };
  } catch (error) {
    if (error instanceof WrongValue) return { problem: error.problem };
    throw error;
  }
}
