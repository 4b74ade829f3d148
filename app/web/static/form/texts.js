// The fixed texts of the form page, by names: a language is a table like these. {placeholders} are
// replaced by values; a text with variants has one for each plural category of its `count`.

const LANGUAGE = "en";
const PLURALS = new Intl.PluralRules(LANGUAGE);

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
  draftLink: "Go on with this link until {date}. Who has the link sees your answers.",
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
  bytes: { one: "{count} bytes", other: "{count} bytes" },
  kilobytes: "{size} kB",
  megabytes: "{size} MB",
  signHere: "Area to sign with a pen, a finger or a mouse",
  typeToSign: "Type your name to sign",
  orTypeToSign: "Or type your name to sign",
  // Lists
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
      one: "This must have at most {count} characters.",
      other: "This must have at most {count} characters.",
    },
    list: {
      one: "“{label}” must have at most {count} characters",
      other: "“{label}” must have at most {count} characters",
    },
  },
  minLength: {
    field: {
      one: "This must have at least {count} characters.",
      other: "This must have at least {count} characters.",
    },
    list: {
      one: "“{label}” must have at least {count} characters",
      other: "“{label}” must have at least {count} characters",
    },
  },
  pattern: {
    field: "This does not have the required form.",
    list: "“{label}” does not have the required form",
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
      one: "This must have at most {count} options.",
      other: "This must have at most {count} options.",
    },
    list: {
      one: "“{label}” must have at most {count} options",
      other: "“{label}” must have at most {count} options",
    },
  },
  optionOnce: {
    field: "This must have each option once.",
    list: "“{label}” must have each option once",
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
  tooLarge: { field: "This is too large.", list: "“{label}” is too large" },
  uploadFailed: {
    field: "This could not be uploaded; please try again.",
    list: "“{label}” could not be uploaded; please try again",
  },
};

/** @type {(name: keyof typeof TEXTS, values?: TextValues) => string} */
export function getText(name, values = {}) {
  return fill(choose(TEXTS[name], values), values);
}

/** @type {(text: FixedText, values: TextValues) => string} */
export function choose(text, values) {
  if (typeof text === "string") return text;
  return text[PLURALS.select(Number(values.count))] ?? text.other;
}

// A number of things is written with the separators of the language.
/** @type {(text: string, values: TextValues) => string} */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, key) => {
    const value = values[key] ?? whole;
    return key === "count" && typeof value === "number" ? formatCount(value) : String(value);
  });
}

/** @type {(number: number) => string} */
export function formatCount(number) {
  return number.toLocaleString(LANGUAGE);
}

// Returns "a, b or c".
/** @type {(words: string[], name?: "listOr" | "listAnd") => string} */
export function joinWords(words, name = "listOr") {
  if (words.length < 2) return words.join("");
  return getText(name, { words: words.slice(0, -1).join(", "), last: words[words.length - 1] });
}

/** @type {(bytes: number) => string} */
export function formatSize(bytes) {
  if (bytes < 1024) return getText("bytes", { count: bytes });
  const kilobytes = bytes / 1024;
  if (kilobytes < 1000) return getText("kilobytes", { size: Math.round(kilobytes) });
  return getText("megabytes", { size: (kilobytes / 1024).toFixed(1) });
}
