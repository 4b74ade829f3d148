// Loads the options of fields that have a data source.

export class OptionLoader {
  /** @type {Map<string, Promise<{ data: FieldOption[] }>>} */
  #requests = new Map();

  /** @param {FormApi} api */
  constructor(api) {
    this.api = api;
  }

  // Each field is requested once, and again after a failure. Throws ApiProblem.
  /** @type {(field: Field) => Promise<FieldOption[]>} */
  async load({ id }) {
    const request = this.#requests.get(id) ?? this.api.get(`/fields/${id}/options`);
    this.#requests.set(id, request);
    try {
      return (await request).data;
    } catch (problem) {
      this.#requests.delete(id);
      throw problem;
    }
  }
}
