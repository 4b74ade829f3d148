// The fixed texts of the form page in English, by names; `languages` has the same tables in other
// languages. {placeholders} are replaced by values; a text with variants has one for each plural
// category of its `count`.

/** @satisfies {Record<string, FixedText>} */
export const TEXTS = {
  // Pages
  back: "Back",
  next: "Next",
  step: "Step {step} of {total}",
  // The form and its drafts
  requiredLegend: "Fields marked with * are required.",
  requiredMark: "(required)",
  leaveEmpty: "Leave this empty",
  problemCount: { one: "There is {count} problem", other: "There are {count} problems" },
  tryAgain: "Try again",
  connectionLost: "The connection was lost.",
  noAnswer: "The server could not answer. Please try again.",
  answersKept: "{message} Your answers are still here.",
  goOn: "Continue",
  saveDraft: "Save and continue later",
  saving: "Saving…",
  saved: "Saved.",
  draftLink:
    "You can continue with this link until {date}. Anyone who has the link can see your answers.",
  draftLinkLabel: "Link to your answers",
  draftRestored: "Your saved answers are back.",
  copyLink: "Copy the link",
  copied: "Copied",
  // The chat
  conversation: "Conversation",
  you: "You: ",
  form: "Form: ",
  progress: "Progress",
  answered: "{completed} of {total}",
  typeAnswer: "Type your answer",
  yourAnswer: "Your answer",
  send: "Send",
  sendAnswer: "Send this answer",
  skip: "Skip",
  yes: "Yes",
  no: "No",
  showMore: { one: "Show {count} more", other: "Show {count} more" },
  showAll: "Show all questions at once",
  startOver: "Start over",
  answersSent: "Your answers have been sent.",
  answerAgain: "Answer again",
  yourSignature: "Your signature",
  yourFile: "Your uploaded file",
  // Choices and scales
  choose: "Please choose",
  chooseExactly: { one: "Choose {count}.", other: "Choose {count}." },
  chooseRange: "Choose {min} to {max}.",
  chooseAtMost: { one: "Choose at most {count}.", other: "Choose at most {count}." },
  chooseAtLeast: { one: "Choose at least {count}.", other: "Choose at least {count}." },
  clear: "Clear",
  clearChoice: "Clear the choice",
  search: "Search",
  searchOptions: "Search the options",
  loadingOptions: "Loading the options…",
  optionsFailed: "The options could not be loaded.",
  stars: "{stars} of {total}",
  notAnswered: "Not answered",
  // Texts, numbers and times
  charactersUsed: "{used} of {most}",
  rangeBetween: "From {min} to {max}.",
  rangeAtMost: "At most {max}.",
  rangeAtLeast: "At least {min}.",
  timeZone: "In your time zone, {zone}.",
  // Files and signatures
  dropFile: "Choose a file, or drop it here",
  fileLimit: "At most {megabytes} MB.",
  fileKinds: "{kinds}, at most {megabytes} MB.",
  uploadOf: "Upload of {name}",
  uploading: "Uploading {name}",
  uploaded: "{name} is uploaded",
  remove: "Remove",
  removeFile: "Remove {name}",
  cancel: "Cancel",
  cancelFile: "Cancel {name}",
  removed: "The file was removed",
  bytes: { one: "{count} byte", other: "{count} bytes" },
  kilobytes: "{size} kB",
  megabytes: "{size} MB",
  signHere: "Area to sign with a pen, a finger or a mouse",
  typeToSign: "Type your name to sign",
  orTypeToSign: "Or type your name to sign",
  // What a form says that has no texts of its own
  submit: "Submit",
  received: "Thank you. Your answers have been received.",
  // Refusals of the server
  formClosed: "This form is closed and takes no more answers.",
  formUnavailable: "This form is no longer available.",
  draftExpired: "The saved answers have expired.",
  tooMany: "That was a lot at once. Please wait a moment and try again.",
  notAccepted: "The server did not accept this. Please check your answers and try again.",
  // Lists
  listSeparator: ", ",
  listOr: "{words} or {last}",
  listAnd: "{words} and {last}",
  listMore: { one: "{words} and {count} more", other: "{words} and {count} more" },
};

// What may be wrong with an answer: a sentence beside the field, and an item of the list of problems.
/** @satisfies {Record<string, { field: FixedText; list: FixedText }>} */
export const PROBLEMS = {
  required: { field: "This is required.", list: "“{label}” is required" },
  string: { field: "This must be a string.", list: "“{label}” must be a string" },
  unicode: { field: "This must be valid Unicode.", list: "“{label}” must be valid Unicode" },
  nul: {
    field: "This must not contain NUL characters.",
    list: "“{label}” must not contain NUL characters",
  },
  oneLine: {
    field: "This must be one line, without control characters.",
    list: "“{label}” must be one line, without control characters",
  },
  maxLength: {
    field: {
      one: "This must have at most {count} character.",
      other: "This must have at most {count} characters.",
    },
    list: {
      one: "“{label}” must have at most {count} character",
      other: "“{label}” must have at most {count} characters",
    },
  },
  minLength: {
    field: {
      one: "This must have at least {count} character.",
      other: "This must have at least {count} characters.",
    },
    list: {
      one: "“{label}” must have at least {count} character",
      other: "“{label}” must have at least {count} characters",
    },
  },
  pattern: {
    field: "This must have the required format.",
    list: "“{label}” must have the required format",
  },
  email: {
    field: "This must be an e-mail address, like name@example.com.",
    list: "“{label}” must be an e-mail address, like name@example.com",
  },
  phone: {
    field: "This must be a phone number, like +44 20 7946 0958.",
    list: "“{label}” must be a phone number, like +44 20 7946 0958",
  },
  url: {
    field: "This must be a web address, like https://example.com.",
    list: "“{label}” must be a web address, like https://example.com",
  },
  number: { field: "This must be a number.", list: "“{label}” must be a number" },
  storable: {
    field: "This must be from -{limit} to {limit}.",
    list: "“{label}” must be from -{limit} to {limit}",
  },
  min: { field: "This must be at least {min}.", list: "“{label}” must be at least {min}" },
  max: { field: "This must be at most {max}.", list: "“{label}” must be at most {max}" },
  step: { field: "This must be in steps of {step}.", list: "“{label}” must be in steps of {step}" },
  stepFrom: {
    field: "This must be in steps of {step} from {min}.",
    list: "“{label}” must be in steps of {step} from {min}",
  },
  stars: {
    field: "This must be a whole number from 1 to {max}.",
    list: "“{label}” must be a whole number from 1 to {max}",
  },
  date: {
    field: "This must be a date like 2026-01-31.",
    list: "“{label}” must be a date like 2026-01-31",
  },
  time: {
    field: "This must be a time like 2026-01-31T09:30:00Z.",
    list: "“{label}” must be a time like 2026-01-31T09:30:00Z",
  },
  minDate: {
    field: "This must not be before {date}.",
    list: "“{label}” must not be before {date}",
  },
  maxDate: { field: "This must not be after {date}.", list: "“{label}” must not be after {date}" },
  option: {
    field: "This must be one of the options: {options}.",
    list: "“{label}” must be one of the options: {options}",
  },
  optionList: {
    field: "This must be a list of options.",
    list: "“{label}” must be a list of options",
  },
  optionCount: {
    field: {
      one: "This must have at most {count} option.",
      other: "This must have at most {count} options.",
    },
    list: {
      one: "“{label}” must have at most {count} option",
      other: "“{label}” must have at most {count} options",
    },
  },
  optionOnce: {
    field: "This must not repeat an option.",
    list: "“{label}” must not repeat an option",
  },
  minSelections: {
    field: {
      one: "This must have at least {count} of the options.",
      other: "This must have at least {count} of the options.",
    },
    list: {
      one: "“{label}” must have at least {count} of the options",
      other: "“{label}” must have at least {count} of the options",
    },
  },
  maxSelections: {
    field: {
      one: "This must have at most {count} of the options.",
      other: "This must have at most {count} of the options.",
    },
    list: {
      one: "“{label}” must have at most {count} of the options",
      other: "“{label}” must have at most {count} of the options",
    },
  },
  boolean: { field: "This must be true or false.", list: "“{label}” must be true or false" },
  checked: { field: "This must be checked.", list: "“{label}” must be checked" },
  fileId: {
    field: "This must be the id of an uploaded file, like fil_…",
    list: "“{label}” must be the id of an uploaded file, like fil_…",
  },
  imagePrefix: {
    field: "This must be a PNG image that begins with {prefix}.",
    list: "“{label}” must be a PNG image that begins with {prefix}",
  },
  imageCoding: {
    field: "This must be a PNG image in base64.",
    list: "“{label}” must be a PNG image in base64",
  },
  image: { field: "This must be a PNG image.", list: "“{label}” must be a PNG image" },
  fileSize: {
    field: "This must have at most {megabytes} MB.",
    list: "“{label}” must have at most {megabytes} MB",
  },
  uploading: { field: "This is still being uploaded.", list: "“{label}” is still being uploaded" },
  uploadLost: {
    field: "This could not be uploaded: the connection was lost.",
    list: "“{label}” could not be uploaded: the connection was lost",
  },
  fileKind: {
    field: "Files of this kind are not allowed here.",
    list: "“{label}” does not allow files of this kind",
  },
  missingFile: {
    field:
      "This needs a file that was uploaded for this field within the last day; upload it again.",
    list:
      "“{label}” needs a file that was uploaded for this field within the last day; upload it again",
  },
  unknownOption: {
    field: "This must be one of the options.",
    list: "“{label}” must be one of the options",
  },
  tooSlow: {
    field: "This takes too long to check; make the answers shorter.",
    list: "“{label}” takes too long to check; make the answers shorter",
  },
  tooLarge: { field: "This is too large.", list: "“{label}” is too large" },
  uploadFailed: {
    field: "This could not be uploaded; please try again.",
    list: "“{label}” could not be uploaded; please try again",
  },
};

// What the page says: a language, and the texts that the page around has replaced.
/** @type {Wording} */
const current = {
  language: "en",
  plurals: new Intl.PluralRules("en"),
  texts: TEXTS,
  problems: PROBLEMS,
  own: {},
};

/** @type {(language: string, table: { TEXTS: FormTexts; PROBLEMS: FormProblems }) => void} */
export function useTable(language, table) {
  Object.assign(current, {
    language,
    plurals: new Intl.PluralRules(language),
    texts: { ...TEXTS, ...table.TEXTS },
    problems: { ...PROBLEMS, ...table.PROBLEMS },
  });
}

// Replaces texts by those of the page around: by their names, or by problemEmail for the sentence
// about a wrong answer.
/** @type {(own: Record<string, string>) => void} */
export function useOwnTexts(own) {
  current.own = own;
}

export function getLanguage() {
  return current.language;
}

/** @type {(name: keyof typeof TEXTS, values?: TextValues) => string} */
export function getText(name, values = {}) {
  return fill(choose(current.own[name] ?? current.texts[name], values), values);
}

// Returns the text of the language, which a conversation in it understands.
/** @type {(name: keyof typeof TEXTS) => string} */
export function getWord(name) {
  return fill(choose(current.texts[name], {}), {});
}

/** @type {(name: keyof typeof PROBLEMS) => { field: FixedText; list: FixedText }} */
export function getProblem(name) {
  const own = current.own[`problem${name[0].toUpperCase()}${name.slice(1)}`];
  return own ? { field: own, list: `{label}: ${own}` } : current.problems[name];
}

/** @type {(text: FixedText, values: TextValues) => string} */
export function choose(text, values) {
  if (typeof text === "string") return text;
  return text[current.plurals.select(Number(values.count))] ?? text.other;
}

// A number of things is written with the separators of the language.
/** @type {(text: string, values: TextValues) => string} */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, key) => {
    const value = values[key] ?? whole;
    if (typeof value !== "number") return value;
    return key === "count" ? formatCount(value) : formatNumber(value);
  });
}

/** @type {(number: number) => string} */
export function formatCount(number) {
  return number.toLocaleString(current.language);
}

// Without separators of thousands. English has numbers as the server writes them.
/** @type {(number: number) => string} */
export function formatNumber(number) {
  if (current.language === "en") return String(number);
  const options = { useGrouping: false, maximumFractionDigits: 20 };
  return number.toLocaleString(current.language, options);
}

// A date is written as in the country of the browser, if people speak the language there.
/** @type {(moment: Date, options: Intl.DateTimeFormatOptions) => string} */
export function formatMoment(moment, options) {
  const { language } = current;
  const local = navigator.languages.find((tag) => tag.split("-")[0] === language);
  return moment.toLocaleString(local ?? language, options);
}

// Returns a stored date or time as people write it; in English as the server does.
/** @type {(text: string) => string} */
export function formatStored(text) {
  const moment = new Date(text);
  if (current.language === "en" || Number.isNaN(moment.getTime())) return text;
  return text.length > 10
    ? formatMoment(moment, { dateStyle: "long", timeStyle: "short" })
    : formatMoment(moment, { dateStyle: "long", timeZone: "UTC" });
}

// Returns "a, b or c".
/** @type {(words: string[], name?: "listOr" | "listAnd") => string} */
export function joinWords(words, name = "listOr") {
  if (words.length < 2) return words.join("");
  return getText(name, { words: joinList(words.slice(0, -1)), last: words[words.length - 1] });
}

/** @type {(words: string[]) => string} */
export function joinList(words) {
  return words.join(getText("listSeparator"));
}

/** @type {(bytes: number) => string} */
export function formatSize(bytes) {
  if (bytes < 1024) return getText("bytes", { count: bytes });
  const kilobytes = bytes / 1024;
  if (kilobytes < 1000) return getText("kilobytes", { size: Math.round(kilobytes) });
  const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: false };
  const size = (kilobytes / 1024).toLocaleString(current.language, digits);
  return getText("megabytes", { size });
}
