"""Lists usable models, and exports the names that other areas import."""

import asyncio

from app.domain.models import prices
from app.domain.models.errors import ModelFailed
from app.domain.models.gateway import (
    LOCAL_ANSWER_TOKENS,
    LOCAL_MODEL,
    LOCAL_WINDOW,
    Models,
)
from app.domain.models.keys import load_search_key, load_target
from app.domain.models.keys import seal_context as key_seal_context
from app.domain.models.openai_requests import QUOTATION_MARK
from app.domain.models.prices import cost_usd, speech_cost_usd, transcription_cost_usd
from app.domain.models.protocol import (
    Function,
    Message,
    ModelRequest,
    QueueLimits,
    QueuePosition,
    Role,
    Target,
    Text,
    ToolCall,
    UsedTokens,
    estimate_tokens,
    upper_bound_tokens,
)
from app.domain.models.providers import LOCAL, provider_of
from app.domain.models.schemas import ModelView
from app.kit import logs

__all__ = [
    "LOCAL",
    "LOCAL_ANSWER_TOKENS",
    "LOCAL_MODEL",
    "QUOTATION_MARK",
    "Function",
    "Message",
    "ModelRequest",
    "Models",
    "QueueLimits",
    "QueuePosition",
    "Role",
    "Target",
    "Text",
    "ToolCall",
    "UsedTokens",
    "cost_usd",
    "estimate_tokens",
    "key_seal_context",
    "list_usable",
    "load_search_key",
    "load_target",
    "provider_of",
    "speech_cost_usd",
    "transcription_cost_usd",
    "upper_bound_tokens",
]

log = logs.get("models")

_MILLION = 1_000_000
_LIST_SECONDS = 3.0


async def list_usable(models: Models, targets: list[Target]) -> list[ModelView]:
    """Returns the local model while it runs, and the models of each target's provider."""
    table = await prices.table()
    views = []
    if await models.local_address() is not None:
        views.append(ModelView(LOCAL_MODEL, LOCAL, LOCAL_WINDOW, 0.0, 0.0))
    names_by_target = await asyncio.gather(
        *(_list_names(models, table, target) for target in targets)
    )
    for names in names_by_target:
        views += [_view(table, name) for name in names]
    return views


async def _list_names(models: Models, table: prices.Table, target: Target) -> list[str]:
    """Returns no names when the provider's own list cannot be read."""
    if target.base_url is None:
        return sorted(prices.models_of(table, target.provider))
    try:
        names = await models.list_models(target, _LIST_SECONDS)
    except ModelFailed as error:
        log.info("models not listed", provider=target.provider, reason=str(error)[:200])
        return []
    return sorted({f"{target.provider}/{name}" for name in names})


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
