"""The statements that all kinds of endpoints have in common."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from app.kit import paging
from app.kit.paging import Page
from db import ledger
from db.fast import Row
from db.lists import BOUND, Total, Where
from db.session import Tx

from .attempts import Status

_STATUSES = ("pending", "delivered", "failed")


class OutboxSql(NamedTuple):
    """The statements of one kind of endpoint. `record_one` waits for a locked row, which
    `record_many` leaves out.
    """

    record_many: str
    record_one: str
    fail: str
    spans: str

    @classmethod
    def build(cls, columns: str, expressions: str, *, fail: str, spans: str) -> "OutboxSql":
        """`columns` are those of an outcome besides the common ones. `expressions` write its rows,
        from the outcomes `o` and the work `recorded`. `fail` takes the tenant, the delivery and the
        error; `spans` the tenant, the correlation id and the limit.
        """
        many, one = (
            f"""
WITH o AS (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS o(
        work_id text, lease_token text, state text, after float8, error text, tenant_id text,
        delivery_id text, endpoint_id text, number int, status text, ms int, {columns})
), {ledger.outcomes_sql("o", skip_locked=skip_locked)}, {expressions}
SELECT id FROM recorded
"""
            for skip_locked in (True, False)
        )
        return cls(many, one, fail, spans)


class LogFilter(msgspec.Struct, frozen=True):
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None


async def list_newest(
    tx: Tx, columns: str, table: str, where: Where, filters: LogFilter, page: Page, joins: str = ""
) -> tuple[list[Row], Total]:
    """Returns rows of a log, which is called `l` in `columns` and `joins`. Reads the newest rows of
    each status and takes the newest of these, so that one index serves every combination of
    filters.
    """
    where.between("created_at", filters.since, filters.until)
    statuses = where.bind([filters.status] if filters.status else list(_STATUSES))
    # Also where rows are only counted: without the order, a plan may read the whole table.
    of_status = (
        f"FROM {table} WHERE {where.sql} AND status = s.status ORDER BY created_at DESC, id DESC"
    )
    each_status = f"FROM unnest({statuses}::text[]) AS s(status) CROSS JOIN LATERAL"
    return await paging.fetch_page(
        tx,
        where,
        f"""
        {columns} FROM (
            SELECT e.id AS listed_id {each_status} (
                SELECT id, created_at {of_status} LIMIT $limit::bigint + $offset::bigint
            ) e ORDER BY e.created_at DESC, e.id DESC LIMIT $limit OFFSET $offset
        ) p
        JOIN {table} l ON l.id = p.listed_id AND ($1::text IS NULL OR l.tenant_id = $1)
        {joins} ORDER BY l.created_at DESC, l.id DESC
        """,
        page,
        counted=f"{each_status} (SELECT 1 {of_status} LIMIT {BOUND + 1}) e",
        estimated=f"FROM {table} WHERE {where.sql_without_tenant} AND status = ANY({statuses})",
    )
