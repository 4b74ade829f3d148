// The controls by the types of fields. `section` and `paragraph` have none.
import { checkbox, checkboxGroup, multiSelect, radio, select } from "./choices.js";
import { hidden } from "./hidden.js";
import { date, datetime, email, number, phone, text, textarea, url } from "./inputs.js";
import { rating, slider } from "./scales.js";
import { signature } from "./signature.js";
import { file } from "./upload.js";

export const CONTROLS = {
  text,
  textarea,
  email,
  phone,
  number,
  select,
  multi_select: multiSelect,
  checkbox,
  checkbox_group: checkboxGroup,
  radio,
  date,
  datetime,
  file,
  url,
  hidden,
  signature,
  rating,
  slider,
};
