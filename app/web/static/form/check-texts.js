// The rules of app/domain/forms/definition/fields/texts.py.
import { requireNumber } from "./check-numbers.js";
import { countCharacters, strip } from "./text.js";
import { WrongValue } from "./wrong-value.js";

export const MAX_LINE_CHARACTERS = 1000;
export const MAX_TEXT_CHARACTERS = 10_000;
const MAX_HIDDEN_CHARACTERS = 1000;
const MAX_URL_CHARACTERS = 2000;
const MAX_EMAIL_CHARACTERS = 254;
const MAX_PHONE_CHARACTERS = 40;
// Patterns are those of RE2, which takes linear time for every text. The engine of a browser may
// not: it runs only patterns without repeated groups, on short texts.
const MAX_MATCHED_CHARACTERS = 200;
const MAX_REPETITIONS = 3;
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const PHONE = /^[0-9+()\-./ \xa0]*$/;
const EMAIL = /^[!#$%&'*+\-/=?^_`{|}~.A-Za-z0-9]{1,64}@[^\s@<>()[\],;:\\"/]+$/u;
const URL_PARTS = /^(https?):\/\/([^/?#@:]*)(?::([0-9]*))?(?:[/?#].*)?$/iu;
const HOST =
  /^(?:(?:(?!-)[\p{L}\p{N}_-]{1,63}(?<!-)\.)+(?!-)[\p{L}\p{N}_-]{1,63}(?<!-)\.?|localhost)$/iu;

/** @type {(text: unknown) => string} */
function checkCharacters(text) {
  if (typeof text !== "string") throw new WrongValue("string");
  if (text.isWellFormed?.() === false) throw new WrongValue("unicode");
  if (text.includes("\0")) throw new WrongValue("nul");
  return text;
}

/** @type {(text: unknown) => string} */
function checkOneLine(text) {
  const line = checkCharacters(text);
  if (CONTROL.test(line)) throw new WrongValue("oneLine");
  return line;
}

/** @type {(text: string, field: Field, atMost: number) => void} */
function checkLength(text, field, atMost) {
  const { min_length: fewest = 0, max_length: longest = atMost } = field.validation;
  const length = countCharacters(text);
  if (length > longest) {
    throw new WrongValue("maxLength", { count: longest });
  }
  if (length < fewest) {
    throw new WrongValue("minLength", { count: fewest });
  }
}

/** @type {(text: string, pattern: string | undefined) => void} */
function checkPattern(text, pattern) {
  if (pattern && canMatch(text, pattern)) {
    const expression = compile(pattern);
    if (expression && !expression.test(text)) {
      throw new WrongValue("pattern");
    }
  }
}

// False for what may take long here, and for \s, which stands for more characters here.
/** @type {(text: string, pattern: string) => boolean} */
function canMatch(text, pattern) {
  const repetitions = pattern.match(/[*+?{]/g)?.length ?? 0;
  const hasOtherSpace = /\\s/i.test(pattern) && /[^\S \t\n\f\r]/u.test(text);
  return (
    text.length <= MAX_MATCHED_CHARACTERS &&
    repetitions <= MAX_REPETITIONS &&
    !/\)[*+{]/.test(pattern) &&
    !hasOtherSpace
  );
}

// Returns null for syntax that only RE2 has.
/** @type {(pattern: string) => RegExp | null} */
function compile(pattern) {
  try {
    return new RegExp(`^(?:${pattern})$`, "u");
  } catch {
    return null;
  }
}

/** @type {Check} */
export function checkLine(field, value) {
  const text = checkOneLine(value);
  checkLength(text, field, MAX_LINE_CHARACTERS);
  checkPattern(text, field.validation.pattern);
  return text;
}

/** @type {Check} */
export function checkText(field, value) {
  const text = checkCharacters(value);
  checkLength(text, field, MAX_TEXT_CHARACTERS);
  return text;
}

/** @type {Check} */
export function checkEmail(_field, value) {
  const text = strip(checkCharacters(value));
  const isAddress = countCharacters(text) <= MAX_EMAIL_CHARACTERS &&
    EMAIL.test(text) &&
    !/^\.|\.\.|\.@|@\.|@-/.test(text);
  if (!isAddress) throw new WrongValue("email");
  const at = text.lastIndexOf("@");
  return text.slice(0, at) + text.slice(at).toLowerCase();
}

/** @type {Check} */
export function checkPhone(field, value) {
  const text = strip(checkCharacters(value));
  const digits = text.match(/[0-9]/g)?.length ?? 0;
  const isNumber = text.length <= MAX_PHONE_CHARACTERS && PHONE.test(text) && digits >= 5 &&
    digits <= 20;
  if (!isNumber || text.includes("+", 1)) {
    throw new WrongValue("phone");
  }
  checkPattern(text, field.validation.pattern);
  return text;
}

/** @type {Check} */
export function checkUrl(_field, value) {
  const text = strip(checkOneLine(value));
  if (countCharacters(text) > MAX_URL_CHARACTERS || !isWebAddress(text)) {
    throw new WrongValue("url");
  }
  return text;
}

/** @type {(text: string) => boolean} */
function isWebAddress(text) {
  const [, , host, port] = URL_PARTS.exec(text) ?? [];
  return (
    host !== undefined && HOST.test(host) && Number(port ?? 0) <= 65_535 && !/[\s<>"]/.test(text)
  );
}

/** @type {Check} */
export function checkHidden(_field, value) {
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return requireNumber(value);
  const text = checkCharacters(value);
  if (countCharacters(text) > MAX_HIDDEN_CHARACTERS) {
    throw new WrongValue("maxLength", { count: MAX_HIDDEN_CHARACTERS });
  }
  return text;
}
