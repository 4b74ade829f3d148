// Requests to the routes for visitors of a form.
import { getLanguage, getText } from "./texts.js";

const TIMEOUT_MS = 60_000;
// A model may take its time to read a message.
const STREAM_TIMEOUT_MS = 180_000;

// An answer that refuses the request, or no answer at all (`status` is 0).
export class ApiProblem extends Error {
  /** @param {number} status @param {ErrorBody} error */
  constructor(status, { code = "", message = "", details = null } = {}) {
    super(explain(status, code, message));
    this.status = status;
    this.code = code;
    // [{ field, message }] for answers that are not valid.
    this.errors = Array.isArray(details?.errors) ? details.errors : [];
  }

  get isLost() {
    return this.status === 0 || this.status >= 500;
  }
}

/** @type {Record<string, "formClosed" | "formUnavailable" | "draftExpired">} */
const REFUSALS = {
  form_closed: "formClosed",
  form_not_published: "formUnavailable",
  form_not_found: "formUnavailable",
  draft_not_found: "draftExpired",
};

// The server speaks English; in other languages, the page says what its answer means.
/** @type {(status: number, code: string, message: string) => string} */
function explain(status, code, message) {
  if (message && (status === 0 || getLanguage() === "en")) return message;
  if (!message || status >= 500) return getText("noAnswer");
  if (status === 429) return getText("tooMany");
  return getText(REFUSALS[code] ?? "notAccepted");
}

export class FormApi {
  /** @param {string} slug @param {string | null} referrer */
  constructor(slug, referrer) {
    this.path = `/api/v1/public/forms/${encodeURIComponent(slug)}`;
    this.referrer = referrer;
  }

  /** @type {<T>(path: string, headers?: HeaderValues) => Promise<T>} */
  get(path, headers = {}) {
    return this.#send(path, { headers });
  }

  /** @type {<T>(path: string, body: object | string, headers?: HeaderValues) => Promise<T>} */
  post(path, body, headers = {}) {
    return this.#send(path, { method: "POST", body, headers });
  }

  // Returns the response itself, for its events.
  /** @type {(path: string, body: object) => Promise<Response>} */
  stream(path, body) {
    const signal = AbortSignal.timeout(STREAM_TIMEOUT_MS);
    return this.#fetch(path, { method: "POST", body: JSON.stringify(body), headers: {}, signal });
  }

  /** @type {<T>(path: string, options: RequestOptions) => Promise<T>} */
  async #send(path, options) {
    const { body } = options;
    const text = typeof body === "object" ? JSON.stringify(body) : body;
    const response = await this.#fetch(path, {
      ...options,
      body: text,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    try {
      return await response.json();
    } catch {
      throw new ApiProblem(0, { message: getText("connectionLost") });
    }
  }

  /** @type {(path: string, options: RequestInit) => Promise<Response>} */
  async #fetch(path, { headers, ...options }) {
    const response = await this.#reach(path, {
      ...options,
      // So that the server learns which page it was.
      referrerPolicy: "same-origin",
      headers: {
        ...(options.body ? { "content-type": "application/json" } : {}),
        ...(this.referrer ? { "x-page-referrer": this.referrer } : {}),
        ...headers,
      },
    });
    if (!response.ok) throw new ApiProblem(response.status, await readError(response));
    return response;
  }

  /** @type {(path: string, options: RequestInit) => Promise<Response>} */
  async #reach(path, options) {
    try {
      return await fetch(this.path + path, options);
    } catch {
      throw new ApiProblem(0, { message: getText("connectionLost") });
    }
  }
}

/** @type {(response: Response) => Promise<ErrorBody>} */
async function readError(response) {
  try {
    return (await response.json()).error;
  } catch {
    return {};
  }
}

// For the header Idempotency-Key: a request that is repeated with it has its effect once.
/** @type {() => string} */
export function createKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
