// Conditionals: whether a field is shown, given the answers to others. The rules are those of
// app/domain/forms/definition/conditions.py.
import { required } from "../shared/dom.js";
import { compareTexts, fold } from "./text.js";

/** @type {Record<Operator, (answer: unknown, value: unknown) => boolean>} */
const OPERATORS = {
  equals: isEqual,
  not_equals: (answer, value) => !isEqual(answer, value),
  contains,
  gt: (answer, value) => compare(answer, value) > 0,
  lt: (answer, value) => compare(answer, value) < 0,
  is_empty: isEmpty,
  is_not_empty: (answer) => !isEmpty(answer),
  in: (answer, values) =>
    (Array.isArray(answer) ? answer : [answer]).some((item) =>
      Array.isArray(values) && values.some((value) => isEqual(item, value))
    ),
};

// `answers` maps the ids of fields that are shown to their stored values.
/** @type {(conditional: Conditional, answers: Map<string, Answer>) => boolean} */
export function isMet(conditional, answers) {
  if (conditional.all) return conditional.all.every((part) => isMet(part, answers));
  if (conditional.any) return conditional.any.some((part) => isMet(part, answers));
  const { field = "", operator, value = null } = conditional;
  return OPERATORS[required(operator)](answers.get(field) ?? null, value);
}

// Returns the ids of the fields whose answers decide about it.
/** @type {(conditional: Conditional | null) => string[]} */
export function listSources(conditional) {
  if (!conditional) return [];
  const parts = conditional.all ?? conditional.any;
  return parts ? parts.flatMap(listSources) : [conditional.field ?? ""];
}

// True for an unchecked box, too.
/** @type {(answer: unknown) => boolean} */
function isEmpty(answer) {
  return answer === null || answer === false || answer === "" || isEmptyList(answer);
}

/** @type {(answer: unknown) => boolean} */
function isEmptyList(answer) {
  return Array.isArray(answer) && answer.length === 0;
}

// An unchecked box and no answer are equal. The order of several options does not matter.
/** @type {(answer: unknown, value: unknown) => boolean} */
function isEqual(answer, value) {
  if (typeof value === "boolean" || typeof answer === "boolean") {
    return (answer ?? false) === value;
  }
  if (Array.isArray(answer)) {
    const [items, values] = [new Set(answer), new Set(Array.isArray(value) ? value : [value])];
    return items.size === values.size && [...items].every((item) => values.has(item));
  }
  return answer === value;
}

/** @type {(answer: unknown, value: unknown) => boolean} */
function contains(answer, value) {
  if (Array.isArray(answer)) return answer.includes(value);
  if (typeof answer !== "string" || typeof value !== "string") return false;
  return fold(answer).includes(fold(value));
}

// 0 for values that have no order. Dates are texts whose order is that of time.
/** @type {(answer: unknown, value: unknown) => number} */
function compare(answer, value) {
  if (typeof answer === "number" && typeof value === "number") return Math.sign(answer - value);
  return typeof answer === "string" && typeof value === "string" ? compareTexts(answer, value) : 0;
}
