// Which fields are shown and what is wrong with their answers, as app/domain/forms/submissions/answers.py
// decides it.
import { check, hasValue, isEmpty, isUntouched } from "./checks.js";
import { isMet } from "./conditions.js";

// `data` has answers by the ids of fields. Returns the stored values, the problems and the ids of
// the fields that are shown. Without `isComplete`, required answers may be missing.
/**
 * @param {Field[]} fields
 * @param {Record<string, unknown>} data
 */
export function evaluate(fields, data, { isComplete = true } = {}) {
  /** @type {Map<string, Answer>} */
  const values = new Map();
  /** @type {Map<string, string>} */
  const problems = new Map();
  /** @type {Set<string>} */
  const visible = new Set();
  for (const field of orderByDependency(fields)) {
    if (field.conditional && !isMet(field.conditional, values)) continue;
    visible.add(field.id);
    const { value, problem } = hasValue(field)
      ? checkAnswer(field, data[field.id], isComplete)
      : {};
    if (value !== undefined) values.set(field.id, value);
    if (problem) problems.set(field.id, problem);
  }
  return { values, problems, visible };
}

/** @type {(field: Field, value: unknown, isComplete: boolean) => CheckResult} */
function checkAnswer(field, value, isComplete) {
  if (isEmpty(value)) return field.required && isComplete ? { problem: "is required" } : {};
  const mayWait = field.required && !isComplete && isUntouched(field, value);
  return mayWait ? {} : check(field, value);
}

// Each field after the one that its conditional names.
/** @type {(fields: Field[]) => Set<Field>} */
function orderByDependency(fields) {
  const byId = new Map(fields.map((field) => [field.id, field]));
  /** @type {Set<Field>} */
  const ordered = new Set();
  for (const field of fields) {
    const chain = [];
    /** @type {Field | undefined} */
    let current = field;
    while (current && !ordered.has(current)) {
      chain.push(current);
      current = byId.get(current.conditional?.field ?? "");
    }
    for (const item of chain.reverse()) ordered.add(item);
  }
  return ordered;
}
