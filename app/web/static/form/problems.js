// What is wrong with an answer, in the words of the page or of the server.
import { choose, fill, PROBLEMS } from "./texts.js";

// A problem that the page has found.
/** @implements {AnswerProblem} */
export class Problem {
  /** @param {keyof typeof PROBLEMS} name @param {TextValues} values */
  constructor(name, values = {}) {
    this.name = name;
    this.values = values;
  }

  get sentence() {
    return fill(choose(PROBLEMS[this.name].field, this.values), this.values);
  }

  // What stands before and after the label of the field.
  /** @type {() => [string, string]} */
  splitAtLabel() {
    const [before, after] = choose(PROBLEMS[this.name].list, this.values).split("{label}");
    return [fill(before, this.values), fill(after, this.values)];
  }
}

// A problem in the words of the server, which are English: a sentence, or the end of one.
/** @implements {AnswerProblem} */
export class ServerProblem {
  /** @param {string} message */
  constructor(message) {
    this.message = message;
  }

  get sentence() {
    const text = /^\p{Ll}/u.test(this.message) ? `This ${this.message}` : this.message;
    return /[.!?…]$/.test(text) ? text : `${text}.`;
  }

  /** @type {() => [string, string]} */
  splitAtLabel() {
    return ["“", `” ${this.message}`];
  }
}

/** @type {(errors: { field: string; message: string }[]) => Map<string, AnswerProblem>} */
export function listServerProblems(errors) {
  return new Map(errors.map(({ field, message }) => [field, new ServerProblem(message)]));
}
