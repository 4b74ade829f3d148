// The rules of app/domain/forms/definition/fields/uploads.py.
import { WrongValue } from "./wrong-value.js";

const SIGNATURE_PREFIX = "data:image/png;base64,";
// The first bytes of every PNG image, in base64.
const PNG_START = "iVBORw0KGgo";
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const MAX_SIGNATURE_CHARACTERS = 200_000;
const FILE_ID = /^fil_[A-Za-z0-9]{1,60}$/;

/** @type {Check} */
export function checkFile(_field, value) {
  if (typeof value !== "string" || !FILE_ID.test(value)) {
    throw new WrongValue("fileId");
  }
  return value;
}

/** @type {Check} */
export function checkSignature(_field, value) {
  if (typeof value === "string" && FILE_ID.test(value)) return value;
  if (typeof value !== "string" || !value.startsWith(SIGNATURE_PREFIX)) {
    throw new WrongValue("imagePrefix", { prefix: SIGNATURE_PREFIX });
  }
  if (value.length > MAX_SIGNATURE_CHARACTERS) {
    throw new WrongValue("maxLength", { count: MAX_SIGNATURE_CHARACTERS });
  }
  const content = value.slice(SIGNATURE_PREFIX.length);
  if (!BASE64.test(content) || content.length % 4) {
    throw new WrongValue("imageCoding");
  }
  if (!content.startsWith(PNG_START)) throw new WrongValue("image");
  return value;
}
