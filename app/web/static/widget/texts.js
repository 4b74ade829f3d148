// What the panel says in English; the launcher has its own texts, and `languages` has all of them in
// other languages. A page changes a text by an attribute: data-text-send="Go".

export const TEXTS = {
  chat: "Chat",
  close: "Close chat",
  conversation: "Conversation",
  greeting: "Hello! How can I help you?",
  aiNotice: "You are talking to an AI. Answers can be wrong.",
  loading: "Loading the conversation…",
  you: "You",
  speaker: "{name}:",
  message: "Your message",
  placeholder: "Write a message…",
  send: "Send",
  stop: "Stop",
  stopped: "Stopped",
  brokenOff: "The answer broke off.",
  held: "Waiting for the connection…",
  restart: "Start a new conversation",
  history: "Earlier conversations",
  back: "Back to the conversation",
  retry: "Try again",
  regenerate: "Answer again",
  newer: "Show the newest messages",
  typing: "{name} is writing…",
  working: "{name} is looking something up…",
  queued: "Waiting for the model, {count} before you…",
  next: "Waiting for the model, you are next…",
  sources: "Sources",
  moreSources: "{count} more",
  source: "Source {number}",
  page: "Page {page}",
  row: "Row {row}",
  copy: "Copy",
  copied: "Copied",
  copyAnswer: "Copy the answer",
  good: "Good answer",
  bad: "Bad answer",
  notRated: "Your rating could not be saved. Please try again.",
  comment: "What was good or wrong? (optional)",
  sendComment: "Send the comment",
  skipComment: "Close without a comment",
  commented: "Thank you for your comment.",
  record: "Speak",
  finishRecording: "Send the recording",
  cancelRecording: "Discard the recording",
  recording: "Recording…",
  transcribing: "Listening to your recording…",
  play: "Read aloud",
  stopPlaying: "Stop reading aloud",
  microphoneDenied: "The microphone cannot be used. Allow it for this page, or write instead.",
  nothingHeard: "Nothing could be heard in the recording. Try again, or write instead.",
  notPlayed: "The answer cannot be read aloud right now.",
  attach: "Attach files",
  files: "Attached files",
  filesOnly: "See the attached files.",
  removeFile: "Remove {name}",
  readingFile: "Reading…",
  fileAttached: "{name} is attached.",
  fileType: "This kind of file cannot be read.",
  fileTooLarge: "The file is larger than 10 MB.",
  fileUnreadable:
    "This file could not be read. It may be empty, damaged or protected by a password.",
  fileFailed: "The file could not be sent. Please try again.",
  tooManyFiles: "A message can have at most 5 files.",
  offline: "You are offline. Your conversation goes on when the connection is back.",
  unreachable: "The chat cannot be reached right now.",
  limited: "Too many messages at once. You can continue in {seconds} s.",
  daily: "This chat has reached its limit for today. Please come back tomorrow.",
  origin: "This chat is not set up for this website.",
  revoked: "This chat is no longer available.",
  signIn: "Sign in on this page to use the chat.",
  unavailable: "The chat cannot answer right now. Please try again in a moment.",
  busy: "The last answer is still being written. Try again in a moment.",
  failed: "Something went wrong on our side. Your message was not answered.",
};

// Returns the texts in the language of the script tag, or else of the page, with those that the tag
// replaces. Other languages than English are loaded.
/** @type {(context: PanelContext) => Promise<Texts>} */
export async function loadTexts(context) {
  const { options } = context;
  options.lang ||= document.documentElement.lang;
  const texts = { ...TEXTS };
  if (!/^(en|$)/i.test(options.lang)) {
    await (await import("./languages.js")).load(texts, context);
  }
  for (const name of /** @type {(keyof Texts)[]} */ (Object.keys(TEXTS))) {
    texts[name] = options[`text${name[0].toUpperCase()}${name.slice(1)}`] || texts[name];
  }
  texts.placeholder = options.placeholder || texts.placeholder;
  texts.greeting = options.greeting || texts.greeting;
  return texts;
}

// Puts values into the places of a text: "{count} more".
/** @type {(text: string, values: Record<string, string | number>) => string} */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place)).trim();
}
