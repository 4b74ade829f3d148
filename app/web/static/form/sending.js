// Sends the answers. The same answers are sent with the same key, so that they are stored once even
// if the connection is lost before the server's answer arrives.
import { createKey } from "./api.js";

export class Sending {
  #body = "";
  #key = "";

  /** @param {FormApi} api @param {string} path */
  constructor(api, path) {
    this.api = api;
    this.path = path;
  }

  // Throws ApiProblem.
  /** @type {<T>(content: object) => Promise<T>} */
  send(content) {
    const body = JSON.stringify(content);
    if (body !== this.#body) {
      this.#body = body;
      this.#key = createKey();
    }
    return this.api.post(this.path, body, { "idempotency-key": this.#key });
  }
}
