// Which fields are shown and what is wrong with their answers, as app/domain/forms/submissions/answers.py
// decides it.
import { check, hasValue, isEmpty, isUntouched } from "./checks.js";
import { isMet, listSources } from "./conditions.js";
import { Problem } from "./problems.js";

// `data` has answers by the ids of fields. Returns the stored values, the problems and the ids of
// the fields that are shown. Without `isComplete`, required answers may be missing.
/**
 * @param {Field[]} fields
 * @param {Record<string, unknown>} data
 */
export function evaluate(fields, data, { isComplete = true } = {}) {
  /** @type {Map<string, Answer>} */
  const values = new Map();
  /** @type {Map<string, AnswerProblem>} */
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
  if (isEmpty(value)) {
    return field.required && isComplete ? { problem: new Problem("required") } : {};
  }
  const mayWait = field.required && !isComplete && isUntouched(field, value);
  return mayWait ? {} : check(field, value);
}

// Each field after those that its conditional names.
/** @type {(fields: Field[]) => Set<Field>} */
function orderByDependency(fields) {
  const byId = new Map(fields.map((field) => [field.id, field]));
  /** @type {Set<Field>} */
  const ordered = new Set();
  const add = (/** @type {Field | undefined} */ field) => {
    if (!field || ordered.has(field)) return;
    for (const id of listSources(field.conditional)) add(byId.get(id));
    ordered.add(field);
  };
  for (const field of fields) add(field);
  return ordered;
}
