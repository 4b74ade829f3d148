// The rules of app/domain/forms/definition/fields/numbers.py.
import { WrongValue } from "./wrong-value.js";

export const DEFAULT_STARS = 5;
const LARGEST = Number.MAX_SAFE_INTEGER;

// Returns the value if it is a number that both sides can store.
/** @type {(value: unknown) => number} */
export function requireNumber(value) {
  if (typeof value !== "number" || Number.isNaN(value)) throw new WrongValue("number");
  if (Math.abs(value) > LARGEST) throw new WrongValue("storable", { limit: LARGEST });
  return value;
}

/** @type {Check} */
export function checkNumber(field, value) {
  return checkRange(requireNumber(value), field.validation);
}

/** @type {Check} */
export function checkSlider(field, value) {
  return checkRange(requireNumber(value), { min: 0, max: 100, step: 1, ...field.validation });
}

/** @type {Check} */
export function checkRating(field, value) {
  const number = requireNumber(value);
  const most = field.validation.max ?? DEFAULT_STARS;
  if (!Number.isInteger(number) || number < 1 || number > most) {
    throw new WrongValue("stars", { max: most });
  }
  return number;
}

/** @type {(number: number, limits: Validation) => number} */
function checkRange(number, { min = null, max = null, step = null }) {
  if (min !== null && number < min) throw new WrongValue("min", { min });
  if (max !== null && number > max) throw new WrongValue("max", { max });
  if (step !== null && !isStep(number, min ?? 0, step)) {
    throw min ? new WrongValue("stepFrom", { step, min }) : new WrongValue("step", { step });
  }
  return number;
}

// In decimal numbers, as people write them: 0.3 is three steps of 0.1.
/** @type {(number: number, start: number, step: number) => boolean} */
function isStep(number, start, step) {
  const decimals = [number, start, step].map(toDecimal);
  const scale = Math.max(...decimals.map(({ places }) => places));
  const [units, first, size] = decimals.map(
    ({ digits, places }) => digits * 10n ** BigInt(scale - places),
  );
  return (units - first) % size === 0n;
}

// Returns the digits as an integer, and how many of them stand after the point.
/** @type {(number: number) => { digits: bigint; places: number }} */
function toDecimal(number) {
  const [mantissa, exponent = "0"] = String(number).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const places = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction);
  return places < 0 ? { digits: digits * 10n ** BigInt(-places), places: 0 } : { digits, places };
}
