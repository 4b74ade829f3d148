"""SQL of work that is not done. Rows without a tenant belong to the instance."""

from datetime import datetime
from typing import Any, Final

from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import Row
from db.ledger import WorkRow
from db.lists import Total, Where
from db.session import Tx

STATES: Final = {"dead": "dead", "waiting": "pending", "running": "leased"}
_STUCK_SECONDS = 60
_COLUMNS: Final = f"""
id, tenant_id, kind, state, ref_id AS record_id, last_error AS error, attempt, max_attempts,
correlation_id, created_at, run_at, started_at, finished_at, lease_until,
CASE state WHEN 'pending' THEN run_at < now() - interval '{_STUCK_SECONDS} seconds'
           WHEN 'leased' THEN lease_until < now() ELSE false END AS is_stuck"""
_NOT_DONE: Final = "state IN ('dead', 'pending', 'leased')"
_OF_TENANT: Final = "($1::text IS NULL OR tenant_id = $1)"

_FIND = f"SELECT {_COLUMNS} FROM work WHERE {_OF_TENANT} AND id = $2 AND {_NOT_DONE}"
_COUNT = f"""
SELECT kind,
       count(*) FILTER (WHERE state = 'pending' AND run_at <= now()) AS waiting,
       count(*) FILTER (WHERE state = 'pending' AND run_at > now()) AS scheduled,
       count(*) FILTER (WHERE state = 'leased') AS running,
       count(*) FILTER (WHERE state = 'dead') AS dead,
       min(run_at) FILTER (WHERE state = 'pending' AND run_at <= now()) AS oldest_waiting_at,
       coalesce(extract(epoch FROM now() - min(run_at)
           FILTER (WHERE state = 'pending' AND run_at <= now())), 0)::float
           AS oldest_waiting_seconds
FROM work WHERE {_OF_TENANT} AND {_NOT_DONE} GROUP BY kind
"""
_ROW: Final = """
id, tenant_id, kind, ref_id, attempt, max_attempts, coalesce(lease_token, '') AS lease_token,
correlation_id, cause_event_id, lane"""
_LOCK_ONE = f"SELECT {_ROW}, state FROM work WHERE {_OF_TENANT} AND id = $2 FOR UPDATE"


class Filter:
    """Which work is listed."""

    def __init__(
        self,
        status: str,
        kinds: list[str] | None = None,
        record_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        self.state = STATES[status]
        self.kinds = kinds
        self.record_id = record_id
        self.since = since
        self.until = until

    def where(self, tenant: str | None) -> Where:
        # The state is a constant, as it is in the conditions of indexes.
        where = Where(tenant, f"state = '{self.state}'")
        if self.kinds is not None:
            where.add("kind = ANY($n::text[])", self.kinds)
        where.equal("ref_id", self.record_id)
        where.between("created_at", self.since, self.until)
        return where


async def list_page(tx: Tx, filters: Filter, page: Page) -> tuple[list[Row], Total]:
    where = filters.where(fast.tenant_of(tx))
    return await paging.fetch_rows(tx, _COLUMNS, "work", where, "created_at DESC, id DESC", page)


async def find(tx: Tx, work_id: str) -> Row | None:
    return await fast.row(tx, fast.tenant_of(tx), _FIND, work_id)


async def count_by_kind(tx: Tx) -> list[Row]:
    return await fast.rows(tx, fast.tenant_of(tx), _COUNT)


async def lock(tx: Tx, work_id: str) -> tuple[WorkRow, str] | None:
    """Returns the work and its state."""
    row = await fast.row(tx, fast.tenant_of(tx), _LOCK_ONE, work_id)
    return None if row is None else (_build(row), row["state"])


async def lock_many(tx: Tx, filters: Filter, ids: list[str] | None, limit: int) -> list[WorkRow]:
    """Returns the oldest first; work that another request is retrying is left out."""
    where = filters.where(fast.tenant_of(tx))
    if ids is not None:
        where.add("id = ANY($n::text[])", ids)
    sql = f"""
SELECT {_ROW} FROM work WHERE {where.sql}
ORDER BY created_at, id LIMIT {limit} FOR UPDATE SKIP LOCKED
"""
    return [_build(row) for row in await fast.rows(tx, where.tenant, sql, *where.args)]


def _build(row: Any) -> WorkRow:
    return WorkRow(**{name: row[name] for name in WorkRow.__struct_fields__})
