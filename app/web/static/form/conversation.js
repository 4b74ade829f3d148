// A conversation that fills in the form. Its id is kept for this tab, so that it survives a reload.
import { ApiProblem, createKey } from "./api.js";
import { readEvents } from "../shared/event-stream.js";
import { getLanguage, getText } from "./texts.js";

export class Conversation {
  /** @type {string | null} */
  #id;
  #key = createKey();

  /** @param {FormApi} api @param {string} slug */
  constructor(api, slug) {
    this.api = api;
    // A conversation goes on in its language.
    const language = getLanguage();
    this.storageKey = `parley:form:${slug}${language === "en" ? "" : `:${language}`}`;
    this.#id = readStored(this.storageKey);
  }

  // Goes on with the conversation of this tab, or starts one with answers that are known. Returns
  // its messages and how far it is. Throws ApiProblem.
  /** @type {(values: Answers) => Promise<ConversationState>} */
  async open(values) {
    if (this.#id) {
      try {
        return await this.load();
      } catch (problem) {
        if (!(problem instanceof ApiProblem && problem.status === 404)) throw problem;
        this.forget();
      }
    }
    const headers = { "idempotency-key": this.#key };
    const body = { data: values, language: getLanguage() };
    /** @type {{ data: ConversationView; message: FormMessage }} */
    const { data, message } = await this.api.post("/conversations", body, headers);
    this.#id = data.id;
    store(this.storageKey, data.id);
    return { view: data, messages: [message] };
  }

  /** @type {() => Promise<ConversationState>} */
  async load() {
    const path = `/conversations/${this.#id}`;
    /** @type {[{ data: ConversationView }, { data: FormMessage[] }]} */
    const [view, messages] = await Promise.all([
      this.api.get(path),
      this.api.get(`${path}/messages`),
    ]);
    return { view: view.data, messages: messages.data };
  }

  // Yields the events of the reply. Throws ApiProblem.
  /** @type {(content: string) => AsyncGenerator<ServerEvent<ReplyData>>} */
  async *send(content) {
    const response = await this.api.stream(`/conversations/${this.#id}/messages/stream`, {
      content,
    });
    /** @type {AsyncGenerator<ServerEvent<ReplyData & ErrorBody>>} */
    const events = readEvents(response);
    for (;;) {
      const { done, value } = await readNext(events);
      if (done) return;
      if (value.event === "error") throw new ApiProblem(400, value.data);
      yield value;
    }
  }

  forget() {
    this.#id = null;
    this.#key = createKey();
    store(this.storageKey, null);
  }
}

/** @type {<T>(events: AsyncGenerator<T>) => Promise<IteratorResult<T>>} */
async function readNext(events) {
  try {
    return await events.next();
  } catch {
    throw new ApiProblem(0, { message: getText("connectionLost") });
  }
}

// A frame may be forbidden to store anything; then a reload starts anew.
/** @type {(key: string) => string | null} */
function readStored(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @type {(key: string, value: string | null) => void} */
function store(key, value) {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, value);
  } catch {
    // See readStored.
  }
}
