// The texts of the console in English. Functions put numbers and names into sentences.
const count = (number: number, one: string, many: string) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const en = {
  common: {
    skip: "Skip to content",
    main: "Main",
    save: "Save",
    saved: "Saved",
    saving: "Saving …",
    unsaved: "Unsaved changes",
    cancel: "Cancel",
    close: "Close",
    delete: "Delete",
    edit: "Edit",
    undo: "Undo",
    retry: "Try again",
    loading: "Loading …",
    more: "Show more",
    search: "Search",
    all: "All",
    none: "None",
    yes: "Yes",
    no: "No",
    on: "On",
    off: "Off",
    name: "Name",
    description: "Description",
    status: "Status",
    created: "Created",
    changed: "Changed",
    actions: "Actions",
    copy: "Copy",
    copied: "Copied",
    copyCurl: "Copy as curl",
    show: "Show",
    hide: "Hide",
    back: "Back",
    next: "Next",
    optional: "optional",
    filters: "Filters",
    clearFilters: "Clear filters",
    order: "Order",
    newest: "Newest first",
    nothingFound: "Nothing matches these filters",
    of: (shown: number, total: string) => `${shown.toLocaleString("en")} of ${total}`,
    required: "Fill in this field",
    selected: (number: number) => `${number.toLocaleString("en")} selected`,
  },
  rail: {
    home: "Home",
    agents: "Agents",
    conversations: "Conversations",
    knowledge: "Knowledge",
    tools: "Tools",
    credentials: "Credentials",
    people: "People",
    usage: "Usage",
    settings: "Settings",
    build: "Build",
    look: "Look",
    manage: "Manage",
    openMenu: "Open the menu",
    reference: "API reference",
    signOut: "Sign out",
    account: "Your account",
    theme: "Theme",
    themes: { system: "As the system", light: "Light", dark: "Dark" },
    language: "Language",
  },
  palette: {
    title: "Go to …",
    open: "Search or go to",
    hint: "Screens, agents and actions",
    nothing: "Nothing found",
    screens: "Screens",
    actions: "Actions",
    agents: "Agents",
  },
  shortcuts: {
    title: "Keyboard shortcuts",
    palette: "Search or go to",
    help: "Show this list",
    save: "Save",
    search: "Go to the search field",
    rows: "Move in a list",
    open: "Open the row",
    go: (screen: string) => `Go to ${screen}`,
    close: "Close",
  },
  errors: {
    title: "This could not be loaded",
    requestId: "Request id",
    network:
      "The server cannot be reached. Check your connection; this page tries again by itself.",
    notFound: "There is nothing here. It may have been deleted.",
    forbidden: "Your role does not permit this. Ask an administrator of your organisation.",
    screen: "This screen does not exist",
    screenHint: "The address may be mistyped, or the screen may have moved.",
    crashed: "Something on this page failed",
    crashedHint: "Load the page again. What you typed is kept in this browser.",
    reload: "Load again",
    offline: "No connection. Trying again …",
  },
  conflict: {
    title: "Somebody else changed this",
    about: "It was changed after you opened it. Nothing is overwritten until you decide.",
    theirs: "Stored now",
    yours: "Yours",
    keepYours: "Save yours",
    takeTheirs: "Take theirs",
    field: "Field",
  },
  localCopy: {
    offer: (when: string) => `There are changes from ${when} that were not saved.`,
    restore: "Restore them",
    discard: "Discard",
  },
  signIn: {
    title: "Sign in",
    about: "Welcome back to Parley.",
    email: "E-mail",
    password: "Password",
    submit: "Sign in",
    code: "Code",
    codeAbout: "Enter the six digits of your authenticator app, or a recovery code.",
    verify: "Verify",
    forgot: "Forgot your password?",
    expiredTitle: "Sign in to go on",
    expiredAbout: "Your session has ended. Nothing on this page is lost.",
    showPassword: "Show the password",
    otherUser: "Sign in as somebody else",
  },
  // home
  home: {},

  agents: {
    agent: "Agent",
    newAgent: "New agent",
    create: "Create the agent",
    model: "Model",
    prompt: "Instructions",
    promptHint: "Who the agent is, what it does and what it does not do. You can change it later.",
    firstPrompt: "You are a helpful assistant. Answer briefly and friendly.",
    context: (tokens: string) => `Context of ${tokens} tokens`,
    price: (input: string, output: string) => `${input} in, ${output} out per million tokens`,
    statuses: { draft: "Draft", published: "Published", archived: "Archived" },
    emptyTitle: "Create your first agent",
    emptyAbout:
      "An agent is a model with instructions. Give it knowledge and tools, talk to it here, and put it on your site when it is good.",
  },
  // conversations
  conversations: {},

  // knowledge
  knowledge: {},

  // tools
  tools: {},

  // credentials
  credentials: {},

  // people
  people: {},

  // usage
  usage: {},

  // settings
  settings: {},

  // reference
  reference: {},

  units: {
    ago: "ago",
    documents: (number: number) => count(number, "document", "documents"),
    messages: (number: number) => count(number, "message", "messages"),
    tokens: (number: number) => count(number, "token", "tokens"),
  },
};
