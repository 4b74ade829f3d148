"""Many notifications of one user, as many of other users, and a long log of one channel."""

from datetime import datetime

import msgspec

from app.services import Services
from db.session import ALL_TENANTS
from tests.database import fetch_rows, run_sql
from tests.world import Client, World

COUNT = 2400
USERS = 100
COMMON, RARE = "message", "security"

# Three share a moment; one in 100 has the rare type.
_MESSAGES = """
INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients, occasion,
                                   source, correlation_id, created_at)
SELECT $1::text, 'ntm_many_' || $1::text || lpad(((n * 7919) % $2::int)::text, 6, '0'),
       CASE WHEN n % 100 = 7 THEN 'security' ELSE 'message' END, 'Number ' || n, 'Text', '{}', '{}',
       'ntm_many_' || $1::text || n, 'many', 'cor_many', now() - (n / 3) * interval '1 second'
FROM generate_series(0, $2::int - 1) n
"""
# Three of ten are read.
_NOTIFICATIONS = """
INSERT INTO notifications (tenant_id, id, user_id, message_id, type, read, created_at)
SELECT tenant_id, 'ntf' || substr(id, 4), $2::text, id, type, right(title, 1) < '3', created_at
FROM notification_messages WHERE tenant_id = $1
"""
_OTHERS = """
WITH others AS (
    INSERT INTO users (tenant_id, id, email, role, password_hash, first_name, last_name)
    SELECT $1::text, 'usr_many_' || $1::text || n, $1::text || n || '@example.com', 'viewer', 'x',
           'Test', 'User'
    FROM generate_series(1, $2::int) n RETURNING id
), messages AS (
    SELECT id, type, created_at FROM notification_messages
    WHERE tenant_id = $1 ORDER BY created_at DESC LIMIT $3::int / $2::int
)
INSERT INTO notifications (tenant_id, id, user_id, message_id, type, created_at)
SELECT $1, 'ntf' || substr(m.id, 4) || o.id, o.id, m.id, m.type, m.created_at
FROM messages m CROSS JOIN others o
"""
_DELIVERIES = """
INSERT INTO notification_deliveries (tenant_id, id, message_id, channel_id, first_id, occasion,
                                     recipient, status, attempt, work_id, correlation_id,
                                     created_at)
SELECT tenant_id, 'ntd' || substr(id, 4), id, $2::text, 'ntd' || substr(id, 4), occasion,
       'ann@example.com', CASE WHEN type = 'security' THEN 'failed' ELSE 'delivered' END, 1, 'none',
       'cor_many', created_at
FROM notification_messages WHERE tenant_id = $1
"""
_LOG = """
INSERT INTO notification_log (tenant_id, id, channel_id, delivery_id, number, status, created_at)
SELECT tenant_id, 'ntl' || substr(id, 4), channel_id, id, 1, status, created_at
FROM notification_deliveries WHERE tenant_id = $1
"""
RESTORE_TYPES = """
UPDATE notifications n SET type = m.type FROM notification_messages m
WHERE m.id = n.message_id AND m.type <> n.type
"""
_TABLES = "notification_messages, notifications, notification_deliveries, notification_log"


class StoredRow(msgspec.Struct, frozen=True):
    """A notification, to filter in Python."""

    id: str
    type: str
    read: bool
    at: datetime


class LargeDataset(msgspec.Struct):
    """`owner` and `super_admin` have the same number of notifications."""

    owner: Client
    super_admin: Client
    channel_id: str
    rows: list[StoredRow]

    @property
    def log(self) -> str:
        return f"/api/v1/notification-channels/{self.channel_id}/logs"


async def create_dataset(world: World) -> LargeDataset:
    services = world.services
    owner, super_admin = await world.user("tenant_admin"), await world.user("super_admin")
    for user in (owner, super_admin):
        await run_sql(services, _MESSAGES, user.tenant_id, COUNT)
        await run_sql(services, _NOTIFICATIONS, user.tenant_id, user.user_id)
    await run_sql(services, _OTHERS, owner.tenant_id, USERS, COUNT)
    channel_id = await _add_log(services, owner)
    await analyze(services)
    sql = "SELECT id, type, read, created_at AS at FROM notifications WHERE user_id = $1"
    rows = [StoredRow(**row) for row in await fetch_rows(services, sql, owner.user_id)]
    newest_first = sorted(rows, key=lambda row: (row.at, row.id), reverse=True)
    return LargeDataset(owner, super_admin, channel_id, newest_first)


async def _add_log(services: Services, owner: Client) -> str:
    """Returns the id of the channel that has the log."""
    body = {"name": "Many", "type": "webhook", "provider": "webhook", "active": False}
    config = {"url": "http://127.0.0.1:9/"}
    answer = await owner.post("/api/v1/notification-channels", {**body, "config": config})
    assert answer.status_code == 201, answer.text
    channel_id: str = answer.json()["id"]
    await run_sql(services, _DELIVERIES, owner.tenant_id, channel_id)
    await run_sql(services, _LOG, owner.tenant_id)
    return channel_id


async def analyze(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(f"ANALYZE {_TABLES}")


async def delete_dataset(services: Services, dataset: LargeDataset) -> None:
    tenant_ids = [dataset.owner.tenant_id, dataset.super_admin.tenant_id]
    sql = "DELETE FROM notification_messages WHERE tenant_id = ANY($1)"
    await run_sql(services, sql, tenant_ids)
    await analyze(services)
