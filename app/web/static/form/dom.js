// Builds elements. Children that are texts become text nodes: no text is ever read as HTML.

// `attributes` may have `on`, the listeners by the names of events. Attributes without a value
// (null, undefined, false) are left out, and so are such children.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  const { on = {}, ...others } = attributes;
  for (const [name, value] of Object.entries(others)) setAttribute(element, name, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.flat().filter((child) => child || child === 0));
  return element;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

// A text of the form's author or of a visitor, which may be in any language.
export function prose(tag, text, attributes = {}) {
  return text ? el(tag, { dir: "auto", ...attributes }, text) : null;
}

// A text of ours, which is English also where the form is written from right to left.
export function own(text) {
  return el("span", { dir: "ltr" }, text);
}

export function button(text, listener, attributes = {}) {
  return el("button", { type: "button", on: { click: listener }, ...attributes }, text);
}

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  check: "M5 12.5l4.5 4.5L19 7.5",
  upload: "M12 16V5m0 0L7.5 9.5M12 5l4.5 4.5M5 19h14",
  file: "M14 3H7a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V7zm0 0v4h4",
  send: "M5 12h14m0 0l-6-6m6 6l-6 6",
};

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
