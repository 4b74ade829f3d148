import { count } from "./count";

export default {
  title: "What the model saw",
  system: "System message",
  version: "Version",
  temperature: "Temperature",
  maxTokens: "Longest answer (tokens)",
  history: "Earlier messages",
  tokens: "Tokens",
  cost: "Cost",
  firstToken: "First word after",
  time: "Whole answer after",
  passages: (number: number) => count(number, "passage", "passages"),
  tools: (number: number) => count(number, "tool", "tools"),
  truncated: "The context was too long to be kept whole.",
  notShown: "It is not kept for this answer, or your role does not permit reading it.",
  nothing: "Nothing is kept of this answer",
  nothingAbout:
    "The agent answered it before the platform kept this, or its log settings keep no messages.",
  moreText: (left: string) => `Show more (${left} characters)`,
  tokensBoth: (input: string, output: string) => `${input} tokens in, ${output} out`,
  input: "Input",
  output: "Output",
  callStatuses: {
    failed: "Failed",
    timeout: "Timed out",
    requested: "Waiting",
    completed: "Done",
  },
  sources: (number: number) => count(number, "source", "sources"),
  model: "Model",
};
