// The visitor's session: opens and renews its token, and sends requests.

// A token is renewed when less than this is left of it.
const RENEW_MS = 120_000;
/** @type {Record<string, ErrorKind>} */
const KINDS = {
  origin_not_allowed: "origin",
  session_mismatch: "origin",
  user_token_required: "signIn",
  user_token_invalid: "signIn",
  daily_limit_reached: "daily",
  conversation_busy: "busy",
  unavailable: "unavailable",
  agent_not_found: "revoked",
};

// A token with these codes is of no use any more.
const REFUSED = new Set(["unauthorized", "user_token_required"]);

// `kind` names the text that a visitor reads.
export class ChatError extends Error {
  /** @param {ErrorKind} kind */
  constructor(kind, { code = "", seconds = 0, messageId = "" } = {}) {
    super(kind);
    this.kind = kind;
    this.code = code;
    this.seconds = seconds;
    this.messageId = messageId;
  }
}

export class Session {
  /** @type {string | null} */
  token = null;
  expiresAt = 0;
  id = "";
  // The conversation that a customer wants next: an id, or `new`.
  wanted = "";
  wasOpened = false;
  // Raised with every choice of a conversation: what was asked for before is of no use any more.
  generation = 0;
  /** @type {Promise<void> | null} */
  opening = null;

  /** @param {SessionOptions} options */
  constructor({ base, agentId, apiKey, userToken, storage }) {
    this.base = base;
    this.path = `${base}api/v1/public/agents/${encodeURIComponent(agentId)}`;
    this.apiKey = apiKey;
    this.userToken = userToken;
    this.storage = storage;
  }

  // Continues as another customer, or as nobody in particular.
  /** @type {(userToken: string | null) => void} */
  identify(userToken) {
    this.userToken = userToken || null;
    this.token = null;
    this.id = this.wanted = "";
    this.forgetOpening();
  }

  // Continues an earlier conversation, or begins a new one.
  /** @type {(id?: string) => void} */
  choose(id) {
    this.forgetOpening();
    this.id = "";
    if (this.userToken) {
      this.wanted = id ?? "new";
    } else {
      this.storage.set("session", id ?? null);
      this.token = null;
    }
  }

  forgetOpening() {
    this.generation += 1;
    this.opening = null;
  }

  // Conversations of customers are the same on all devices, others are this browser's.
  get isAnonymous() {
    return !this.userToken;
  }

  get currentId() {
    return this.id || this.storage.get("session");
  }

  // Returns the agent and the messages so far.
  /** @type {() => Promise<SessionState>} */
  async load() {
    return (await this.request("GET", "/session")).json();
  }

  /** @type {Ask} */
  async request(method, path, build, signal) {
    const { generation } = this;
    await this.ensureToken();
    const send = () => this.fetch(method, path, this.token, build?.(this.id), signal);
    try {
      return await send();
    } catch (error) {
      // An expired token, or a refusal that the browser hides: opening a session tells the reason.
      if (!(error instanceof ChatError) || generation !== this.generation) throw error;
      if (error.code !== "unauthorized" && error.kind !== "hidden") throw error;
      this.token = null;
      await this.ensureToken();
      return send();
    }
  }

  // Requests at the same time share one session.
  async ensureToken() {
    const left = this.expiresAt - Date.now();
    if (this.token && left > RENEW_MS && !this.wanted) return;
    const opening = this.opening ??= this.renew(left);
    try {
      await opening;
    } finally {
      if (this.opening === opening) this.opening = null;
    }
  }

  /** @type {(left: number) => Promise<void>} */
  async renew(left) {
    const { generation } = this;
    if (this.token && left > 0) {
      try {
        await this.open(this.token, { conversation: this.wanted || undefined });
        return;
      } catch (error) {
        const isRefused = error instanceof ChatError && REFUSED.has(error.code);
        if (!isRefused || generation !== this.generation) throw error;
      }
    }
    await this.open(this.apiKey, this.describe());
  }

  // Says which session to open: a customer's, the last one of this browser, or a new one.
  /** @type {() => Record<string, string | undefined>} */
  describe() {
    if (this.userToken) {
      return { user_token: this.userToken, conversation: this.wanted || this.id || undefined };
    }
    const known = this.storage.get("session");
    return known ? { session_id: known } : {};
  }

  /** @type {(credential: string, body: object) => Promise<void>} */
  async open(credential, body) {
    const { generation } = this;
    const response = await this.fetch("POST", "/session", credential, body).catch(
      (error) => this.explainRefusal(error, credential),
    );
    const session = await response.json();
    if (generation !== this.generation) throw new ChatError("failed");
    this.wasOpened = true;
    this.token = session.token;
    this.id = session.session_id;
    this.wanted = "";
    this.expiresAt = Date.now() + session.expires_in * 1000;
    if (!this.userToken) this.storage.set("session", this.id);
  }

  /** @type {Fetch} */
  async fetch(method, path, credential, body, signal) {
    /** @type {Record<string, string>} */
    const headers = { authorization: `Bearer ${credential}` };
    const isForm = body instanceof FormData;
    if (body && !isForm) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch(this.path + path, {
        method,
        headers,
        signal,
        body: isForm ? body : body && JSON.stringify(body),
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw await this.explain(path);
    }
    if (!response.ok) throw await toError(response);
    return response;
  }

  // A key that never worked on this page is not set up for it; its owner reads what to do.
  /** @type {(error: unknown, credential: string) => Promise<never>} */
  async explainRefusal(error, credential) {
    const isKey = credential === this.apiKey && error instanceof ChatError;
    const isWrong = isKey && error.code === "unauthorized" && !this.wasOpened;
    if (isWrong || (isKey && error.kind === "origin")) {
      const { explainSetup } = await import("./setup-help.js");
      explainSetup(this.apiKey, isWrong ? "key" : "origin");
    }
    throw isWrong ? new ChatError("origin", { code: error.code }) : error;
  }

  // A browser does not say why it could not send a request.
  /** @type {(path: string) => Promise<ChatError>} */
  async explain(path) {
    if (!navigator.onLine) return new ChatError("offline");
    try {
      await fetch(`${this.base}embed/widget.js`, { method: "HEAD", cache: "no-store" });
      return new ChatError(path === "/session" ? "origin" : "hidden");
    } catch {
      return new ChatError("unreachable");
    }
  }
}

/** @type {(response: Response) => Promise<ChatError>} */
export async function toError(response) {
  let code = "";
  let messageId = "";
  try {
    const { error } = await response.json();
    code = error.code;
    messageId = error.details?.message_id;
  } catch {
    // A proxy answered.
  }
  const seconds = Number(response.headers.get("retry-after")) || 0;
  return new ChatError(KINDS[code] ?? kindOf(response.status), { code, seconds, messageId });
}

/** @type {(code: string) => ErrorKind} */
export function toKind(code) {
  return KINDS[code] ?? "failed";
}

/** @type {(status: number) => ErrorKind} */
function kindOf(status) {
  if (status === 401 || status === 403) return "revoked";
  if (status === 429) return "limited";
  return "failed";
}
