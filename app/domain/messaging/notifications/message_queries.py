"""SQL of messages: accepting them, and turning their recipients into rows and deliveries."""

from typing import Any, Final

import msgspec

from app.jobs.work import WorkKind
from db import fast
from db.fast import Row
from db.session import Tx

# How many attempts one delivery has, and the seconds before each of them.
RETRY_DELAYS: Final = (0.0, 1.0, 5.0)
# Attempts that ended without an outcome, because a worker was killed, do not use up the tries.
_SPARE_ATTEMPTS = 7

# Turns the recipients of a message into rows and deliveries.
DISPATCH: Final = WorkKind("notifications.dispatch", "deliveries", timeout_seconds=300)
# Makes one attempt to send a message through a channel, which is its lane.
SEND: Final = WorkKind(
    "notifications.send",
    "deliveries",
    timeout_seconds=60,
    retry_delays=(5.0,) * (len(RETRY_DELAYS) + _SPARE_ATTEMPTS - 1),
    in_bulk=True,
)
# Sends what was collected for one user.
SEND_DIGEST: Final = WorkKind("notifications.digest", "deliveries")

# An event causes one message for each rule and each subscription, also if it is fanned out twice.
# Messages without work are sent by the caller.
_ACCEPT_WORK = DISPATCH.insert_sql(
    "added WHERE $13::boolean RETURNING id",
    id="$12::text",
    ref_id="added.id",
    dedupe_key="added.id",
    correlation_id="$10::text",
    cause_event_id="$14::text",
    dispatched_at="now()",
)
_ACCEPT = f"""
WITH added AS (
    INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients,
                                       occasion, source, correlation_id, is_mailed, created_by)
    VALUES ($1::text, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8, $9, $10::text, $11, $15)
    ON CONFLICT (occasion, source) DO NOTHING RETURNING id
), accepted AS ({_ACCEPT_WORK})
SELECT (SELECT id FROM accepted) AS work_id FROM added
"""

_FIND = """
SELECT id, tenant_id, type, title, message, data::text AS data, recipients::text AS recipients,
       dispatched_to, team_chat::text AS team_chat, occasion AS cause_id, source,
       is_mailed, correlation_id, created_at
FROM notification_messages WHERE tenant_id = $1 AND id = $2
"""
_SET_DISPATCHED_TO = """
UPDATE notification_messages SET dispatched_to = $3, team_chat = $4::jsonb
WHERE tenant_id = $1 AND id = $2
"""
_LIST_PREFERENCES = """
SELECT p.user_id, p.preferences::text AS preferences
FROM unnest($1::text[], $2::text[]) AS g(user_id, tenant_id)
JOIN notification_preferences p ON p.user_id = g.user_id AND p.tenant_id = g.tenant_id
"""
_ADD_NOTIFICATIONS = """
INSERT INTO notifications (tenant_id, id, user_id, message_id, type)
SELECT $1, g.id, g.user_id, $2, $3 FROM unnest($4::text[], $5::text[]) AS g(id, user_id)
ON CONFLICT (message_id, user_id) DO NOTHING
RETURNING user_id
"""

# One delivery for each cause, channel and recipient, with the row of its first attempt. Workers
# are woken for the first one of each channel; that one makes them look for the rest.
_ADD_WORK = SEND.insert_sql(
    "added JOIN requested g ON g.id = added.id",
    id="g.work_id",
    ref_id="g.id",
    lane="g.channel_id",
    correlation_id="$4::text",
    cause_event_id="$5::text",
    run_at="coalesce(g.run_at, now())",
    dispatched_at="now()",
)
_ADD_DELIVERIES = f"""
WITH requested AS (
    SELECT * FROM unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
                         $11::timestamptz[], $12::text[], $14::text[])
      AS g(id, channel_id, recipient, first_id, work_id, run_at, log_id, user_id)
), added AS (
    INSERT INTO notification_deliveries (tenant_id, id, message_id, channel_id, first_id, occasion,
                                         recipient, work_id, correlation_id, is_test, user_id)
    SELECT $1::text, g.id, $2, g.channel_id, g.first_id, $3, g.recipient, g.work_id, $4::text, $13,
           g.user_id
    FROM requested g
    ON CONFLICT (occasion, channel_id, recipient) DO NOTHING
    RETURNING id
), logged AS (
    INSERT INTO notification_log (tenant_id, id, channel_id, delivery_id, number)
    SELECT $1::text, g.log_id, g.channel_id, g.id, 1 FROM added JOIN requested g ON g.id = added.id
)
{_ADD_WORK}
RETURNING id, ref_id, lane
"""

_ADD_DIGEST_WORK = SEND_DIGEST.insert_sql(
    "digest ON CONFLICT (kind, dedupe_key) DO NOTHING",
    id="'wrk_' || substr(digest.id, 5)",
    ref_id="digest.id",
    dedupe_key="digest.id",
    correlation_id="$8::text",
    cause_event_id="$9::text",
    run_at="digest.due_at",
)
# A digest that was sent while this statement waited for its row is replaced by a new one.
_ADD_TO_DIGESTS = f"""
WITH requested AS (
    SELECT * FROM unnest($4::text[], $5::text[], $6::text[], $7::timestamptz[])
      AS g(id, user_id, channel_type, due_at)
), digest AS (
    INSERT INTO notification_digests (tenant_id, id, user_id, type, channel_type, due_at)
    SELECT $1::text, g.id, g.user_id, $3, g.channel_type, g.due_at FROM requested g
    ORDER BY g.user_id, g.channel_type
    ON CONFLICT (tenant_id, coalesce(user_id, ''), type, channel_type, due_at)
      WHERE sent_at IS NULL
    DO UPDATE SET due_at = excluded.due_at
    RETURNING id, due_at
), item AS (
    INSERT INTO notification_digest_items (tenant_id, digest_id, message_id)
    SELECT $1::text, id, $2 FROM digest ON CONFLICT DO NOTHING
)
{_ADD_DIGEST_WORK}
"""
_FIND_DIGEST = """
SELECT id, user_id, type, channel_type FROM notification_digests
WHERE tenant_id = $1 AND id = $2 AND sent_at IS NULL
"""
_LOCK_DIGEST = _FIND_DIGEST + " FOR UPDATE"
_MARK_DIGEST_SENT = """
UPDATE notification_digests SET sent_at = now() WHERE tenant_id = $1 AND id = $2
"""
_LIST_DIGEST_ITEMS = """
SELECT m.title, left(m.message, 2000) AS message, m.created_at, count(*) OVER () AS total
FROM notification_digest_items i JOIN notification_messages m ON m.id = i.message_id
WHERE i.tenant_id = $1 AND i.digest_id = $2 ORDER BY m.created_at, m.id LIMIT $3
"""


# The text of a digest, which quotes its messages, goes with one of them.
_DELETE = """
WITH deleted AS (
    SELECT id FROM notification_messages
    WHERE tenant_id = $1 AND (occasion = ANY($2) OR id = ANY($3))
), digest AS (
    UPDATE notification_messages m SET message = $4
    FROM (SELECT DISTINCT digest_id FROM notification_digest_items
          WHERE tenant_id = $1 AND message_id IN (SELECT id FROM deleted)) i
    WHERE m.tenant_id = $1 AND m.source = i.digest_id AND starts_with(m.source, 'ntg_')
)
DELETE FROM notification_messages WHERE tenant_id = $1 AND id IN (SELECT id FROM deleted)
"""


async def delete(
    tx: Tx, tenant: str, event_ids: list[str], message_ids: list[str], digest_text: str
) -> None:
    """Deletes messages that events caused, and others by their ids, with what they led to."""
    await fast.execute(tx, tenant, _DELETE, event_ids, message_ids, digest_text)


async def accept(tx: Tx, tenant: str, *values: object) -> Row | None:
    """Returns None when the event has caused this message already."""
    return await fast.row(tx, tenant, _ACCEPT, *values)


async def find(tx: Tx, tenant: str, message_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND, message_id)


async def set_dispatched_to(
    tx: Tx, tenant: str, message_id: str, user_id: str, team_chat: str | None
) -> None:
    await fast.execute(tx, tenant, _SET_DISPATCHED_TO, message_id, user_id, team_chat)


async def list_preferences(tx: Tx, users: list[Row]) -> dict[str, dict[str, Any]]:
    """Returns what the users, each of its tenant, have changed: by user, then by type."""
    ids, tenant_ids = [user["id"] for user in users], [user["tenant_id"] for user in users]
    rows = await (await tx.raw()).fetch(_LIST_PREFERENCES, ids, tenant_ids)
    changed = {row["user_id"]: msgspec.json.decode(row["preferences"]) for row in rows}
    return {user_id: changed.get(user_id, {}) for user_id in ids}


async def add_notifications(tx: Tx, tenant: str, *values: object) -> list[str]:
    """Returns the users who did not have the message yet."""
    rows = await fast.rows(tx, tenant, _ADD_NOTIFICATIONS, *values)
    return [row["user_id"] for row in rows]


async def add_deliveries(tx: Tx, tenant: str, *values: object) -> list[Row]:
    return await fast.rows(tx, tenant, _ADD_DELIVERIES, *values)


async def add_to_digests(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ADD_TO_DIGESTS, *values)


async def find_digest(
    tx: Tx, tenant: str, digest_id: str, *, for_update: bool = False
) -> Row | None:
    """Returns None when it was sent or deleted."""
    return await fast.row(tx, tenant, _LOCK_DIGEST if for_update else _FIND_DIGEST, digest_id)


async def mark_digest_sent(tx: Tx, tenant: str, digest_id: str) -> None:
    await fast.execute(tx, tenant, _MARK_DIGEST_SENT, digest_id)


async def list_digest_items(tx: Tx, tenant: str, digest_id: str, limit: int) -> list[Row]:
    """Returns the oldest items, each with the total of all."""
    return await fast.rows(tx, tenant, _LIST_DIGEST_ITEMS, digest_id, limit)
