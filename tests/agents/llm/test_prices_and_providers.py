"""Prices and context windows of models, and the provider that a name implies."""

import asyncio

import pytest

from app.domain.agents.llm import prices
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.key_probes import PROBES
from app.domain.agents.llm.prices import Price
from app.domain.agents.llm.protocol import Target, estimate_tokens
from app.domain.agents.llm.providers import LOCAL, PROVIDERS, provider_of
from app.services import Services

TABLE = {
    "gpt-x": Price("openai", "chat", 2e-6, 8e-6, 1000),
    "openai/gpt-x-mini": Price("openai", "chat", 1e-6, 2e-6, 500),
    "claude-x": Price("anthropic", "chat", 3e-6, 15e-6, 2000),
    "anthropic/claude-x": Price("anthropic", "chat", 4e-6, 16e-6, 2000),
    "command-x": Price("cohere_chat", "chat", 1e-6, 1e-6, 10),
    "gpt-x-embed": Price("openai", "embedding", 1e-9, 0.0, 10),
    "a-free-one": Price("openai", "chat", max_input_tokens=100),
    "of-unknown-size": Price("openai", "chat", 9e-6, 9e-6),
    "no-model": Price("openai", "chat"),
}


# Prices


def test_a_price_is_found_with_and_without_its_provider() -> None:
    assert prices.find(TABLE, "gpt-x") is TABLE["gpt-x"]
    assert prices.find(TABLE, "openai/gpt-x") is TABLE["gpt-x"]
    assert prices.find(TABLE, "openai/gpt-x-mini") is TABLE["openai/gpt-x-mini"]


def test_the_full_name_is_looked_for_first() -> None:
    assert prices.find(TABLE, "anthropic/claude-x") is TABLE["anthropic/claude-x"]


def test_a_name_that_is_not_in_the_table_has_no_price(subtests: pytest.Subtests) -> None:
    for name in ["", "/", "nothing", "openai/nothing", "openai/"]:
        with subtests.test(name=name):
            assert prices.find(TABLE, name) is None


async def test_a_cost_is_tokens_times_prices() -> None:
    cost = await prices.cost_usd("openai/gpt-4o", 1_000_000, 100_000)
    assert cost == pytest.approx(2.5 + 1.0)


async def test_a_model_costs_the_same_by_both_of_its_names() -> None:
    for name in ("gpt-4o", "claude-sonnet-4-5"):
        full = f"{provider_of(name)}/{name}"
        assert await prices.cost_usd(name, 7, 3) == await prices.cost_usd(full, 7, 3) > 0


async def test_an_unknown_model_costs_nothing(subtests: pytest.Subtests) -> None:
    for name in ["scripted/never-heard-of", "local/smollm2", "", "sample_spec"]:
        with subtests.test(name=name):
            assert await prices.cost_usd(name, 1_000_000, 1_000_000) == 0.0


async def test_no_tokens_cost_nothing() -> None:
    assert await prices.cost_usd("openai/gpt-4o", 0, 0) == 0.0


async def test_prompt_and_completion_are_priced_apart() -> None:
    assert await prices.cost_usd("gpt-4o", 1000, 0) == pytest.approx(0.0025)
    assert await prices.cost_usd("gpt-4o", 0, 1000) == pytest.approx(0.01)


async def test_speech_costs_by_characters_or_by_tokens_and_seconds() -> None:
    assert await prices.speech_cost_usd("openai/tts-1", 1000, 0, 0.0) == pytest.approx(0.015)
    cost = await prices.speech_cost_usd("openai/gpt-4o-mini-tts", 1000, 250, 60.0)
    assert cost == pytest.approx(250 * 2.5e-6 + 60 * 0.00025)
    assert await prices.speech_cost_usd("scripted/never-heard-of", 1000, 250, 60.0) == 0.0


async def test_tokens_of_speech_are_estimated_where_they_are_charged() -> None:
    text = "Good morning, everybody."
    tokens = await prices.estimate_speech_tokens("openai/gpt-4o-mini-tts", text)
    assert tokens == estimate_tokens(text)
    for name in ("openai/tts-1", "scripted/never-heard-of"):
        assert await prices.estimate_speech_tokens(name, text) == 0
        assert not await prices.charges_speech_by_second(name)
    assert await prices.charges_speech_by_second("openai/gpt-4o-mini-tts")


async def test_a_window_is_the_table_s_or_a_careful_guess() -> None:
    assert await prices.window_of("openai/gpt-4o") == 128_000
    assert await prices.window_of("gemini/gemini-2.5-flash") == 1_048_576
    assert await prices.window_of("scripted/never-heard-of") == 16_384


async def test_concurrent_first_callers_get_the_same_table() -> None:
    prices._read.cache_clear()
    first, *others = await asyncio.gather(*(prices.table() for _ in range(5)))
    assert len(first) > 1000
    assert all(other == first for other in others)


async def test_the_table_is_read_once() -> None:
    assert await prices.table() is await prices.table()


async def test_no_price_and_no_window_is_negative() -> None:
    for name, price in (await prices.table()).items():
        assert price.input_cost_per_token >= 0, name
        assert price.output_cost_per_token >= 0, name
        assert (price.max_input_tokens or 0) >= 0, name


# A provider's models


def test_a_provider_s_models_have_their_full_names_and_the_cheapest_is_first() -> None:
    assert prices.models_of(TABLE, "openai") == [
        "openai/a-free-one",
        "openai/gpt-x-mini",
        "openai/gpt-x",
        "openai/of-unknown-size",
    ]


def test_a_model_with_two_names_is_one_model() -> None:
    assert prices.models_of(TABLE, "anthropic") == ["anthropic/claude-x"]


def test_a_provider_s_chat_part_belongs_to_it() -> None:
    assert prices.models_of(TABLE, "cohere") == ["cohere/command-x"]


def test_an_unknown_provider_has_no_models() -> None:
    assert prices.models_of(TABLE, "nobody") == []


async def test_every_provider_of_the_table_has_models_unless_it_has_speech_only(
    subtests: pytest.Subtests,
) -> None:
    for provider in sorted(PROVIDERS):
        with subtests.test(provider=provider):
            has_models = bool(prices.models_of(await prices.table(), provider))
            assert has_models == (provider not in PROBES)


async def test_every_listed_model_is_ready(services: Services, subtests: pytest.Subtests) -> None:
    for provider in sorted(PROVIDERS):
        with subtests.test(provider=provider):
            for name in prices.models_of(await prices.table(), provider):
                assert provider_of(name) == provider
                models: Models = services.get(Models)
                assert await models.is_ready(Target(name, provider, "sk-0123456789")), name


async def test_an_entry_that_is_not_a_model_is_not_listed() -> None:
    assert "openai/container" not in prices.models_of(await prices.table(), "openai")


# The provider of a model


_CASES: list[tuple[str, str]] = [
    ("openai/gpt-4o", "openai"),
    ("OpenAI/gpt-4o", "openai"),
    ("openrouter/openai/gpt-4o", "openrouter"),
    ("local/smollm2", "local"),
    ("my-own/model", "my-own"),
    ("gpt-4o", "openai"),
    ("GPT-4o", "openai"),
    ("chatgpt-4o-latest", "openai"),
    ("o1", "openai"),
    ("o3-mini", "openai"),
    ("text-embedding-3-small", "openai"),
    ("claude-sonnet-4-5", "anthropic"),
    ("gemini-2.5-flash", "gemini"),
    ("mistral-large-latest", "mistral"),
    ("ministral-8b", "mistral"),
    ("codestral-latest", "mistral"),
    ("magistral-medium", "mistral"),
    ("devstral-small", "mistral"),
    ("pixtral-large", "mistral"),
    ("command-r-plus", "cohere"),
    ("deepseek-chat", "deepseek"),
    ("grok-4", "xai"),
    ("sonar-pro", "perplexity"),
    ("jamba-large", "ai21"),
    ("something-else", "openai"),
    ("my-gpt", "openai"),
    ("not-claude", "openai"),
    ("", "openai"),
    ("/model", ""),
]


def test_a_model_s_name_implies_its_provider(subtests: pytest.Subtests) -> None:
    for model, provider in _CASES:
        with subtests.test(model=model, provider=provider):
            assert provider_of(model) == provider


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("gpt-4o", "gpt-4o"),
        ("openrouter/openai/gpt-4o", "openai/gpt-4o"),
        ("openai/openai/gpt-oss", "openai/gpt-oss"),
        pytest.param("OpenAI/gpt-4o", "gpt-4o"),
    ],
)
def test_the_name_at_the_provider_has_no_provider_prefix(model: str, name: str) -> None:
    assert Target(model, provider_of(model)).name_at_provider == name


def test_the_table_of_providers_is_well_formed() -> None:
    assert LOCAL not in PROVIDERS
    for name, provider in PROVIDERS.items():
        assert name == provider.name == name.lower()
        assert "/" not in name
        assert provider.title
        if provider.base_url is not None:
            assert provider.base_url.startswith("https://")
            assert not provider.base_url.endswith("/")


def test_bare_names_lead_only_to_providers_of_the_table() -> None:
    bare = ("gpt", "claude", "gemini", "mistral", "command", "deepseek", "grok", "sonar", "jamba")
    assert {provider_of(name) for name in bare} <= set(PROVIDERS)


# Estimated tokens


def test_an_estimate_of_tokens_is_on_the_high_side(subtests: pytest.Subtests) -> None:
    for text, least in [
        ("", 1),
        ("Hello", 1),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("日本語のテキスト", 6),
        ("x" * 7000, 1000),
    ]:
        with subtests.test(text=text, least=least):
            assert least <= estimate_tokens(text) <= len(text.encode()) + 1
