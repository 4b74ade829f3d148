// Divides the fields of a form into pages.
import { typeOf } from "./controls/registry.js";

// Returns the pages that have something to show, in their order. `isShown` says whether a field is
// shown; a page break that is not shown divides nothing. The id of a page is that of its page break.
/** @type {(fields: Field[], isShown: (field: Field) => boolean) => FormPage[]} */
export function listPages(fields, isShown) {
  /** @type {FormPage[]} */
  const pages = [{ id: "", start: null, fields: [] }];
  for (const field of fields) {
    if (!typeOf(field).startsPage) pages[pages.length - 1].fields.push(field);
    else if (isShown(field)) pages.push({ id: field.id, start: field, fields: [] });
  }
  const shown = pages.filter((page) => page.fields.some(isShown));
  return shown.length ? shown : pages.slice(0, 1);
}
