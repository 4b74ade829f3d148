// A value that the address of the page or the embedding page has set.
/** @type {() => Control} */
export function hidden() {
  /** @type {Answer | undefined} */
  let current;
  return {
    element: null,
    inputs: [],
    read: () => current,
    write: (value) => {
      current = value;
    },
    focus: () => {},
  };
}
