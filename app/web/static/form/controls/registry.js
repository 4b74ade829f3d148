// The types of fields: all that the page knows about a type is in its row. FieldType of
// app/web/types/form.d.ts says what the properties mean.
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
import { pageBreak, paragraph, section } from "./static.js";
import { file } from "./upload.js";
import { getText, getWord } from "../texts.js";

/** @type {(value: Answer) => string[]} */
const toList = (value) => (Array.isArray(value) ? value : String(value).split(","));
/** @type {(value: Answer) => Answer} */
const keep = (value) => value;

/** @type {Record<string, FieldType>} */
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
    listWords: () => [[getWord("yes"), getText("yes")], [getWord("no"), getText("no")]],
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
  page_break: { buildStatic: pageBreak, startsPage: true },
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
    listWords: (field) => listStars(field).map((word) => [word, word]),
    inputMode: "numeric",
  },
  slider: { buildControl: slider, check: checkSlider, fromAddress: Number, inChat: "control" },
};

/** @type {(field: Field) => FieldType} */
export function typeOf(field) {
  return FIELD_TYPES[field.type];
}
