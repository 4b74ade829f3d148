// A value that the address of the page or the embedding page has set.
export function hidden() {
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
