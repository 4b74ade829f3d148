// The types of fields: all that the page knows about a type is in its row.
//
// buildControl: builds what the visitor answers with; buildStatic: what is shown and not answered.
// check: returns the stored form of a value that is not empty, or throws WrongValue.
// initialValue: what the control reads before anybody uses it, if that is not "no answer".
// fromAddress: converts a value of the page's address, by default to a string; null where nobody
//   else may answer for the visitor.
// isHidden: the page around answers it; nothing is shown.
// inChat: what the chat offers besides typing: the "control", or a button for each of the "options".
// listWords: returns the words that the chat has a button for.
// inputMode: the keyboard of a phone for typing the answer in the chat.
import { checkBox, checkOption, checkOptions, checkSelections } from "../check-choices.js";
import { checkDate, checkTime } from "../check-dates.js";
import { checkNumber, checkRating, checkSlider } from "../check-numbers.js";
import {
  checkEmail,
  checkHidden,
  checkLine,
  checkPhone,
  checkText,
  checkUrl,
} from "../check-texts.js";
import { checkFile, checkSignature } from "../check-uploads.js";
import { checkbox, checkboxGroup, multiSelect, radio, select } from "./choices.js";
import { hidden } from "./hidden.js";
import { date, datetime, email, number, phone, text, textarea, url } from "./inputs.js";
import { listStars, rating, slider } from "./scales.js";
import { signature } from "./signature.js";
import { paragraph, section } from "./static.js";
import { file } from "./upload.js";

const toList = (value) => (Array.isArray(value) ? value : String(value).split(","));
const keep = (value) => value;

export const FIELD_TYPES = {
  text: { buildControl: text, check: checkLine },
  textarea: { buildControl: textarea, check: checkText },
  email: { buildControl: email, check: checkEmail, inputMode: "email" },
  phone: { buildControl: phone, check: checkPhone, inputMode: "tel" },
  number: {
    buildControl: number,
    check: checkNumber,
    fromAddress: Number,
    inputMode: "decimal",
  },
  select: { buildControl: select, check: checkOption, inChat: "options" },
  multi_select: {
    buildControl: multiSelect,
    check: checkSelections,
    fromAddress: toList,
    inChat: "control",
  },
  checkbox: {
    buildControl: checkbox,
    check: checkBox,
    initialValue: false,
    fromAddress: null,
    listWords: () => ["Yes", "No"],
  },
  checkbox_group: {
    buildControl: checkboxGroup,
    check: checkOptions,
    fromAddress: toList,
    inChat: "control",
  },
  radio: { buildControl: radio, check: checkOption, inChat: "options" },
  date: { buildControl: date, check: checkDate, inChat: "control" },
  datetime: { buildControl: datetime, check: checkTime, inChat: "control" },
  file: { buildControl: file, check: checkFile, fromAddress: null, inChat: "control" },
  url: { buildControl: url, check: checkUrl, inputMode: "url" },
  hidden: { buildControl: hidden, check: checkHidden, fromAddress: keep, isHidden: true },
  section: { buildStatic: section },
  paragraph: { buildStatic: paragraph },
  signature: {
    buildControl: signature,
    check: checkSignature,
    fromAddress: null,
    inChat: "control",
  },
  rating: {
    buildControl: rating,
    check: checkRating,
    fromAddress: Number,
    listWords: listStars,
    inputMode: "numeric",
  },
  slider: { buildControl: slider, check: checkSlider, fromAddress: Number, inChat: "control" },
};

export function typeOf(field) {
  return FIELD_TYPES[field.type];
}
