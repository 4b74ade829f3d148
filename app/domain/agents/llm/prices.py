"""Prices and context windows of models, from litellm's data file; litellm is not imported."""

import asyncio
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from .protocol import estimate_tokens
from .providers import LOCAL, provider_of

_FILE = "model_prices_and_context_window_backup.json"
_DEFAULT_WINDOW = 16_384


class Price(msgspec.Struct):
    litellm_provider: str = ""
    mode: str = ""
    input_cost_per_token: float = 0.0
    output_cost_per_token: float = 0.0
    input_cost_per_audio_token: float = 0.0
    input_cost_per_second: float = 0.0
    input_cost_per_character: float = 0.0
    output_cost_per_second: float = 0.0
    input_cost_per_query: float = 0.0
    max_input_tokens: int | float | None = None
    supports_vision: bool | None = None


Table = dict[str, Price]


@cache
def _read() -> Table:
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    raw = (Path(spec.submodule_search_locations[0]) / _FILE).read_bytes()
    table: Table = {}
    for name, entry in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items():
        try:
            table[name] = msgspec.json.decode(entry, type=Price, strict=False)
        except msgspec.ValidationError:
            # The first entry is documentation and has texts instead of numbers.
            continue
    return table


async def table() -> Table:
    """Reads the file in a thread the first time, because it is a megabyte of JSON."""
    if _read.cache_info().currsize:
        return _read()
    return await asyncio.to_thread(_read)


def find(prices: Table, model: str) -> Price | None:
    """Finds a model by its full name `provider/model`, or else by the name without provider."""
    return prices.get(model) or prices.get(model.partition("/")[2])


async def cost_usd(model: str, prompt_tokens: int, completion_tokens: int) -> float:
    """Returns 0 for a model that is free or whose price is unknown."""
    price = find(await table(), model)
    if price is None:
        return 0.0
    prompt = prompt_tokens * price.input_cost_per_token
    return prompt + completion_tokens * price.output_cost_per_token


async def rerank_cost_usd(model: str, tokens: int, searches: int) -> float:
    """By searches or by tokens, whichever the model has a price for; 0 when it is unknown."""
    price = find(await table(), model)
    if price is None:
        return 0.0
    by_searches = max(1, searches) * price.input_cost_per_query
    return by_searches or tokens * price.input_cost_per_token


async def transcription_cost_usd(
    model: str, audio_tokens: int, text_tokens: int, seconds: float
) -> float:
    """By tokens or by seconds, whichever the model has a price for; 0 when it is unknown."""
    price = find(await table(), model)
    if price is None:
        return 0.0
    per_token = price.input_cost_per_audio_token or price.input_cost_per_token
    by_tokens = audio_tokens * per_token + text_tokens * price.output_cost_per_token
    return by_tokens or seconds * price.input_cost_per_second


async def charges_speech_by_second(model: str) -> bool:
    price = find(await table(), model)
    return price is not None and price.output_cost_per_second > 0


async def estimate_speech_tokens(model: str, text: str) -> int:
    """Returns 0 for a model that charges for characters: providers report no tokens of speech."""
    price = find(await table(), model)
    return estimate_tokens(text) if price is not None and price.input_cost_per_token else 0


async def speech_cost_usd(model: str, characters: int, tokens: int, seconds: float) -> float:
    """By characters, or by tokens of the text and seconds of the speech, whichever the model has a
    price for; 0 when it is unknown.
    """
    price = find(await table(), model)
    if price is None:
        return 0.0
    by_tokens = tokens * price.input_cost_per_token + seconds * price.output_cost_per_second
    return characters * price.input_cost_per_character or by_tokens


async def window_of(model: str) -> int:
    """Returns the size of the context window in tokens; a low default when it is unknown."""
    price = find(await table(), model)
    if price is None or not price.max_input_tokens:
        return _DEFAULT_WINDOW
    return int(price.max_input_tokens)


async def takes_images(model: str) -> bool:
    """A model that is not in the table may take images: its provider decides."""
    if provider_of(model) == LOCAL:
        return False
    price = find(await table(), model)
    return price is None or bool(price.supports_vision)


def models_of(prices: Table, provider: str) -> list[str]:
    """Returns the full names of a provider's chat models, the cheapest first."""
    chat_prices = {
        name if name.startswith(f"{provider}/") else f"{provider}/{name}": price
        for name, price in prices.items()
        if price.mode == "chat"
        and price.litellm_provider in {provider, f"{provider}_chat"}
        # Entries with neither a window nor a price are not models.
        and (price.max_input_tokens or price.input_cost_per_token)
    }
    return sorted(chat_prices, key=lambda name: (chat_prices[name].input_cost_per_token, name))
