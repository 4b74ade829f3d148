// Colours that a customer chooses, with texts that stay readable on them.

const READABLE = 4.5;
/** @type {[Color, Color]} */
const [WHITE, BLACK] = [
  [255, 255, 255],
  [0, 0, 0],
];
// The surfaces of both themes, as theme.css has them.
const SURFACES = { light: [255, 255, 255], dark: [24, 24, 27] };
const STEPS = 20;

// Sets the variables of theme.css that follow from a colour like #4338ca. Another text is ignored.
/** @type {(style: CSSStyleDeclaration, color: string | null | undefined) => void} */
export function applyAccent(style, color) {
  const accent = parseColor(color);
  if (!accent) return;
  const light = toCss(makeReadable(accent, SURFACES.light));
  const dark = toCss(makeReadable(accent, SURFACES.dark));
  const onAccent = contrast(accent, WHITE) >= contrast(accent, BLACK) ? WHITE : BLACK;
  style.setProperty("--accent", toCss(accent));
  style.setProperty("--on-accent", toCss(onAccent));
  for (const name of ["--link", "--focus"]) {
    style.setProperty(name, `light-dark(${light}, ${dark})`);
  }
}

/** @type {(color: string | null | undefined) => Color | null} */
export function parseColor(color) {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color ?? "");
  return match && match.slice(1).map((part) => Number.parseInt(part, 16));
}

/** @type {(color: Color) => string} */
function toCss(color) {
  return `rgb(${color.map(Math.round).join(" ")})`;
}

/** @type {(color: Color) => number} */
function luminance(color) {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// As WCAG defines it: from 1 to 21.
/** @type {(color: Color, other: Color) => number} */
export function contrast(color, other) {
  const [low, high] = [luminance(color), luminance(other)].sort((one, two) => one - two);
  return (high + 0.05) / (low + 0.05);
}

/** @type {(background: Color) => "light" | "dark"} */
export function findScheme(background) {
  return contrast(background, BLACK) >= contrast(background, WHITE) ? "light" : "dark";
}

// Mixes a colour with black or white until it can be read on the surface.
/** @type {(color: Color, surface: Color) => Color} */
export function makeReadable(color, surface) {
  const target = findScheme(surface) === "light" ? BLACK : WHITE;
  for (let step = 0; step < STEPS; step += 1) {
    const mixed = color.map((part, index) => part + ((target[index] - part) * step) / STEPS);
    if (contrast(mixed, surface) >= READABLE) return mixed;
  }
  return target;
}
