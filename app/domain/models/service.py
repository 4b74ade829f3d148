"""Which models can be used here and now."""

import asyncio

from app.domain.models import prices
from app.domain.models.gateway import LOCAL_MODEL, LOCAL_WINDOW, Models
from app.domain.models.protocol import ModelFailed, Target
from app.domain.models.providers import LOCAL
from app.domain.models.schemas import ModelView
from app.kit import logs

log = logs.get("models")

_MILLION = 1_000_000
_LIST_SECONDS = 3.0


async def usable(models: Models, targets: list[Target]) -> list[ModelView]:
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
