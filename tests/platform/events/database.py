"""Reads the event log and the ledger, and waits for the work that events cause."""

import msgspec

from app.services import Services
from tests.assertions import wait_until
from tests.database import Row, fetch_rows

_EVENTS = """
SELECT id, type, correlation_id, parent_id, depth, test, data::text AS data FROM event_log
WHERE tenant_id = $1 AND ($2::text IS NULL OR type = $2) ORDER BY id
"""
_WORK = """
SELECT id, kind, ref_id, state, attempt, last_error, cause_event_id, correlation_id FROM work
WHERE tenant_id = $1 AND ($2::text IS NULL OR kind = $2) ORDER BY created_at, id
"""
_COUNT_DUE = """
SELECT count(*) AS due FROM work
WHERE tenant_id = $1 AND kind IN ('events.fan_out', 'events.act', 'webhooks.deliver')
  AND state IN ('pending', 'leased')
  AND (run_at <= now() + interval '1 second' OR last_error = 'waits its turn')
"""


async def load_events(
    services: Services, tenant_id: str, event_type: str | None = None
) -> list[Row]:
    """Returns the tenant's events, the oldest first."""
    rows = await fetch_rows(services, _EVENTS, tenant_id, event_type)
    return [{**row, "data": msgspec.json.decode(row["data"])} for row in rows]


async def load_work(services: Services, tenant_id: str, kind: str | None = None) -> list[Row]:
    return await fetch_rows(services, _WORK, tenant_id, kind)


async def wait_for_request_span(services: Services, request_id: str) -> None:
    """The end of a request is stored shortly after its response."""
    sql = "SELECT 1 FROM request_spans WHERE request_id = $1"
    await wait_until(lambda: fetch_rows(services, sql, request_id))


async def wait_until_idle(services: Services, tenant_id: str) -> None:
    """Waits until no work for the tenant's events is due.

    Work that other work causes is accepted in the same transaction, so none is missed.
    """

    async def is_idle() -> bool:
        (row,) = await fetch_rows(services, _COUNT_DUE, tenant_id)
        return bool(row["due"] == 0)

    await wait_until(is_idle)
