// Texts, compared and measured as the server does it.

// What Python's str.strip() takes for white space.
const SPACE =
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const EDGES = new RegExp(`^${SPACE}+|${SPACE}+$`, "gu");
const STRONG =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]|(\p{L})/u;

/** @type {(text: string) => string} */
export function strip(text) {
  return text.replace(EDGES, "");
}

// In characters, not in UTF-16 units.
/** @type {(text: string) => number} */
export function countCharacters(text) {
  return [...text].length;
}

// Texts that differ only in case become equal, also ß and SS.
/** @type {(text: string) => string} */
export function fold(text) {
  return text.toUpperCase().toLowerCase().replaceAll("ς", "σ");
}

// Returns -1, 0 or 1, by code points.
/** @type {(text: string, other: string) => number} */
export function compareTexts(text, other) {
  const [letters, others] = [[...text], [...other]];
  for (let index = 0; index < Math.min(letters.length, others.length); index += 1) {
    const difference = codeOf(letters[index]) - codeOf(others[index]);
    if (difference) return Math.sign(difference);
  }
  return Math.sign(letters.length - others.length);
}

/** @type {(letter: string) => number} */
function codeOf(letter) {
  return letter.codePointAt(0) ?? 0;
}

// The direction of the first letter that has one.
/** @type {(text: string) => "rtl" | "ltr"} */
export function findDirection(text) {
  const match = STRONG.exec(text);
  return match && match[1] === undefined ? "rtl" : "ltr";
}
