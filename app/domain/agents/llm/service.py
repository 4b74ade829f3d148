"""Lists usable models."""

import asyncio

from app.kit import logs

from . import prices
from .errors import ModelFailed
from .gateway import LOCAL_MODEL, LOCAL_WINDOW, Models
from .protocol import Target
from .providers import LOCAL
from .schemas import ModelView

log = logs.get("models")

_MILLION = 1_000_000
_LIST_SECONDS = 3.0


async def list_usable(models: Models, targets: list[Target]) -> list[ModelView]:
    """Returns the local model while it runs, and the models of each target's provider."""
    table = await prices.table()
    views = []
    if await models.local_address() is not None:
        views.append(ModelView(LOCAL_MODEL, LOCAL, LOCAL_WINDOW, 0.0, 0.0, takes_images=False))
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
        return ModelView(name, name.partition("/")[0], None, None, None, None)
    window = int(price.max_input_tokens) if price.max_input_tokens else None
    return ModelView(
        name,
        name.partition("/")[0],
        window,
        round(price.input_cost_per_token * _MILLION, 6),
        round(price.output_cost_per_token * _MILLION, 6),
        bool(price.supports_vision),
    )
