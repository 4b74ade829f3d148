// The providers that need no address. A key for any other one has the address of its API.
export const MODEL_PROVIDERS: readonly (readonly [name: string, title: string])[] = [
  ["openai", "OpenAI"],
  ["anthropic", "Anthropic"],
  ["gemini", "Google Gemini"],
  ["mistral", "Mistral"],
  ["openrouter", "OpenRouter"],
  ["groq", "Groq"],
  ["deepseek", "DeepSeek"],
  ["together_ai", "Together AI"],
  ["fireworks_ai", "Fireworks AI"],
  ["xai", "xAI"],
  ["cerebras", "Cerebras"],
  ["perplexity", "Perplexity"],
  ["deepinfra", "DeepInfra"],
  ["sambanova", "SambaNova"],
  ["novita", "Novita"],
  ["moonshot", "Moonshot"],
  ["jina", "Jina AI"],
  ["voyage", "Voyage AI"],
  ["cohere", "Cohere"],
  ["ai21", "AI21"],
  ["replicate", "Replicate"],
  ["elevenlabs", "ElevenLabs"],
];
export const SEARCH_PROVIDERS: readonly (readonly [name: string, title: string])[] = [
  ["brave", "Brave Search"],
  ["tavily", "Tavily"],
];

const TITLES = new Map([...MODEL_PROVIDERS, ...SEARCH_PROVIDERS]);

export function titleOf(provider: string): string {
  return TITLES.get(provider) ?? provider;
}
