"""The statements of the ledger. Redis is only the doorbell; these rows are the truth.

Times are the database's, so that clocks of workers do not matter. A lease token fences the outcome:
a worker that lost its lease changes no row.
"""

from datetime import datetime

import asyncpg
import msgspec

from db import fast
from db.session import Tx


class WorkRow(msgspec.Struct, frozen=True):
    id: str
    tenant_id: str | None
    kind: str
    ref_id: str | None
    attempt: int
    max_attempts: int
    lease_token: str
    correlation_id: str
    cause_event_id: str | None
    lane: str | None = None


class Room(msgspec.Struct, frozen=True):
    """Who has enough running here, and how many more the others may have."""

    full_lanes: list[str]
    full_tenants: list[str]
    of_lane: int
    of_tenant: int


class Dispatch(msgspec.Struct, frozen=True):
    id: str
    kind: str
    dispatch_no: int


_ACCEPT = """
INSERT INTO work (tenant_id, id, kind, ref_id, dedupe_key, max_attempts, correlation_id,
                  cause_event_id, run_at, dispatched_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, now()),
        CASE WHEN $9::timestamptz IS NULL THEN now() END)
ON CONFLICT (kind, dedupe_key) DO NOTHING
"""

_CLAIM = """
UPDATE work
SET state = 'leased', lease_token = $2, lease_until = now() + $3 * interval '1 second',
    attempt = attempt + 1, started_at = now()
WHERE id = $1
  AND (state = 'pending' AND run_at <= now() OR state = 'leased' AND lease_until < now())
RETURNING id, tenant_id, kind, ref_id, attempt, max_attempts, lease_token, correlation_id,
          cause_event_id, lane
"""

# Of each lane only as many as there is room for, in the order in which they are due.
_CLAIM_DUE = """
WITH due AS (
    SELECT id, lane, tenant_id, run_at FROM work
    WHERE kind = ANY($1)
      AND (state = 'pending' AND run_at <= now()
           OR state = 'leased' AND lease_until < now())
      AND lane <> ALL($2) AND tenant_id <> ALL($3)
    ORDER BY run_at
    LIMIT $4 * 4
    FOR UPDATE SKIP LOCKED
), ranked AS (
    SELECT id, row_number() OVER (PARTITION BY lane ORDER BY run_at, id) AS of_lane,
           row_number() OVER (PARTITION BY tenant_id ORDER BY run_at, id) AS of_tenant
    FROM due
), taken AS (
    SELECT id FROM ranked WHERE of_lane <= $5 AND of_tenant <= $6 ORDER BY id LIMIT $4
)
UPDATE work w
SET state = 'leased', lease_token = 'lea_' || gen_random_uuid(),
    lease_until = now() + $7 * interval '1 second', attempt = attempt + 1, started_at = now()
FROM taken WHERE w.id = taken.id
RETURNING w.id, w.tenant_id, w.kind, w.ref_id, w.attempt, w.max_attempts, w.lease_token,
          w.correlation_id, w.cause_event_id, w.lane
"""

# Locked in one order: outcomes of many rows are written at once, too.
_RENEW = """
UPDATE work w SET lease_until = now() + $2 * interval '1 second'
FROM (SELECT id FROM work WHERE lease_token = ANY($1) AND state = 'leased'
      ORDER BY id FOR UPDATE) held
WHERE w.id = held.id AND w.state = 'leased'
RETURNING w.lease_token
"""

_FINISH = """
UPDATE work
SET state = $3, last_error = $4, finished_at = now(), lease_token = NULL, lease_until = NULL
WHERE id = $1 AND lease_token = $2 AND state = 'leased'
"""

_HOLDS = "SELECT 1 FROM work WHERE id = $1 AND lease_token = $2 AND state = 'leased' FOR UPDATE"

_RETRY = """
UPDATE work
SET state = 'pending', last_error = $4, lease_token = NULL, lease_until = NULL,
    dispatched_at = NULL, run_at = now() + $3 * interval '1 second',
    attempt = attempt - CASE WHEN $5 THEN 1 ELSE 0 END
WHERE id = $1 AND lease_token = $2 AND state = 'leased'
"""

_DUE = """
UPDATE work w
SET dispatched_at = now(), dispatch_no = w.dispatch_no + 1
FROM (
    SELECT id FROM work
    WHERE kind = ANY($1)
      AND (state = 'pending' AND run_at <= now()
           OR state = 'leased' AND lease_until < now())
      AND (dispatched_at IS NULL OR dispatched_at < now() - $2 * interval '1 second')
    ORDER BY run_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) due
WHERE w.id = due.id
RETURNING w.id, w.kind, w.dispatch_no
"""

_UNDISPATCH = "UPDATE work SET dispatched_at = NULL WHERE id = $1 AND state = 'pending'"

_CANCEL = """
UPDATE work SET state = 'cancelled', finished_at = now(), lease_token = NULL, lease_until = NULL
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND state IN ('pending', 'leased')
"""

_CANCEL_LANE = """
UPDATE work w SET state = 'cancelled', finished_at = now(), lease_token = NULL, lease_until = NULL
FROM (SELECT id FROM work
      WHERE tenant_id = $1 AND lane = $2 AND state IN ('pending', 'leased')
      ORDER BY id FOR UPDATE) theirs
WHERE w.id = theirs.id
"""

_STATE = "SELECT state FROM work WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"

_FORGET = """
DELETE FROM work WHERE id IN (
    SELECT id FROM work
    WHERE state IN ('done', 'dead', 'cancelled') AND finished_at < now() - $1 * interval '1 day'
    LIMIT 5000
)
"""

_COUNT = """
SELECT kind, state, count(*) AS rows,
       coalesce(extract(epoch FROM now() - min(run_at)), 0)::float AS oldest
FROM work WHERE state IN ('pending', 'leased') GROUP BY kind, state
"""


async def accept(  # noqa: PLR0913  # a row's columns
    tx: Tx,
    tenant: str | None,
    *,
    work_id: str,
    kind: str,
    ref_id: str | None,
    dedupe_key: str | None,
    max_attempts: int,
    correlation_id: str,
    cause_event_id: str | None,
    run_at: datetime | None,
) -> bool:
    """True when the row is new; False when this kind and key were accepted before."""
    added = await fast.execute(
        tx,
        tenant,
        _ACCEPT,
        work_id,
        kind,
        ref_id,
        dedupe_key,
        max_attempts,
        correlation_id,
        cause_event_id,
        run_at,
    )
    return added == 1


async def claim(
    connection: asyncpg.Connection, work_id: str, token: str, lease_seconds: float
) -> WorkRow | None:
    found = await connection.fetchrow(_CLAIM, work_id, token, lease_seconds)
    return WorkRow(**found) if found else None


async def claim_due(
    connection: asyncpg.Connection,
    kinds: list[str],
    limit: int,
    room: "Room",
    lease_seconds: float,
) -> list[WorkRow]:
    """Take what is due, many at once, for whoever runs it right away."""
    found = await connection.fetch(
        _CLAIM_DUE,
        kinds,
        room.full_lanes,
        room.full_tenants,
        limit,
        room.of_lane,
        room.of_tenant,
        lease_seconds,
    )
    return [WorkRow(**row) for row in found]


async def cancel_lane(tx: Tx, tenant: str, lane: str) -> int:
    return await fast.execute(tx, tenant, _CANCEL_LANE, lane)


async def renew(
    connection: asyncpg.Connection, tokens: list[str], lease_seconds: float
) -> set[str]:
    """The tokens whose leases still hold."""
    return {row["lease_token"] for row in await connection.fetch(_RENEW, tokens, lease_seconds)}


async def finish(
    connection: asyncpg.Connection, row: WorkRow, state: str = "done", error: str | None = None
) -> bool:
    return await _touched(connection, _FINISH, row.id, row.lease_token, state, error)


async def holds(connection: asyncpg.Connection, row: WorkRow) -> bool:
    """True while the lease is ours; it stays so until the transaction ends."""
    return bool(await connection.fetchval(_HOLDS, row.id, row.lease_token))


async def retry(
    connection: asyncpg.Connection,
    row: WorkRow,
    *,
    after_seconds: float,
    error: str | None,
    uncounted: bool = False,
) -> bool:
    """Back to pending. `uncounted` takes the attempt back: the worker stopped, the work did not."""
    return await _touched(
        connection, _RETRY, row.id, row.lease_token, after_seconds, error, uncounted
    )


async def due(
    connection: asyncpg.Connection, kinds: list[str], stale_seconds: float, limit: int
) -> list[Dispatch]:
    """Take what is due and was not dispatched lately, abandoned leases included."""
    found = await connection.fetch(_DUE, kinds, stale_seconds, limit)
    return [Dispatch(**row) for row in found]


async def undispatch(connection: asyncpg.Connection, work_id: str) -> None:
    await connection.execute(_UNDISPATCH, work_id)


async def cancel(tx: Tx, tenant: str | None, work_id: str) -> bool:
    return await fast.execute(tx, tenant, _CANCEL, work_id) == 1


async def state_of(tx: Tx, tenant: str | None, work_id: str) -> str | None:
    found: str | None = await fast.value(tx, tenant, _STATE, work_id)
    return found


async def forget(connection: asyncpg.Connection, days: int) -> None:
    await connection.execute(_FORGET, days)


async def backlog(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    return list(await connection.fetch(_COUNT))


async def _touched(connection: asyncpg.Connection, sql: str, *args: object) -> bool:
    status: str = await connection.execute(sql, *args)
    return status.endswith(" 1")
