// The rules of app/domain/forms/definition/fields/dates.py.
import { formatStored } from "./texts.js";
import { WrongValue } from "./wrong-value.js";

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const TIME =
  /^(\d{4}-\d{2}-\d{2})[T ]((?:[01]\d|2[0-3]):[0-5]\d)(:[0-5]\d)?(?:\.\d{1,9})?(?:(Z)|([+-](?:[01]\d|2[0-3])):?([0-5]\d))?$/;
const FIRST_MOMENT = Date.parse("0001-01-01T00:00:00Z");
const LAST_MOMENT = Date.parse("9999-12-31T23:59:59.999Z");

/** @type {Check} */
export function checkDate(field, value) {
  if (!isDate(value)) throw new WrongValue("date");
  const { min_date: first, max_date: last } = field.validation;
  // The order of the texts is that of time.
  checkLimits(first, last, Boolean(first && value < first), Boolean(last && value > last));
  return value;
}

/** @type {Check} */
export function checkTime(field, value) {
  const moment = readTime(value);
  if (moment === null) throw new WrongValue("time");
  const { min_date: first, max_date: last } = field.validation;
  const isEarly = first && moment < readLimit(first, "T00:00:00Z");
  const isLate = last && moment > readLimit(last, "T23:59:59.999Z");
  checkLimits(first, last, Boolean(isEarly), Boolean(isLate));
  return `${new Date(moment).toISOString().slice(0, 19)}Z`;
}

/** @type {(first: unknown, last: unknown, isEarly: boolean, isLate: boolean) => void} */
function checkLimits(first, last, isEarly, isLate) {
  if (isEarly) throw new WrongValue("minDate", { date: formatStored(String(first)) });
  if (isLate) throw new WrongValue("maxDate", { date: formatStored(String(last)) });
}

/** @type {(value: unknown) => value is string} */
export function isDate(value) {
  const match = typeof value === "string" ? DATE.exec(value) : null;
  if (!match) return false;
  const [year, month, day] = match.slice(1).map(Number);
  return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= countDays(year, month);
}

/** @type {(year: number, month: number) => number} */
function countDays(year, month) {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

// Returns milliseconds, in UTC unless the text names a zone, to the second; or null.
/** @type {(value: unknown) => number | null} */
function readTime(value) {
  const match = typeof value === "string" ? TIME.exec(value) : null;
  if (!match || !isDate(match[1])) return null;
  const [, date, minutes, seconds = ":00", , hours, rest] = match;
  const moment = Date.parse(`${date}T${minutes}${seconds}${hours ? `${hours}:${rest}` : "Z"}`);
  return moment >= FIRST_MOMENT && moment <= LAST_MOMENT ? moment : null;
}

// A limit may be a date: then the first or the last moment of it. NaN for one that cannot be read:
// the server decides.
/** @type {(text: string, timeOfDay: string) => number} */
export function readLimit(text, timeOfDay) {
  return isDate(text) ? Date.parse(text + timeOfDay) : (readTime(text) ?? Number.NaN);
}
