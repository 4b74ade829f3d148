// The page in a frame of another site: tells the page around it how high it is.

export const isFramed = window.parent !== window;

// The page around is not known, and learns nothing that is secret.
/** @type {(type: string, details?: Record<string, unknown>) => void} */
export function notify(type, details = {}) {
  if (isFramed) window.parent.postMessage({ ...details, type: `parley:${type}` }, "*");
}

export function reportHeight() {
  if (!isFramed) return;
  const report = () => {
    notify("height", { height: Math.ceil(document.body.getBoundingClientRect().height) });
  };
  new ResizeObserver(report).observe(document.body);
}

// Moves the focus to an element, and lets the page around scroll to it.
/** @type {(element: HTMLElement, block?: ScrollLogicalPosition) => void} */
export function moveTo(element, block = "start") {
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block });
  notify("show", { top: Math.round(element.getBoundingClientRect().top) });
}
