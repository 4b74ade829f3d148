"""Which models can be used, and what other areas use of models."""

import asyncio

from app.domain.models import prices
from app.domain.models.errors import ModelFailed
from app.domain.models.gateway import LOCAL_MODEL, LOCAL_WINDOW, Models
from app.domain.models.keys import seal_context as key_seal_context
from app.domain.models.prices import cost_usd
from app.domain.models.protocol import (
    Ask,
    Function,
    Message,
    Role,
    Target,
    Text,
    ToolCall,
    Used,
    estimated_tokens,
    most_tokens,
)
from app.domain.models.providers import LOCAL, provider_of
from app.domain.models.schemas import ModelView
from app.kit import logs

__all__ = [
    "Ask",
    "Function",
    "Message",
    "Models",
    "Role",
    "Target",
    "Text",
    "ToolCall",
    "Used",
    "cost_usd",
    "estimated_tokens",
    "key_seal_context",
    "list_usable",
    "most_tokens",
    "provider_of",
]

log = logs.get("models")

_MILLION = 1_000_000
_LIST_SECONDS = 3.0


async def list_usable(models: Models, targets: list[Target]) -> list[ModelView]:
    """The local model while it runs, and those of each provider that the tenant has a key of."""
    table = await prices.table()
    found = []
    if await models.local_address() is not None:
        found.append(ModelView(LOCAL_MODEL, LOCAL, LOCAL_WINDOW, 0.0, 0.0))
    for names in await asyncio.gather(*(_names(models, table, target) for target in targets)):
        found += [_view(table, name) for name in names]
    return found


async def _names(models: Models, table: prices.Table, target: Target) -> list[str]:
    if target.base_url is None:
        return sorted(prices.models_of(table, target.provider))
    try:
        listed = await models.listed(target, _LIST_SECONDS)
    except ModelFailed as error:
        log.info("models not listed", provider=target.provider, reason=str(error)[:200])
        return []
    return sorted({f"{target.provider}/{name}" for name in listed})


def _view(table: prices.Table, name: str) -> ModelView:
    price = prices.find(table, name)
    if price is None:
        return ModelView(name, name.partition("/")[0], None, None, None)
    window = int(price.max_input_tokens) if price.max_input_tokens else None
    return ModelView(
        name,
        name.partition("/")[0],
        window,
        round(price.input_cost_per_token * _MILLION, 6),
        round(price.output_cost_per_token * _MILLION, 6),
    )
