"""SQL of lists of rows.

Exactly one filter or the sort order may use an index, and the statement says which: statistics mix
the rows of all tables, so the planner would often choose the wrong one. A list that is filtered by
one indexed column and sorted by another reads the rows of the filter when there are few. Else it
walks along the sort order; when the first rows of that order do not fill the page, as where values
grow with the time of creation, it reads and sorts more rows of the filter.
"""

from typing import Any, Final

from app.kit.errors import Invalid
from app.kit.paging import MAX_ROWS, Page
from db import fast, lists
from db.fast import Row
from db.lists import Total, Where
from db.session import Tx

from .queries import count_sql
from .row_queries import COLUMNS
from .row_statement_queries import (
    BOUND,
    IndexedFilter,
    RowStatement,
    Selection,
    list_indexed_filters,
)
from .scan_limit import limit_scan
from .slot_queries import by_index, condition_sql

# How many rows along the sort order are read before more rows of the filter are.
_FIRST_ROWS: Final = 5000
_MORE_ROWS: Final = 20_000
_MIN_CHOICES = 2
# Values that are too long together are not sent, and so not decoded.
_BOUNDED = """
SELECT id, CASE WHEN bytes <= {max_bytes} THEN x.values END AS values, created_at, updated_at, bytes
FROM (SELECT p.*, sum(octet_length(p.values::text)) OVER () AS bytes FROM ({{}}) p) x
"""
_TOTAL = f"SELECT {count_sql('t')} FROM data_tables t WHERE t.tenant_id = $1 AND t.id = $2"


async def _prepare(tx: Tx, selection: Selection, wanted_rows: int) -> RowStatement:
    """Chooses the filter with the fewest rows. More of them are counted only when the first rows of
    the sort order do not fill the page, so that the choice matters.
    """
    candidates = list_indexed_filters(selection.conditions)
    if len(candidates) < _MIN_CHOICES or (
        candidates[0].is_equality and candidates[0].column.unique
    ):
        return RowStatement(selection, candidates[0] if candidates else None)
    counts = await _count_indexed_filters(tx, selection, candidates, BOUND)
    if min(counts) > BOUND and not await _fills_page(tx, selection, wanted_rows):
        counts = await _count_indexed_filters(tx, selection, candidates, _MORE_ROWS)
    return RowStatement(selection, candidates[counts.index(min(counts))])


async def _fills_page(tx: Tx, selection: Selection, wanted_rows: int) -> bool:
    """True when the first rows of the sort order fill the page."""
    if selection.has_unindexed_sort:
        return False
    statement = RowStatement(selection, None)
    sql = f"""
    SELECT count(*) FROM (
        SELECT 1 FROM (
            SELECT ({" AND ".join(statement.other_conditions)}) AS is_match FROM data_rows r
            WHERE {statement.sort_index_sql} ORDER BY {statement.order} LIMIT {_FIRST_ROWS}
        ) s WHERE is_match LIMIT {int(wanted_rows)}
    ) x
    """
    count = await fast.value(tx, selection.table.tenant_id, sql, *statement.where.args)
    return int(count) == wanted_rows


async def _count_indexed_filters(
    tx: Tx, selection: Selection, candidates: list[IndexedFilter], maximum: int
) -> list[int]:
    """Returns the number of rows of each filter, or one more than a maximum."""
    where = Where(selection.table.tenant_id, tenant_column="r.tenant_id")
    where.add("r.table_id = $n", selection.table.id)
    scope = where.sql
    counts = []
    for number, indexed_filter in enumerate(candidates):
        sql = " AND ".join(
            by_index(condition_sql(where, item), indexed_filter.column)
            for item in indexed_filter.conditions
        )
        counts.append(
            f"(SELECT count(*) FROM (SELECT 1 FROM data_rows r WHERE {scope} AND {sql} "
            f"LIMIT {maximum + 1}) x) AS d{number}"
        )
    row = await fast.row(tx, where.tenant, f"SELECT {', '.join(counts)}", *where.args)
    return [row[f"d{number}"] if row is not None else 0 for number in range(len(candidates))]


async def list_page(tx: Tx, selection: Selection, page: Page) -> tuple[list[Row], Total]:
    """Returns the rows of one page and the total, which is exact without conditions."""
    statement = await _prepare(tx, selection, page.offset + page.per_page)
    count = f"SELECT count(*) FROM ({statement.select_filtered('1 AS one')}) bounded"
    is_exact = not statement.has_conditions
    if is_exact:
        count = _TOTAL
    where, tenant = statement.where, selection.table.tenant_id
    if page.offset + page.per_page > MAX_ROWS:
        async with limit_scan(tx, may_scan=statement.may_scan):
            return [], await _count_far_page(tx, where, count)
    async with limit_scan(tx, may_scan=statement.may_scan):
        rows = await _fetch_page(tx, statement, count, page)
        total = rows[0]["total"] if rows else 0
        if page.offset and not rows:
            total = await fast.value(tx, tenant, count, *where.args)
    if is_exact or total <= BOUND:
        return rows, Total(int(total))
    estimated = f"FROM data_rows r WHERE {statement.filter(statement.indexed_sql)}"
    return rows, await lists.estimate(tx, where, estimated, total)


async def _count_far_page(tx: Tx, where: Where, count: str) -> Total:
    total = int(await fast.value(tx, where.tenant, count, *where.args))
    if total > BOUND:
        reason = "narrow the list by its filters"
        raise Invalid.field("page", f"must be within the first {MAX_ROWS:,} rows; {reason}")
    return Total(total)


async def _fetch_page(
    tx: Tx, statement: RowStatement, count: str, page: Page, outer: str = "{}"
) -> list[Row]:
    """`outer` selects from the statement of the page, whose order its rows keep."""
    where = statement.where
    number = len(where.args) + 2
    limit, offset = f"${number}::int", f"${number + 1}::int"
    if statement.indexed_filter is None or statement.is_sorted_by_filter:
        matched = statement.filter(statement.bounded_sql or statement.sorted_only)
        sql = (
            f"SELECT ({count}) AS total, {COLUMNS} FROM data_rows r WHERE {matched} "
            f"ORDER BY {statement.filter_order} LIMIT {limit} OFFSET {offset}"
        )
    else:
        sql = _staged_sql(statement, limit, offset)
    args = (*where.args, page.per_page, page.offset)
    return await fast.rows(tx, where.tenant, outer.format(sql), *args)


def _staged_sql(statement: RowStatement, limit: str, offset: str) -> str:
    """Each stage runs only when those before it have not filled the page: few rows of the filter,
    the first rows of the sort order, more rows of the filter, all rows along the sort order.
    """
    direction, page = statement.direction, f"LIMIT {limit} OFFSET {offset}"
    order = f"ORDER BY key {direction}, id {direction} {page}"
    columns = f"r.id, {statement.sort_key} AS key"
    matched = statement.filter(statement.unindexed_sql, statement.sorted_only)
    passed = " AND ".join((statement.unindexed_sql, *statement.other_conditions))
    has_more = f"(SELECT total FROM counted) > {BOUND}"
    has_most = f"(SELECT total FROM counted_more) > {_MORE_ROWS}"
    is_short = f"(SELECT count(*) FROM first_sorted) < {limit}"
    more = statement.select_filtered(columns, _MORE_ROWS, has_more, is_short)
    return f"""
    WITH few_matches AS MATERIALIZED ({statement.select_filtered(columns)}),
    counted AS MATERIALIZED (SELECT count(*) AS total FROM few_matches),
    first_sorted AS MATERIALIZED (
        SELECT id, key FROM (
            SELECT {columns}, ({passed}) AS is_match FROM data_rows r
            WHERE {statement.sort_index_sql} AND {has_more}
            ORDER BY {statement.order} LIMIT greatest({_FIRST_ROWS}, 4 * ({limit} + {offset}))
        ) s WHERE is_match {order}
    ),
    more_matches AS MATERIALIZED ({more}),
    counted_more AS MATERIALIZED (SELECT count(*) AS total FROM more_matches),
    page AS (
        (SELECT id, key FROM few_matches WHERE NOT {has_more} {order})
        UNION ALL
        (SELECT id, key FROM first_sorted WHERE NOT {is_short})
        UNION ALL
        (SELECT id, key FROM more_matches WHERE NOT {has_most} {order})
        UNION ALL
        (SELECT {columns} FROM data_rows r
         WHERE {matched} AND {has_most} ORDER BY {statement.order} {page})
    )
    SELECT (SELECT total FROM counted) AS total, x.* FROM page p CROSS JOIN LATERAL (
        SELECT {COLUMNS} FROM data_rows r
        WHERE r.id = p.id AND {statement.where.tenant_condition} LIMIT 1
    ) x ORDER BY p.key {direction}, p.id {direction}
    """


# Without a total


async def list_rows(tx: Tx, selection: Selection, limit: int, max_bytes: int) -> list[Row] | None:
    """Returns the first rows; None when their values are longer than `max_bytes` as JSON."""
    bounded = _BOUNDED.format(max_bytes=int(max_bytes))
    rows = await _list_first(tx, selection, limit, bounded)
    return None if rows and rows[0]["bytes"] > max_bytes else rows


async def list_ids(tx: Tx, selection: Selection, limit: int) -> list[str]:
    """Returns the ids of the first rows."""
    rows = await _list_first(tx, selection, limit, "SELECT p.id FROM ({}) p")
    return [row["id"] for row in rows]


async def _list_first(tx: Tx, selection: Selection, limit: int, outer: str) -> list[Row]:
    statement = await _prepare(tx, selection, limit)
    async with limit_scan(tx, may_scan=statement.may_scan):
        return await _fetch_page(tx, statement, "NULL::int", Page(1, limit), outer)


async def list_after(
    tx: Tx, selection: Selection, after: tuple[Any, str] | None, limit: int
) -> list[Row]:
    """Returns the rows after the one with this sort key and id; `key` is the sort key of each.
    Raises Invalid when they take too long.
    """
    statements = [
        RowStatement(selection, item) for item in list_indexed_filters(selection.conditions)
    ]
    sorted_ones = [item for item in statements if item.is_sorted_by_filter]
    statement = next(iter((*sorted_ones, *statements)), RowStatement(selection, None))
    filter_sql = statement.indexed_sql if statement.is_sorted_by_filter else statement.unindexed_sql
    conditions = [filter_sql, statement.sorted_only]
    if after is not None:
        sign = "<" if statement.direction == "DESC" else ">"
        key, row_id = statement.where.bind(after[0]), statement.where.bind(after[1])
        conditions.append(f"({statement.sort_key}, r.id) {sign} ({key}, {row_id})")
    matched, maximum = statement.filter(*conditions), statement.where.bind(limit)
    sql = (
        f"SELECT {COLUMNS}, {statement.sort_key} AS key FROM data_rows r WHERE {matched} "
        f"ORDER BY {statement.order} LIMIT {maximum}"
    )
    async with limit_scan(tx, may_scan=statement.may_scan):
        return await fast.rows(tx, selection.table.tenant_id, sql, *statement.where.args)
