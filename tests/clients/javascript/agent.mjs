// Runs one scenario with a stock client and prints what came of it as JSON:
// `node agent.mjs SCENARIO`, with PARLEY_URL, PARLEY_KEY and PARLEY_AGENT.
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, isStepCount, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";

const { PARLEY_URL: baseURL, PARLEY_KEY: apiKey, PARLEY_AGENT: agent } = process.env;
const prompt = "What is the time and the weather?";
const openai = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const provider = createOpenAI({ baseURL, apiKey });
const models = { responses: provider(agent), chat: provider.chat(agent) };
const tools = {
  tell_time: tool({
    description: "Tells the time",
    inputSchema: z.object({ zone: z.string() }),
    execute: ({ zone }) => `09:00 ${zone}`,
  }),
};
const clock = {
  type: "function",
  function: {
    name: "tell_time",
    parameters: { type: "object", properties: { zone: { type: "string" } } },
    parse: JSON.parse,
    function: ({ zone }) => `09:00 ${zone}`,
  },
};

function loop(model) {
  return { model, tools, stopWhen: isStepCount(5), prompt, maxRetries: 0 };
}

const scenarios = {
  "openai-loop": async () => {
    const messages = [{ role: "user", content: prompt }];
    const runner = openai.chat.completions.runTools({ model: agent, messages, tools: [clock] });
    return await runner.finalContent();
  },
  "openai-stream": async () => {
    const stream = openai.responses.stream({ model: agent, input: prompt });
    return (await stream.finalResponse()).output_text;
  },
  "openai-retries": async () => {
    const retrying = new OpenAI({ baseURL, apiKey, maxRetries: 2 });
    try {
      await retrying.responses.create({ model: agent, input: prompt });
    } catch (error) {
      return { status: error.status, code: error.code, type: error.type, param: error.param };
    }
  },
  "ai-object": async () => {
    const schema = z.object({ hour: z.number() });
    return (await generateObject({ model: models.responses, schema, prompt })).object;
  },
};
for (const [name, model] of Object.entries(models)) {
  scenarios[`ai-${name}-loop`] = async () => (await generateText(loop(model))).text;
  scenarios[`ai-${name}-stream`] = async () => await streamText(loop(model)).text;
}

console.log(JSON.stringify(await scenarios[process.argv[2]]()));
