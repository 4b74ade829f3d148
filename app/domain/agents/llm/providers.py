"""The table of model providers, and the provider that a model's name implies.

A tenant can also use a provider outside the table: any name, with the `base_url` of an
OpenAI-compatible endpoint.
"""

import re
from typing import Final

import msgspec

LOCAL: Final = "local"
# Search engines, whose keys tenants store beside those of model providers. They serve no models.
SEARCH_PROVIDERS: Final = frozenset({"brave", "tavily"})


class Provider(msgspec.Struct, frozen=True):
    """A provider with a `base_url` speaks OpenAI's wire format; litellm calls the others."""

    name: str
    title: str
    base_url: str | None = None


PROVIDERS: Final = {
    provider.name: provider
    for provider in (
        Provider("openai", "OpenAI", "https://api.openai.com/v1"),
        Provider("openrouter", "OpenRouter", "https://openrouter.ai/api/v1"),
        Provider("groq", "Groq", "https://api.groq.com/openai/v1"),
        Provider("deepseek", "DeepSeek", "https://api.deepseek.com/v1"),
        Provider("together_ai", "Together AI", "https://api.together.xyz/v1"),
        Provider("fireworks_ai", "Fireworks AI", "https://api.fireworks.ai/inference/v1"),
        Provider("xai", "xAI", "https://api.x.ai/v1"),
        Provider("cerebras", "Cerebras", "https://api.cerebras.ai/v1"),
        Provider("mistral", "Mistral", "https://api.mistral.ai/v1"),
        Provider("perplexity", "Perplexity", "https://api.perplexity.ai"),
        Provider("deepinfra", "DeepInfra", "https://api.deepinfra.com/v1/openai"),
        Provider("sambanova", "SambaNova", "https://api.sambanova.ai/v1"),
        Provider("novita", "Novita", "https://api.novita.ai/v3/openai"),
        Provider("moonshot", "Moonshot", "https://api.moonshot.ai/v1"),
        Provider("jina", "Jina AI", "https://api.jina.ai/v1"),
        Provider("voyage", "Voyage AI", "https://api.voyageai.com/v1"),
        Provider("anthropic", "Anthropic"),
        Provider("gemini", "Google Gemini"),
        Provider("cohere", "Cohere"),
        Provider("ai21", "AI21"),
        Provider("replicate", "Replicate"),
        Provider("elevenlabs", "ElevenLabs"),
    )
}

# Prefixes of model names that are used without a provider.
_PREFIXES = (
    (re.compile(r"(gpt|chatgpt|o\d|text-embedding|davinci)"), "openai"),
    (re.compile(r"claude"), "anthropic"),
    (re.compile(r"gemini"), "gemini"),
    (re.compile(r"(mistral|ministral|codestral|magistral|devstral|pixtral)"), "mistral"),
    (re.compile(r"command"), "cohere"),
    (re.compile(r"deepseek"), "deepseek"),
    (re.compile(r"grok"), "xai"),
    (re.compile(r"sonar"), "perplexity"),
    (re.compile(r"jamba"), "ai21"),
)


def provider_of(model: str) -> str:
    """Returns the provider in `provider/model`, or of a known prefix; `openai` otherwise."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider.lower()
    return next((name for pattern, name in _PREFIXES if pattern.match(model.lower())), "openai")
