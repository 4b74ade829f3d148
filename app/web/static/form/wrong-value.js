import { Problem } from "./problems.js";

// Refuses a value; the name is that of a text of PROBLEMS.
export class WrongValue extends Error {
  /** @param {ConstructorParameters<typeof Problem>} problem */
  constructor(...problem) {
    super(problem[0]);
    this.problem = new Problem(...problem);
  }
}
