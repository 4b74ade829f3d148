// Builds elements. Children that are texts become text nodes: no text is ever read as HTML.

// `attributes` may have `on`, the listeners by the names of events. Attributes without a value
// (null, undefined, false) are left out, and so are such children.
/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  const { on = {}, ...others } = attributes;
  // Before the attributes: with dir="auto", a browser would look at all children for each new one.
  element.append(...children.flat().filter(isShown));
  for (const [name, value] of Object.entries(others)) setAttribute(element, name, value);
  for (const [name, handleEvent] of Object.entries(on)) {
    element.addEventListener(name, { handleEvent });
  }
  return element;
}

/** @type {(child: Child) => child is Node | string} */
function isShown(child) {
  return Boolean(child);
}

/** @type {(element: Element, name: string, value: Attributes[string]) => void} */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

// A text of an author or of a visitor, which may be in any language.
/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string | null | undefined} text
 * @param {Attributes} attributes
 */
export function prose(tag, text, attributes = {}) {
  return text ? el(tag, { dir: "auto", ...attributes }, text) : null;
}

/** @type {(text: Child | Child[], listener: () => void, attributes?: Attributes) => HTMLButtonElement} */
export function button(text, listener, attributes = {}) {
  return el("button", { type: "button", on: { click: listener }, ...attributes }, text);
}

// Returns a value that the page or the code around guarantees, such as an element of the page.
/** @type {<Value>(value: Value | null | undefined) => Value} */
export function required(value) {
  if (value === null || value === undefined) throw new Error("A part of the page is missing.");
  return value;
}

const SVG = "http://www.w3.org/2000/svg";
export const PATHS = {
  back: "M19 12H5m0 0l6-6m-6 6l6 6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  down: "M12 5v14m0 0l-6-6m6 6l6-6",
  file: "M14 3H7a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V7zm0 0v4h4",
  history: "M12 7v5l3.5 2M5 12a7 7 0 1 0 2.2-5.1M5 4v4h4",
  microphone:
    "M12 4a2.5 2.5 0 0 1 2.5 2.5v5a2.5 2.5 0 0 1-5 0v-5A2.5 2.5 0 0 1 12 4zM6 11.5a6 6 0 0 0 12 0M12 17.5V21",
  open: "M10 6H5v13h13v-5M14 5h5v5M19 5l-8 8",
  restart: "M12 5v14M5 12h14",
  retry: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
  send: "M12 19V5m0 0l-6 6m6-6l6 6",
  speaker: "M5 10v4h3l4 4V6l-4 4zM16 9a4 4 0 0 1 0 6M18.5 6.5a8 8 0 0 1 0 11",
  stop: "M7 7h10v10H7z",
  thumbDown:
    "M7 4v9M7 13l4 7c1.5 0 2.5-1 2.5-2.5V14H18c1.5 0 2-1 1.8-2.2l-1.2-6C18.4 4.6 17.5 4 16.5 4H4v9h3",
  thumbUp:
    "M7 20v-9M7 11l4-7c1.5 0 2.5 1 2.5 2.5V10H18c1.5 0 2 1 1.8 2.2l-1.2 6c-.2 1.2-1.1 1.8-2.1 1.8H4v-9h3",
  upload: "M12 16V5m0 0L7.5 9.5M12 5l4.5 4.5M5 19h14",
};

/** @type {(name: Icon) => SVGElement} */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
