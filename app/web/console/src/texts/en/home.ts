import { count } from "./count";

export default {
  hello: (name: string) => name ? `Hello, ${name}.` : "Hello.",
  week: "The last seven days",
  allUsage: "All usage",
  next: "What to do next",
  hide: "Hide",
  done: "(done)",
  steps: {
    model: {
      title: "Add the key of a model provider",
      about: "Until then, only the small model of this machine answers.",
      action: "Add a key",
    },
    agent: {
      title: "Create your first agent",
      about: "A name, a model and instructions are enough to talk to it.",
      action: "New agent",
    },
    documents: {
      title: "Give it documents",
      about: "It answers from them, and names the passages that it used.",
      action: "Add documents",
    },
    embed: {
      title: "Embed it in a site",
      about: "One line of HTML shows the chat to your visitors.",
      action: "Embed",
    },
    invite: {
      title: "Invite a colleague",
      about: "They get a mail with a link, and the role that you choose.",
      action: "Invite",
    },
  },
  failed: "What failed lately",
  nothingFailed: "Nothing has failed in the last seven days.",
  failedAnswers: (number: number, agent: string) =>
    `${count(number, "failed answer", "failed answers")} of ${agent}`,
  kinds: { answer: "Answer", work: "Work", notice: "Notification" },
  health: "Health",
  healthUnknown: "The instance does not say how it is.",
  states: { ok: "All is well", degraded: "Something is missing", unavailable: "Not available" },
  parts: {
    postgres: "Database",
    redis: "Valkey",
    workers: "Workers",
    files: "File store",
    local_model: "Model of this machine",
  },
  partStates: { ok: "Ready", away: "Missing", starting: "Starting", off: "Off" },
  help: {
    postgres: "Run “parley doctor” on the server.",
    redis: "Check that Valkey runs and that PARLEY_REDIS_URL names it.",
    workers: "Start one with “parley worker”: until then, nothing is done in the background.",
    files: "Check PARLEY_FILES_URI and the space of the disk.",
    local_model: "It takes some minutes to load the first time.",
  },
  sandbox: "Sandbox",
  noSandbox: "Tools with code do not run: this machine has neither bubblewrap nor Landlock.",
  links: "Go on",
  agentsAbout: "Talk to them, and change what they do.",
  referenceAbout: "Everything here can be done by programs too.",
  accountAbout: "Password, two-factor sign-in, language.",
};
