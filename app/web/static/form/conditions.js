// Conditionals: whether a field is shown, given the answers to others. The rules are those of
// app/domain/forms/conditions.py.
import { compareTexts, fold } from "./text.js";

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
      values.some((value) => isEqual(item, value))
    ),
};

// `answers` maps the ids of fields that are shown to their stored values.
export function isMet(conditional, answers) {
  const answer = answers.get(conditional.field) ?? null;
  return OPERATORS[conditional.operator](answer, conditional.value ?? null);
}

// True for an unchecked box, too.
function isEmpty(answer) {
  return answer === null || answer === false || answer === "" || isEmptyList(answer);
}

function isEmptyList(answer) {
  return Array.isArray(answer) && answer.length === 0;
}

// An unchecked box and no answer are equal. The order of several options does not matter.
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

function contains(answer, value) {
  if (Array.isArray(answer)) return answer.includes(value);
  return typeof answer === "string" && fold(answer).includes(fold(value));
}

// 0 for values that have no order. Dates are texts whose order is that of time.
function compare(answer, value) {
  if (typeof answer !== typeof value) return 0;
  if (typeof answer === "number") return Math.sign(answer - value);
  return typeof answer === "string" ? compareTexts(answer, value) : 0;
}
