"""Many events of one tenant, and as many deliveries of one webhook.

Another tenant has as many rows, which were inserted first.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from app.services import Services
from db.session import ALL_TENANTS
from tests.list_bounds import LOW_BOUND
from tests.world import Client, World

# Before the rows of all other tests, so that they do not list these rows.
START = datetime(1999, 1, 1, tzinfo=UTC)
BEFORE = START - timedelta(days=30)
END = START + timedelta(days=1)
# More than twice the bound of exact totals, so that half of it is not taken for the bound, and so
# many that the planner does not read all rows of a time instead of the few of a type.
COUNT = 12 * LOW_BOUND
# How long it is from the first row to the last.
SECONDS = COUNT // 3
COMMON, RARE = "many.common", "many.rare"
BIG = "cor_many_big"

# Three events share a moment; one in 500 has the rare type; a quarter has one correlation id.
_EVENTS = """
INSERT INTO event_log (tenant_id, id, type, correlation_id, data, created_at)
SELECT $1::text, 'evt_many_' || $1::text || lpad(((n * 7919) % $2::int)::text, 6, '0'),
       CASE WHEN n % 500 = 7 THEN 'many.rare' ELSE 'many.common' END,
       CASE WHEN n % 4 = 0 THEN 'cor_many_big' ELSE 'cor_many_' || n / 20 END,
       jsonb_build_object('n', n), $3::timestamptz + (n / 3) * interval '1 second'
FROM generate_series(0, $2::int - 1) n
"""
_DELIVERIES = """
INSERT INTO deliveries (tenant_id, id, webhook_id, event_id, event_type, status, attempt, work_id,
                        correlation_id, created_at)
SELECT tenant_id, 'dlv' || substr(id, 4), $2::text, id, type,
       CASE WHEN (data->>'n')::int % 500 = 7 THEN 'failed'
            WHEN (data->>'n')::int % 1000 = 3 THEN 'pending' ELSE 'delivered' END,
       1, 'wrk' || substr(id, 4), correlation_id, created_at
FROM event_log WHERE tenant_id = $1::text AND type IN ('many.common', 'many.rare')
"""


class StoredRow(msgspec.Struct, frozen=True):
    """A row of the dataset, to filter in Python. `kind` is an event type or a status."""

    id: str
    kind: str
    correlation_id: str
    at: datetime


class LargeDataset(msgspec.Struct):
    other_owner: Client
    owner: Client
    webhook_id: str
    events: list[StoredRow]
    deliveries: list[StoredRow]


async def create_dataset(world: World) -> LargeDataset:
    other_owner, owner = [await world.user("tenant_admin") for _ in range(2)]
    await _insert_rows(world.services, other_owner, BEFORE)
    webhook_id = await _insert_rows(world.services, owner, START)
    async with world.services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("ANALYZE event_log, deliveries, tenants")
    events = await _load_rows(world.services, "event_log", "type", owner.tenant_id)
    deliveries = await _load_rows(world.services, "deliveries", "status", owner.tenant_id)
    return LargeDataset(other_owner, owner, webhook_id, events, deliveries)


async def _insert_rows(services: Services, owner: Client, start: datetime) -> str:
    """Returns the id of the webhook that has the deliveries."""
    body = {"url": "http://127.0.0.1:9/", "events": ["system.test"]}
    webhook_id: str = (await owner.post("/api/v1/webhooks", body)).json()["id"]
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(_EVENTS, owner.tenant_id, COUNT, start)
        await raw.execute(_DELIVERIES, owner.tenant_id, webhook_id)
    return webhook_id


async def _load_rows(services: Services, table: str, kind: str, tenant: str) -> list[StoredRow]:
    """Returns the rows, the newest first, sorted in Python."""
    sql = f"SELECT id, {kind}, correlation_id, created_at FROM {table} WHERE tenant_id = $1"
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = [StoredRow(*row) for row in await (await tx.raw()).fetch(sql, tenant)]
    dataset_rows = [row for row in rows if row.at < END]
    return sorted(dataset_rows, key=lambda row: (row.at, row.id), reverse=True)


async def delete_dataset(services: Services, dataset: LargeDataset) -> None:
    tenant_ids = [dataset.other_owner.tenant_id, dataset.owner.tenant_id]
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        for table in ("deliveries", "event_log"):
            await raw.execute(f"DELETE FROM {table} WHERE tenant_id = ANY($1)", tenant_ids)
        await raw.execute("ANALYZE event_log, deliveries")
