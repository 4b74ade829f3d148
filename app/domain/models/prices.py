"""What models cost and how much they read: litellm's own table, read without importing litellm."""

import asyncio
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

_FILE = "model_prices_and_context_window_backup.json"
_UNKNOWN_WINDOW = 16_384


class Price(msgspec.Struct):
    litellm_provider: str = ""
    mode: str = ""
    input_cost_per_token: float = 0.0
    output_cost_per_token: float = 0.0
    max_input_tokens: int | float | None = None


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
            # The first entry documents the others in words.
            continue
    return table


async def table() -> Table:
    """Off the event loop the first time: it is a megabyte of JSON."""
    if _read.cache_info().currsize:
        return _read()
    return await asyncio.to_thread(_read)


def find(prices: Table, model: str) -> Price | None:
    """By full name, as `provider/model`, or without its provider."""
    return prices.get(model) or prices.get(model.partition("/")[2])


async def cost_usd(model: str, prompt_tokens: int, completion_tokens: int) -> float:
    """0 where nobody charges, or where the price is not known."""
    price = find(await table(), model)
    if price is None:
        return 0.0
    prompt = prompt_tokens * price.input_cost_per_token
    return prompt + completion_tokens * price.output_cost_per_token


async def window_of(model: str) -> int:
    """How many tokens the model reads; a careful guess where it is not known."""
    price = find(await table(), model)
    if price is None or not price.max_input_tokens:
        return _UNKNOWN_WINDOW
    return int(price.max_input_tokens)


def models_of(prices: Table, provider: str) -> list[str]:
    """The chat models of a provider by their full names, the cheapest first."""
    found = {
        name if name.startswith(f"{provider}/") else f"{provider}/{name}": price
        for name, price in prices.items()
        if price.mode == "chat"
        and price.litellm_provider in {provider, f"{provider}_chat"}
        # What has neither a window nor a price is no model.
        and (price.max_input_tokens or price.input_cost_per_token)
    }
    return sorted(found, key=lambda name: (found[name].input_cost_per_token, name))
