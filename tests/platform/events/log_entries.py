"""Inserts events into the log without emitting them."""

from datetime import UTC, datetime

import msgspec

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS

ENTRY_KEYS = {"id", "type", "correlation_id", "parent_id", "actor", "data", "created_at"}
SPAN_KEYS = {"kind", "id", "parent_id", "name", "status", "started_at", "duration_ms"}
# Those that a span has where there is something to say.
MORE_SPAN_KEYS = {"waited_ms", "is_waiting", "input", "output", "error"}
NOON = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)

_INSERT = """
INSERT INTO event_log
    (tenant_id, id, type, correlation_id, parent_id, request_id, actor_id, data, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9)
"""


class LogEntry(msgspec.Struct, kw_only=True):
    """An event to insert into the log without emitting it."""

    type: str = "test.happened"
    correlation_id: str = "cor_test"
    parent_id: str | None = None
    request_id: str | None = None
    actor_id: str | None = None
    data: str = "{}"
    at: datetime = NOON


async def insert_entries(services: Services, tenant_id: str, *entries: LogEntry) -> list[str]:
    """Returns the ids of the events."""
    ids = [new_id("evt") for _ in entries]
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        for event_id, entry in zip(ids, entries, strict=True):
            await raw.execute(
                _INSERT,
                tenant_id,
                event_id,
                entry.type,
                entry.correlation_id,
                entry.parent_id,
                entry.request_id,
                entry.actor_id,
                entry.data,
                entry.at,
            )
    return ids
