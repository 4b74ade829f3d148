// Requests of pages to the HTTP API.

export const UNREACHABLE = "The server cannot be reached. Try again.";

// An answer that refuses the request.
export class Refusal extends Error {
  /** @param {ApiError} error @param {number} status */
  constructor(error, status) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.details = error.details ?? {};
  }
}

/** @type {<Body>(path: string, options: RequestInit) => Promise<Body>} */
export async function request(path, options) {
  const response = await fetch(path, options);
  const body = await response.json();
  if (!response.ok) throw new Refusal(body.error, response.status);
  return body;
}

/** @type {<Body>(path: string, body: object) => Promise<Body>} */
export function post(path, body) {
  return request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** @type {(error: unknown) => string} */
export function describe(error) {
  return error instanceof Refusal ? error.message : UNREACHABLE;
}
