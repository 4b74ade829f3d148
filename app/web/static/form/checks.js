// Checks answers as the server does, so that a visitor sees at once what is wrong. The server
// decides: what is hard to check here (addresses, patterns) may pass and be refused there, but
// nothing that it takes is refused here.
import { checkDate, checkTime } from "./check-dates.js";
import { checkNumber, checkRange } from "./check-numbers.js";
import {
  checkEmail,
  checkHidden,
  checkLine,
  checkPhone,
  checkText,
  checkUrl,
} from "./check-texts.js";
import { joinWords, strip } from "./text.js";
import { WrongValue } from "./wrong-value.js";

const LISTED_OPTIONS = 20;
const MAX_SELECTIONS = 500;
const SIGNATURE_PREFIX = "data:image/png;base64,";
// The first bytes of every PNG image, in base64.
const PNG_START = "iVBORw0KGgo";
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const MAX_SIGNATURE_CHARACTERS = 200_000;
const FILE_ID = /^fil_[A-Za-z0-9]{1,60}$/;

// By the types of fields; each returns the stored form of a value that is not empty, or throws.
const CHECKS = {
  text: checkLine,
  textarea: checkText,
  email: checkEmail,
  phone: checkPhone,
  number: (field, value) => checkRange(checkNumber(value), field.validation),
  select: checkOption,
  radio: checkOption,
  multi_select: checkSelections,
  checkbox_group: checkOptions,
  checkbox: checkBox,
  date: checkDate,
  datetime: checkTime,
  file: checkFile,
  url: checkUrl,
  hidden: checkHidden,
  signature: checkSignature,
  rating: checkRating,
  slider: (field, value) =>
    checkRange(checkNumber(value), { min: 0, max: 100, step: 1, ...field.validation }),
};

// Types that show something and are not answered.
export function hasValue(field) {
  return field.type in CHECKS;
}

// True for a value that stands for no answer.
export function isEmpty(value) {
  if (value === null || value === undefined) return true;
  if (typeof value === "string") return !strip(value);
  return Array.isArray(value) && value.length === 0;
}

// Returns { value } with the stored form of an answer that is not empty, or { problem } with the
// end of a sentence about the field.
export function check(field, value) {
  try {
    return { value: CHECKS[field.type](field, value) };
  } catch (error) {
    if (error instanceof WrongValue) return { problem: error.message };
    throw error;
  }
}

function describeOptions(field) {
  const labels = field.options.map((option) => option.label);
  if (labels.length > LISTED_OPTIONS) {
    const rest = labels.length - LISTED_OPTIONS;
    return `${labels.slice(0, LISTED_OPTIONS).join(", ")} and ${rest} more`;
  }
  return joinWords(labels);
}

function checkOption(field, value) {
  if (typeof value !== "string") throw new WrongValue("must be a string");
  if (!field.has_data_source && !field.options.some((option) => option.value === value)) {
    throw new WrongValue(`must be one of the options: ${describeOptions(field)}`);
  }
  return value;
}

function checkOptions(field, values) {
  if (!Array.isArray(values)) throw new WrongValue("must be a list of options");
  if (values.length > MAX_SELECTIONS) {
    throw new WrongValue(`must have at most ${MAX_SELECTIONS} options`);
  }
  for (const value of values) checkOption(field, value);
  if (new Set(values).size < values.length) throw new WrongValue("must have each option once");
  return values;
}

function checkSelections(field, values) {
  checkOptions(field, values);
  const { min_selections: fewest, max_selections: most } = field.validation;
  if (values.length < (fewest ?? 0)) {
    throw new WrongValue(`must have at least ${fewest} of the options`);
  }
  if (values.length > (most ?? MAX_SELECTIONS)) {
    throw new WrongValue(`must have at most ${most} of the options`);
  }
  return values;
}

function checkBox(field, value) {
  if (typeof value !== "boolean") throw new WrongValue("must be true or false");
  if (field.required && !value) throw new WrongValue("must be checked");
  return value;
}

function checkFile(_field, value) {
  if (typeof value !== "string" || !FILE_ID.test(value)) {
    throw new WrongValue("must be the id of an uploaded file, like fil_…");
  }
  return value;
}

function checkSignature(_field, value) {
  if (typeof value !== "string" || !value.startsWith(SIGNATURE_PREFIX)) {
    throw new WrongValue(`must be a PNG image that begins with ${SIGNATURE_PREFIX}`);
  }
  if (value.length > MAX_SIGNATURE_CHARACTERS) {
    throw new WrongValue("must have at most 200,000 characters");
  }
  const content = value.slice(SIGNATURE_PREFIX.length);
  if (!BASE64.test(content) || content.length % 4) {
    throw new WrongValue("must be a PNG image in base64");
  }
  if (!content.startsWith(PNG_START)) throw new WrongValue("must be a PNG image");
  return value;
}

function checkRating(field, value) {
  const number = checkNumber(value);
  const most = field.validation.max ?? 5;
  if (!Number.isInteger(number) || number < 1 || number > most) {
    throw new WrongValue(`must be a whole number from 1 to ${most}`);
  }
  return number;
}
