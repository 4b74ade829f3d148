"""The ledger: statements on the `work` table, the record of all accepted work.

Redis only tells workers that there is new work. All times are the database's, so that the clocks of
workers do not matter. An outcome is written only with the current lease token: a worker that lost
its lease changes no row. Areas that accept work or record outcomes together with their own rows put
`insert_sql` or `outcomes_sql` into their statements.
"""

from datetime import datetime
from typing import Final, NamedTuple

import asyncpg
import msgspec

from db import backlog, fast, lanes
from db.lanes import Capacity
from db.retention import RetentionRule
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


class Scan(NamedTuple):
    """The rows that a scan claimed, and the lane after which the next one starts, "" for the first.
    `has_more` is True when more rows could run at once.
    """

    rows: list[WorkRow]
    cursor: str
    has_more: bool


class Dispatch(msgspec.Struct, frozen=True):
    """Work to put on the queue; `dispatch_no` counts how often that happened."""

    id: str
    kind: str
    dispatch_no: int


def insert_sql(source: str, **columns: str) -> str:
    """Returns an INSERT into `work` that selects the column expressions from `source`."""
    names, values = ", ".join(columns), ", ".join(columns.values())
    return f"INSERT INTO work ({names}) SELECT {values} FROM {source}"


def outcomes_sql(outcomes: str, *, skip_locked: bool) -> str:
    """Returns two common table expressions that write the outcomes of many attempts whose leases
    are still valid. `recorded` has the id and the next `run_at` of each row that was written.
    `outcomes` names rows with work_id, lease_token, state, error and after (seconds until a retry).
    Rows are locked in the order of their ids, like everywhere, which prevents deadlocks.
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


def unfinished_sql(condition: str) -> str:
    """Returns the condition that there is unfinished work, aliased `w`, that meets `condition`."""
    return f"EXISTS (SELECT 1 FROM work w WHERE {condition} AND w.state IN ('pending', 'leased'))"


_ACCEPT = insert_sql(
    "(SELECT 1) single_row",
    tenant_id="$1::text",
    id="$2::text",
    kind="$3::text",
    ref_id="$4::text",
    dedupe_key="$5::text",
    max_attempts="$6::int",
    correlation_id="$7::text",
    cause_event_id="$8::text",
    lane="$9::text",
    run_at="coalesce($10::timestamptz, now())",
    dispatched_at="CASE WHEN $10::timestamptz IS NULL THEN now() END",
)
_ACCEPT += " ON CONFLICT (kind, dedupe_key) DO NOTHING"

_CLAIM = """
UPDATE work
SET state = 'leased', lease_token = $2, lease_until = now() + $3 * interval '1 second',
    attempt = attempt + 1, started_at = now()
WHERE id = $1
  AND (state = 'pending' AND run_at <= now() OR state = 'leased' AND lease_until < now())
  AND (lane IS NULL OR lane <> ALL($4) AND coalesce(tenant_id, '') <> ALL($5))
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
# Locks only the rows that it claims. Rows that another worker has locked are skipped.
_CLAIM_LANES = f"""
WITH RECURSIVE {lanes.CANDIDATES}, selected AS (
    SELECT w.id FROM candidates c JOIN work w ON w.id = c.id
    WHERE w.state = 'pending' AND w.run_at <= now() OR w.state = 'leased' AND w.lease_until < now()
    ORDER BY c.tenant_rank, c.due_at, c.id LIMIT $1 FOR UPDATE OF w SKIP LOCKED
), claimed AS (
    UPDATE work w SET {_LEASE} FROM selected WHERE w.id = selected.id RETURNING {_ROW}
)
SELECT scan.*, w.*
FROM (SELECT (SELECT count(*) FROM lanes) AS lanes, (SELECT max(lane) FROM lanes) AS last_lane,
             (SELECT count(*) FROM candidates) AS candidates) scan
LEFT JOIN claimed w ON true
"""

# A locked row is left to the next renewal, so that it stops no other; its lease is still valid. The
# outer SELECT sees the rows as they were before the update.
_RENEW = """
WITH renewed AS (
    UPDATE work w SET lease_until = now() + $2 * interval '1 second'
    FROM (SELECT id FROM work WHERE lease_token = ANY($1) AND state = 'leased'
          ORDER BY id FOR UPDATE SKIP LOCKED) unlocked
    WHERE w.id = unlocked.id
)
SELECT lease_token FROM work WHERE lease_token = ANY($1) AND state = 'leased'
"""

_FINISH = """
UPDATE work
SET state = $3, last_error = $4, finished_at = now(), lease_token = NULL, lease_until = NULL
WHERE id = $1 AND lease_token = $2 AND state = 'leased'
"""

_LOCK_LEASED = (
    "SELECT 1 FROM work WHERE id = $1 AND lease_token = $2 AND state = 'leased' FOR UPDATE"
)

_RETRY = """
UPDATE work
SET state = 'pending', last_error = $4, lease_token = NULL, lease_until = NULL,
    dispatched_at = NULL, run_at = now() + $3 * interval '1 second',
    attempt = attempt - CASE WHEN $5 THEN 1 ELSE 0 END
WHERE id = $1 AND lease_token = $2 AND state = 'leased'
"""

_DISPATCH_DUE = f"""
WITH due AS ({backlog.DUE})
UPDATE work w SET dispatched_at = now(), dispatch_no = w.dispatch_no + 1
FROM due WHERE w.id = due.id RETURNING w.id, w.kind, w.dispatch_no
"""

_UNDISPATCH = "UPDATE work SET dispatched_at = NULL WHERE id = $1 AND state = 'pending'"

_CANCEL = """
UPDATE work SET state = 'cancelled', finished_at = now(), lease_token = NULL, lease_until = NULL
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND state IN ('pending', 'leased')
"""

_CANCEL_MANY = """
UPDATE work w SET state = 'cancelled', finished_at = now(), lease_token = NULL, lease_until = NULL
FROM (SELECT id, state FROM work WHERE tenant_id = $1 AND id = ANY($2)
      AND state IN ('pending', 'leased') ORDER BY id FOR UPDATE) open_work
WHERE w.id = open_work.id RETURNING w.id, open_work.state = 'leased' AS was_running
"""

_CANCEL_LANE = """
UPDATE work w SET state = 'cancelled', finished_at = now(), lease_token = NULL, lease_until = NULL
FROM (SELECT id FROM work
      WHERE tenant_id = $1 AND kind = $2 AND lane = $3 AND state IN ('pending', 'leased')
      ORDER BY id FOR UPDATE) open_work
WHERE w.id = open_work.id
"""

_LOCK = "SELECT 1 FROM work WHERE tenant_id = $1 AND id = $2 FOR UPDATE"
# Skips work that is locked: the statement that writes its outcome locks the work first and then its
# delivery, which the caller has already locked.
_RUN_NOW = """
WITH moved AS (
    UPDATE work w SET run_at = now()
    FROM (SELECT id FROM work WHERE tenant_id = $1 AND id = $2 AND state = 'pending'
          FOR UPDATE SKIP LOCKED) unlocked
    WHERE w.id = unlocked.id
)
SELECT 1 FROM work WHERE tenant_id = $1 AND id = $2 AND state IN ('pending', 'leased')
"""
_LIST_BY_CORRELATION = """
SELECT id, kind, ref_id, state, cause_event_id, created_at, started_at, finished_at, last_error
FROM work
WHERE ($1::text IS NULL OR tenant_id = $1) AND correlation_id = $2
ORDER BY id LIMIT $3
"""
_STATE = "SELECT state FROM work WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"

RETENTION: Final = RetentionRule(
    "work",
    "t.state IN ('done', 'dead', 'cancelled') AND t.finished_at < now() - interval '7 days'",
    order_by="t.finished_at",
)


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
    lane: str | None,
    run_at: datetime | None,
) -> bool:
    """True when the row is new; False when work with this kind and dedupe key exists."""
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
        lane,
        run_at,
    )
    return added == 1


async def claim(
    connection: asyncpg.Connection,
    work_id: str,
    token: str,
    lease_seconds: float,
    *capacities: Capacity,
) -> WorkRow | None:
    """`capacities` limit work that has a lane: beyond one of them, the row is not changed."""
    full_lanes = [lane for capacity in capacities for lane in capacity.full_lanes]
    full_tenants = [tenant for capacity in capacities for tenant in capacity.full_tenants]
    row = await connection.fetchrow(_CLAIM, work_id, token, lease_seconds, full_lanes, full_tenants)
    return WorkRow(**row) if row else None


async def claim_lanes(
    connection: asyncpg.Connection,
    kind: str,
    limit: int,
    capacity: Capacity,
    lease_seconds: float,
    after: str,
) -> Scan:
    """Claims due work of a kind in the lanes that follow the lane `after`."""
    records = await connection.fetch(
        _CLAIM_LANES,
        limit,
        lease_seconds,
        list(capacity.lanes),
        list(capacity.lanes.values()),
        capacity.per_lane,
        capacity.per_tenant,
        kind,
        after,
        lanes.LANES_PER_SCAN,
        list(capacity.tenants),
        list(capacity.tenants.values()),
    )
    rows = [
        WorkRow(**{name: record[name] for name in WorkRow.__struct_fields__})
        for record in records
        if record["id"] is not None
    ]
    scan = records[0]
    is_last = scan["lanes"] < lanes.LANES_PER_SCAN
    return Scan(rows, "" if is_last else scan["last_lane"], scan["candidates"] > len(rows))


async def cancel_many(
    tx: Tx, tenant: str, work_ids: list[str], *, skip_locked: bool = False
) -> list[fast.Row]:
    """Returns id and `was_running` of the rows that were unfinished."""
    sql = _CANCEL_MANY.replace("UPDATE)", "UPDATE SKIP LOCKED)") if skip_locked else _CANCEL_MANY
    return await fast.rows(tx, tenant, sql, work_ids)


async def cancel_lane(tx: Tx, tenant: str, kind: str, lane: str) -> int:
    return await fast.execute(tx, tenant, _CANCEL_LANE, kind, lane)


async def lock(tx: Tx, tenant: str, work_id: str) -> None:
    """Locks the work; call it before locking its delivery, as recording an outcome does."""
    await fast.execute(tx, tenant, _LOCK, work_id)


async def run_now(tx: Tx, tenant: str, work_id: str) -> bool:
    """Makes a pending retry due. False when the work is finished."""
    return await fast.value(tx, tenant, _RUN_NOW, work_id) is not None


async def list_by_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[fast.Row]:
    return await fast.rows(tx, tenant, _LIST_BY_CORRELATION, correlation_id, limit)


async def renew(
    connection: asyncpg.Connection, tokens: list[str], lease_seconds: float
) -> set[str]:
    """Returns the tokens of the leases that are still valid."""
    return {row["lease_token"] for row in await connection.fetch(_RENEW, tokens, lease_seconds)}


async def finish(
    connection: asyncpg.Connection, row: WorkRow, state: str = "done", error: str | None = None
) -> bool:
    return await _update_one(connection, _FINISH, row.id, row.lease_token, state, error)


async def lock_leased(connection: asyncpg.Connection, row: WorkRow) -> bool:
    """Locks the work until the transaction ends. False when the lease is lost."""
    return bool(await connection.fetchval(_LOCK_LEASED, row.id, row.lease_token))


async def retry(
    connection: asyncpg.Connection,
    row: WorkRow,
    *,
    after_seconds: float,
    error: str | None,
    uncounted: bool = False,
) -> bool:
    """Makes the work pending again. `uncounted`: this attempt does not count."""
    return await _update_one(
        connection, _RETRY, row.id, row.lease_token, after_seconds, error, uncounted
    )


async def dispatch_due(
    connection: asyncpg.Connection, kinds: list[str], stale_seconds: float, limit: int
) -> list[Dispatch]:
    """Marks due work and work with an expired lease as dispatched and returns it, unless it was
    dispatched within `stale_seconds`.
    """
    rows = await connection.fetch(_DISPATCH_DUE, kinds, stale_seconds, limit)
    return [Dispatch(**row) for row in rows]


async def undispatch(connection: asyncpg.Connection, work_id: str) -> None:
    await connection.execute(_UNDISPATCH, work_id)


async def cancel(tx: Tx, tenant: str | None, work_id: str) -> bool:
    return await fast.execute(tx, tenant, _CANCEL, work_id) == 1


async def state_of(tx: Tx, tenant: str | None, work_id: str) -> str | None:
    state: str | None = await fast.value(tx, tenant, _STATE, work_id)
    return state


async def _update_one(connection: asyncpg.Connection, sql: str, *args: object) -> bool:
    status: str = await connection.execute(sql, *args)
    return status.endswith(" 1")
