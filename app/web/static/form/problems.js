// What is wrong with an answer, in the words of the page or of the server.
import { choose, fill, getLanguage, getProblem, PROBLEMS } from "./texts.js";

// A problem that the page has found.
/** @implements {AnswerProblem} */
export class Problem {
  /** @param {keyof typeof PROBLEMS} name @param {TextValues} values */
  constructor(name, values = {}) {
    this.name = name;
    this.values = values;
  }

  get sentence() {
    return fill(choose(getProblem(this.name).field, this.values), this.values);
  }

  // What stands before and after the label of the field.
  /** @type {() => [string, string]} */
  splitAtLabel() {
    const [before, after] = choose(getProblem(this.name).list, this.values).split("{label}");
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
  return new Map(errors.map(({ field, message }) => [field, translate(message)]));
}

// Finds the words of the server in the English table, so that another language can say the same.
/** @type {(message: string) => AnswerProblem} */
function translate(message) {
  if (getLanguage() === "en") return new ServerProblem(message);
  for (const name of /** @type {(keyof typeof PROBLEMS)[]} */ (Object.keys(PROBLEMS))) {
    for (const text of listVariants(PROBLEMS[name].list)) {
      const values = match(text.replace("“{label}” ", ""), message);
      if (values) return new Problem(name, values);
    }
  }
  return new ServerProblem(message);
}

/** @type {(text: FixedText) => string[]} */
function listVariants(text) {
  return typeof text === "string" ? [text] : Object.values(text);
}

// Returns the values of the {placeholders} of a text, if a message is that text.
/** @type {(text: string, message: string) => TextValues | null} */
function match(text, message) {
  const parts = text.split(/\{(\w+)\}/);
  const pattern = parts.map((part, index) => index % 2 ? "(.+)" : quote(part));
  const found = new RegExp(`^${pattern.join("")}$`, "s").exec(message);
  if (!found) return null;
  const names = parts.filter((_, index) => index % 2);
  return Object.fromEntries(names.map((name, index) => {
    const value = found[index + 1];
    return [name, name === "count" ? Number(value.replaceAll(",", "")) : value];
  }));
}

/** @type {(text: string) => string} */
function quote(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
