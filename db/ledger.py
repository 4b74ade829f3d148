"""The statements of the ledger. Redis is only the doorbell; these rows are the truth.

Times are the database's, so that clocks of workers do not matter. A lease token fences the outcome:
a worker that lost its lease changes no row. Areas that accept work or record outcomes together with
rows of their own put `insert_sql` or `outcomes_sql` into their statements.
"""

from collections.abc import Mapping
from datetime import datetime

import asyncpg
import msgspec

from db import fast
from db.session import Tx

_LANES_AT_ONCE = 1000


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


class Capacity(msgspec.Struct, frozen=True):
    """How many run in this process, by lane and by tenant, and how many each may have."""

    lanes: Mapping[str, int]
    tenants: Mapping[str, int]
    per_lane: int
    per_tenant: int


class Dispatch(msgspec.Struct, frozen=True):
    id: str
    kind: str
    dispatch_no: int


def insert_sql(source: str, **columns: str) -> str:
    """An INSERT of work whose rows come from `FROM source`, each column given as an expression."""
    names, values = ", ".join(columns), ", ".join(columns.values())
    return f"INSERT INTO work ({names}) SELECT {values} FROM {source}"


def outcomes_sql(outcomes: str, *, skip_locked: bool) -> str:
    """Two common table expressions that write the outcomes of many attempts, each only under the
    lease that it was made with. `recorded` has the id and the next `run_at` of each work written.
    `outcomes` names rows with work_id, lease_token, state, error and after (seconds until a retry).
    Rows are locked in the order of their ids, as all who lock several do.
    """
    skip = "SKIP LOCKED" if skip_locked else ""
    return f"""
leased AS (
    SELECT w.id FROM work w JOIN {outcomes} o ON w.id = o.work_id
    WHERE w.lease_token = o.lease_token AND w.state = 'leased'
    ORDER BY w.id FOR UPDATE OF w {skip}
), recorded AS (
    UPDATE work w
    SET state = o.state, last_error = o.error, lease_token = NULL, lease_until = NULL,
        dispatched_at = NULL,
        run_at = CASE WHEN o.state = 'pending' THEN now() + o.after * interval '1 second'
                      ELSE w.run_at END,
        finished_at = CASE WHEN o.state = 'pending' THEN NULL ELSE now() END
    FROM leased JOIN {outcomes} o ON o.work_id = leased.id WHERE w.id = leased.id
    RETURNING w.id, w.run_at
)"""


_ACCEPT = insert_sql(
    "(SELECT 1) one",
    tenant_id="$1::text",
    id="$2::text",
    kind="$3::text",
    ref_id="$4::text",
    dedupe_key="$5::text",
    max_attempts="$6::int",
    correlation_id="$7::text",
    cause_event_id="$8::text",
    run_at="coalesce($9::timestamptz, now())",
    dispatched_at="CASE WHEN $9::timestamptz IS NULL THEN now() END",
)
_ACCEPT += " ON CONFLICT (kind, dedupe_key) DO NOTHING"

_CLAIM = """
UPDATE work
SET state = 'leased', lease_token = $2, lease_until = now() + $3 * interval '1 second',
    attempt = attempt + 1, started_at = now()
WHERE id = $1
  AND (state = 'pending' AND run_at <= now() OR state = 'leased' AND lease_until < now())
RETURNING id, tenant_id, kind, ref_id, attempt, max_attempts, lease_token, correlation_id,
          cause_event_id, lane
"""

_ROW = """
w.id, w.tenant_id, w.kind, w.ref_id, w.attempt, w.max_attempts, w.lease_token, w.correlation_id,
w.cause_event_id, w.lane
"""
_LEASE = """
state = 'leased', lease_token = 'lea_' || gen_random_uuid(),
lease_until = now() + $2 * interval '1 second', attempt = attempt + 1, started_at = now()
"""
# Lane by lane, each found by the one before: a lane with a million rows costs no more than one with
# ten, and the others come as soon. Those after `$7` are looked at, so many at a time. Whoever has
# little running comes before whoever has much.
_LIVE = "lane IS NOT NULL AND state IN ('pending', 'leased')"
_CLAIM_LANES = f"""
WITH RECURSIVE waiting AS (
    SELECT EXISTS (SELECT 1 FROM work
                   WHERE state = 'pending' AND run_at <= now() AND lane IS NOT NULL)
        OR EXISTS (SELECT 1 FROM work
                   WHERE state = 'leased' AND lease_until < now() AND lane IS NOT NULL) AS something
), lanes AS (
    (SELECT lane, 1 AS number FROM work
     WHERE {_LIVE} AND lane > $7 AND (SELECT something FROM waiting) ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT next.lane, lanes.number + 1 FROM lanes CROSS JOIN LATERAL (
        SELECT lane FROM work WHERE {_LIVE} AND lane > lanes.lane ORDER BY lane LIMIT 1
    ) next WHERE lanes.number < $8
), due AS (
    SELECT found.id, found.tenant_id, found.run_at
    FROM lanes LEFT JOIN unnest($3::text[], $4::int[]) AS busy(lane, count) USING (lane)
    CROSS JOIN LATERAL (
        SELECT id, tenant_id, run_at FROM work
        WHERE {_LIVE} AND lane = lanes.lane AND run_at <= now()
          AND (state = 'pending' OR lease_until < now())
        ORDER BY run_at LIMIT greatest(0, $5 - coalesce(busy.count, 0)) FOR UPDATE SKIP LOCKED
    ) found
), ranked AS (
    SELECT id, run_at, row_number() OVER (PARTITION BY tenant_id ORDER BY run_at, id)
           + coalesce(theirs.count, 0) AS of_tenant
    FROM due LEFT JOIN unnest($9::text[], $10::int[]) AS theirs(tenant, count)
      ON theirs.tenant = due.tenant_id
), taken AS (
    SELECT id FROM ranked WHERE of_tenant <= $6 ORDER BY of_tenant, run_at, id LIMIT $1
), claimed AS (
    UPDATE work w SET {_LEASE} FROM taken WHERE w.id = taken.id RETURNING {_ROW}
)
SELECT seen.*, w.* FROM (SELECT count(*) AS lanes, max(lane) AS last_lane FROM lanes) seen
LEFT JOIN claimed w ON true
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

_LOCK = "SELECT 1 FROM work WHERE tenant_id = $1 AND id = $2 FOR UPDATE"
# Work that runs at this moment is not waited for: whoever writes its outcome locks it first and its
# delivery afterwards, which the caller has locked already.
_RUN_NOW = """
WITH moved AS (
    UPDATE work w SET run_at = now()
    FROM (SELECT id FROM work WHERE tenant_id = $1 AND id = $2 AND state = 'pending'
          FOR UPDATE SKIP LOCKED) free
    WHERE w.id = free.id
)
SELECT 1 FROM work WHERE tenant_id = $1 AND id = $2 AND state IN ('pending', 'leased')
"""
_OF_CORRELATION = """
SELECT id, kind, ref_id, lane, state, cause_event_id, created_at, started_at, finished_at FROM work
WHERE ($1::text IS NULL OR tenant_id = $1) AND correlation_id = $2
ORDER BY id LIMIT $3
"""
_STATE = "SELECT state FROM work WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"

_DELETE_FINISHED = """
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


async def claim_lanes(
    connection: asyncpg.Connection, limit: int, capacity: Capacity, lease_seconds: float, after: str
) -> tuple[list[WorkRow], str]:
    """Returns the claimed rows and the scan cursor, "" when the scan is exhausted."""
    found = await connection.fetch(
        _CLAIM_LANES,
        limit,
        lease_seconds,
        list(capacity.lanes),
        list(capacity.lanes.values()),
        capacity.per_lane,
        capacity.per_tenant,
        after,
        _LANES_AT_ONCE,
        list(capacity.tenants),
        list(capacity.tenants.values()),
    )
    rows = [
        WorkRow(**{name: row[name] for name in WorkRow.__struct_fields__})
        for row in found
        if row["id"] is not None
    ]
    seen = found[0]
    return rows, seen["last_lane"] if seen["lanes"] == _LANES_AT_ONCE else ""


async def cancel_lane(tx: Tx, tenant: str, lane: str) -> int:
    return await fast.execute(tx, tenant, _CANCEL_LANE, lane)


async def lock(tx: Tx, tenant: str, work_id: str) -> None:
    """Before its delivery, as whoever records an outcome does."""
    await fast.execute(tx, tenant, _LOCK, work_id)


async def run_now(tx: Tx, tenant: str, work_id: str) -> bool:
    """Makes a pending retry due. False when the work is finished."""
    return await fast.value(tx, tenant, _RUN_NOW, work_id) is not None


async def of_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[fast.Row]:
    return await fast.rows(tx, tenant, _OF_CORRELATION, correlation_id, limit)


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


async def delete_finished(connection: asyncpg.Connection, days: int) -> None:
    await connection.execute(_DELETE_FINISHED, days)


async def backlog(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    return list(await connection.fetch(_COUNT))


async def _touched(connection: asyncpg.Connection, sql: str, *args: object) -> bool:
    status: str = await connection.execute(sql, *args)
    return status.endswith(" 1")
