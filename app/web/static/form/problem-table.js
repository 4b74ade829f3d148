// Builds the table of problems of a language from the end of each sentence: beside the field it is a
// sentence, and in the list it follows the label.

/**
 * @param {string} language
 * @param {string} item such as "„{label}“: {problem}"
 * @param {string} end of a sentence
 * @param {Record<keyof FormProblems, FixedText>} problems
 * @returns {FormProblems}
 */
export function buildProblems(language, item, end, problems) {
  const toSentence = (/** @type {string} */ text) =>
    text[0].toLocaleUpperCase(language) + text.slice(1) + end;
  const toItem = (/** @type {string} */ text) => item.replace("{problem}", () => text);
  const rows = Object.entries(problems).map(([name, text]) => [
    name,
    { field: change(text, toSentence), list: change(text, toItem) },
  ]);
  return Object.fromEntries(rows);
}

/** @type {(text: FixedText, convert: (variant: string) => string) => FixedText} */
function change(text, convert) {
  if (typeof text === "string") return convert(text);
  const variants = Object.entries(text).map(([name, variant]) => [name, convert(variant)]);
  return Object.fromEntries(variants);
}
