"""What tests ask of the log and the ledger while workers do their part."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from app.services import Services
from db.session import ALL_TENANTS

T = TypeVar("T")
Row = dict[str, Any]

_LOG = """
SELECT id, type, correlation_id, parent_id, depth, test, data::text AS data FROM event_log
WHERE tenant_id = $1 AND ($2::text IS NULL OR type = $2) ORDER BY id
"""
_WORK = """
SELECT id, kind, ref_id, state, attempt, last_error, cause_event_id, correlation_id FROM work
WHERE tenant_id = $1 AND ($2::text IS NULL OR kind = $2) ORDER BY created_at, id
"""
_OPEN = """
SELECT count(*) AS open FROM work
WHERE tenant_id = $1 AND kind IN ('events.fan_out', 'events.act', 'webhooks.deliver')
  AND state IN ('pending', 'leased')
  AND (run_at <= now() + interval '1 second' OR last_error = 'waits its turn')
"""


async def rows(services: Services, sql: str, *args: object) -> list[Row]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return [dict(row) for row in await (await tx.raw()).fetch(sql, *args)]


async def run_sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def log_of(services: Services, tenant_id: str, event_type: str | None = None) -> list[Row]:
    """What happened to a tenant, the oldest first."""
    found = await rows(services, _LOG, tenant_id, event_type)
    return [{**row, "data": msgspec.json.decode(row["data"])} for row in found]


async def work_of(services: Services, tenant_id: str, kind: str | None = None) -> list[Row]:
    return await rows(services, _WORK, tenant_id, kind)


async def eventually(ask: Callable[[], Awaitable[T]], seconds: float = 20) -> T:
    """The first answer that is not empty."""
    async with asyncio.timeout(seconds):
        while not (found := await ask()):  # noqa: ASYNC110  # workers give no signal
            await asyncio.sleep(0.02)
    return found


async def settled(services: Services, tenant_id: str, seconds: float = 30) -> None:
    """Until nothing is due for the tenant's events: what a step leads to is accepted with it."""

    async def is_quiet() -> bool:
        (row,) = await rows(services, _OPEN, tenant_id)
        return bool(row["open"] == 0)

    await eventually(is_quiet, seconds)
