// The fixed texts of the form page, by names. {placeholders} are replaced by values; a text with
// variants has one for each plural category of its `count`.

const LANGUAGE = "en";
const PLURALS = new Intl.PluralRules(LANGUAGE);

/** @satisfies {Record<string, FixedText>} */
export const TEXTS = {
  back: "Back",
  next: "Next",
  showMore: { one: "Show {count} more", other: "Show {count} more" },
  step: "Step {step} of {total}",
};

/** @type {(name: keyof typeof TEXTS, values?: Record<string, string | number>) => string} */
export function getText(name, values = {}) {
  return fill(TEXTS[name], values);
}

/** @type {(text: FixedText, values: Record<string, string | number>) => string} */
export function fill(text, values) {
  const variant = typeof text === "string"
    ? text
    : text[PLURALS.select(Number(values.count))] ?? text.other;
  return variant.replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole));
}
