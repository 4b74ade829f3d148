"""SQL of lists of rows.

Exactly one filter or the sort order may use an index, and the statement says which: statistics mix
the rows of all tables, so the planner would often choose the wrong one. A list that is filtered by
one indexed column and sorted by another reads the rows of the filter when there are few. Else it
walks along the sort order; when the first rows of that order do not fill the page, as where values
grow with the time of creation, it reads and sorts more rows of the filter.
"""

from typing import Any, Final

import msgspec

from app.domain.tables.columns import Column, Table
from app.domain.tables.filters import Condition, Sort
from app.domain.tables.queries import count_sql
from app.domain.tables.row_queries import COLUMNS
from app.domain.tables.scan_limit import limit_scan
from app.domain.tables.slot_queries import (
    bounds_sql,
    by_index,
    condition_sql,
    key_sql,
    search_sql,
    without_index,
)
from app.kit.errors import Invalid
from app.kit.paging import MAX_ROWS, Page
from db import fast, lists
from db.fast import Row
from db.lists import Total, Where
from db.session import Tx

# Lower than that of other lists: the rows of a filter are anywhere in a large table.
BOUND: Final = 1000
# How many rows along the sort order are read before more rows of the filter are.
_NEAR_ROWS: Final = 5000
_MANY_ROWS: Final = 20_000
_RANGE_OPS = frozenset({"gt", "gte", "lt", "lte", "is_null"})
_MIN_CHOICES = 2
# Values that are too long together are not sent, and so not decoded.
_BOUNDED = """
SELECT id, CASE WHEN bytes <= {max_bytes} THEN x.values END AS values, created_at, updated_at, bytes
FROM (SELECT p.*, sum(octet_length(p.values::text)) OVER () AS bytes FROM ({{}}) p) x
"""
_TOTAL = f"SELECT {count_sql('t')} FROM data_tables t WHERE t.tenant_id = $1 AND t.id = $2"


class Selection(msgspec.Struct, frozen=True):
    """Which rows of a table are listed, and in which order."""

    table: Table
    conditions: list[Condition]
    search: str | None = None
    sort: Sort = Sort()

    @property
    def has_unindexed_sort(self) -> bool:
        return isinstance(self.sort.key, Column) and self.sort.key.slot is None

    @property
    def has_indexed_filter(self) -> bool:
        return bool(_list_drivers(self.conditions))


class _Driver(msgspec.Struct, frozen=True):
    """Conditions on one column that use its index: an equality, a list of values, or the bounds of
    a range.
    """

    conditions: list[Condition]

    @property
    def column(self) -> Column:
        return self.conditions[0].column

    @property
    def is_equality(self) -> bool:
        return _is_equality(self.conditions[0])

    @property
    def is_list(self) -> bool:
        return self.conditions[0].op == "in"

    @property
    def rank(self) -> tuple[bool, bool, bool, str]:
        """Orders drivers by how few rows they are likely to have."""
        is_unique = self.is_equality and self.column.unique
        return (not is_unique, not self.is_equality, not self.is_list, self.column.key)


class _Statement:
    """The parts of a statement on the rows of a selection, with its arguments."""

    def __init__(self, selection: Selection, driver: _Driver | None) -> None:
        table, sort = selection.table, selection.sort
        self.where = Where(table.tenant_id, tenant_column="r.tenant_id")
        self.where.add("r.table_id = $n", table.id)
        self.scope = self.where.sql
        self.direction = "DESC" if sort.descending else "ASC"
        self.sort_column = sort.key if isinstance(sort.key, Column) else None
        self.sort_key = key_sql(sort.key) if isinstance(sort.key, Column) else f"r.{sort.key}"
        self.driver = driver
        driving = driver.conditions if driver is not None else []
        self.has_conditions = bool(selection.conditions or selection.search)
        self.slow = [
            without_index(condition_sql(self.where, item), item.column)
            for item in selection.conditions
            if not any(item is other for other in driving)
        ]
        if selection.search:
            self.slow.append(search_sql(self.where, table, selection.search))
        self.fast = self.walked = ""
        # The argument of the driving condition.
        self.operand = f"${len(self.where.args) + 2}"
        if driver is not None:
            sql = " AND ".join(condition_sql(self.where, item) for item in driving)
            self.fast = by_index(sql, driver.column)
            self.walked = without_index(sql, driver.column)
        # The condition of statements that are sorted by the driving column.
        self.driven = self.fast
        if driver is not None and driver.is_equality:
            bounds = bounds_sql(driving[0], self.operand)
            self.driven = f"{bounds} AND {self.walked}"

    def filter(self, *conditions: str) -> str:
        return " AND ".join(
            condition for condition in (self.scope, *conditions, *self.slow) if condition
        )

    @property
    def order(self) -> str:
        if self.sort_key == "r.id":
            return f"r.id {self.direction}"
        return f"{self.sort_key} {self.direction}, r.id {self.direction}"

    @property
    def driven_order(self) -> str:
        """The sort order, for rows that the driving condition returns in it."""
        if self.driver is None or self.sort_key != "r.id":
            return self.order
        return f"{key_sql(self.driver.column)} {self.direction}, r.id {self.direction}"

    @property
    def sorted_only(self) -> str:
        """Admits the partial index of the sort order; holds for every row."""
        is_indexed = self.sort_column is not None and self.sort_column.slot is not None
        return f"{self.sort_key} IS NOT NULL" if is_indexed else ""

    @property
    def along(self) -> str:
        """Selects all rows by the index of the sort order; none when it has no index."""
        is_unindexed = self.sort_column is not None and self.sort_column.slot is None
        parts = (self.scope, self.sorted_only, "false" if is_unindexed else "")
        return " AND ".join(part for part in parts if part)

    @property
    def is_sorted_by_driver(self) -> bool:
        """True when the index of the driving condition returns rows in the sort order."""
        if self.driver is None:
            return False
        if self.driver.column is self.sort_column:
            return not self.driver.is_list
        return self.driver.is_equality and self.sort_key == "r.id"

    @property
    def may_scan(self) -> bool:
        """True when the statement may read many rows that are not part of its result."""
        is_unindexed = self.sort_column is not None and self.sort_column.slot is None
        is_ordered = self.driver is None or self.is_sorted_by_driver
        return bool(self.slow) or is_unindexed or not is_ordered

    def select_driven(self, columns: str, maximum: int = BOUND, *conditions: str) -> str:
        """Selects up to one row more than a maximum, by the driving condition."""
        if self.driver is None:
            return (
                f"SELECT {columns} FROM data_rows r WHERE {self.filter(*conditions)} "
                f"ORDER BY r.id LIMIT {maximum + 1}"
            )
        key = key_sql(self.driver.column)
        order = f"ORDER BY {key}, r.id LIMIT {maximum + 1}"
        if not self.driver.is_list:
            matched = self.filter(self.driven, *conditions)
            return f"SELECT {columns} FROM data_rows r WHERE {matched} {order}"
        # One index scan for each value.
        kind = "text" if self.driver.column.is_text else "float8"
        wanted = f"unnest({self.operand}::{kind}[])"
        matched = self.filter(f"{key} = w.operand", self.walked, *conditions)
        return f"""
        SELECT x.* FROM {wanted} AS w(operand) CROSS JOIN LATERAL (
            SELECT {columns} FROM data_rows r WHERE {matched} {order}
        ) x LIMIT {maximum + 1}"""


def _is_equality(condition: Condition) -> bool:
    return condition.op == "eq" or condition.operand is True


def _list_drivers(conditions: list[Condition]) -> list[_Driver]:
    """Returns all conditions that can use an index, in an order that does not depend on theirs.
    The bounds of one column belong together.
    """
    ranges: dict[str, list[Condition]] = {}
    drivers: list[_Driver] = []
    for item in conditions:
        if item.column.slot is None:
            continue
        if _is_equality(item) or item.op == "in":
            drivers.append(_Driver([item]))
        elif item.op in _RANGE_OPS:
            ranges.setdefault(item.column.key, []).append(item)
    return sorted((*drivers, *map(_Driver, ranges.values())), key=lambda item: item.rank)


async def _prepare(tx: Tx, selection: Selection, wanted_rows: int) -> _Statement:
    """Chooses the driver with the fewest rows. More of them are counted only when the first rows of
    the sort order do not fill the page, so that the choice matters.
    """
    drivers = _list_drivers(selection.conditions)
    if len(drivers) < _MIN_CHOICES or (drivers[0].is_equality and drivers[0].column.unique):
        return _Statement(selection, drivers[0] if drivers else None)
    counts = await _count_drivers(tx, selection, drivers, BOUND)
    if min(counts) > BOUND and not await _is_near(tx, selection, wanted_rows):
        counts = await _count_drivers(tx, selection, drivers, _MANY_ROWS)
    return _Statement(selection, drivers[counts.index(min(counts))])


async def _is_near(tx: Tx, selection: Selection, wanted_rows: int) -> bool:
    """True when the first rows of the sort order fill the page."""
    if selection.has_unindexed_sort:
        return False
    statement = _Statement(selection, None)
    sql = f"""
    SELECT count(*) FROM (
        SELECT 1 FROM (
            SELECT ({" AND ".join(statement.slow)}) AS is_match FROM data_rows r
            WHERE {statement.along} ORDER BY {statement.order} LIMIT {_NEAR_ROWS}
        ) s WHERE is_match LIMIT {int(wanted_rows)}
    ) x
    """
    count = await fast.value(tx, selection.table.tenant_id, sql, *statement.where.args)
    return int(count) == wanted_rows


async def _count_drivers(
    tx: Tx, selection: Selection, drivers: list[_Driver], maximum: int
) -> list[int]:
    """Returns the number of rows of each driver, or one more than a maximum."""
    where = Where(selection.table.tenant_id, tenant_column="r.tenant_id")
    where.add("r.table_id = $n", selection.table.id)
    scope = where.sql
    counts = []
    for number, driver in enumerate(drivers):
        sql = " AND ".join(
            by_index(condition_sql(where, item), driver.column) for item in driver.conditions
        )
        counts.append(
            f"(SELECT count(*) FROM (SELECT 1 FROM data_rows r WHERE {scope} AND {sql} "
            f"LIMIT {maximum + 1}) x) AS d{number}"
        )
    row = await fast.row(tx, where.tenant, f"SELECT {', '.join(counts)}", *where.args)
    return [row[f"d{number}"] if row is not None else 0 for number in range(len(drivers))]


async def list_page(tx: Tx, selection: Selection, page: Page) -> tuple[list[Row], Total]:
    """Returns the rows of one page and the total, which is exact without conditions."""
    statement = await _prepare(tx, selection, page.offset + page.per_page)
    count = f"SELECT count(*) FROM ({statement.select_driven('1 AS one')}) bounded"
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
    estimated = f"FROM data_rows r WHERE {statement.filter(statement.fast)}"
    return rows, await lists.estimate(tx, where, estimated, total)


async def _count_far_page(tx: Tx, where: Where, count: str) -> Total:
    total = int(await fast.value(tx, where.tenant, count, *where.args))
    if total > BOUND:
        reason = "narrow the list by its filters"
        raise Invalid.field("page", f"must be within the first {MAX_ROWS:,} rows; {reason}")
    return Total(total)


async def _fetch_page(
    tx: Tx, statement: _Statement, count: str, page: Page, outer: str = "{}"
) -> list[Row]:
    """`outer` selects from the statement of the page, whose order its rows keep."""
    where = statement.where
    number = len(where.args) + 2
    limit, offset = f"${number}::int", f"${number + 1}::int"
    if statement.driver is None or statement.is_sorted_by_driver:
        matched = statement.filter(statement.driven or statement.sorted_only)
        sql = (
            f"SELECT ({count}) AS total, {COLUMNS} FROM data_rows r WHERE {matched} "
            f"ORDER BY {statement.driven_order} LIMIT {limit} OFFSET {offset}"
        )
    else:
        sql = _staged_sql(statement, limit, offset)
    args = (*where.args, page.per_page, page.offset)
    return await fast.rows(tx, where.tenant, outer.format(sql), *args)


def _staged_sql(statement: _Statement, limit: str, offset: str) -> str:
    """Each stage runs only when those before it have not filled the page: few rows of the filter,
    the first rows of the sort order, more rows of the filter, all rows along the sort order.
    """
    direction, page = statement.direction, f"LIMIT {limit} OFFSET {offset}"
    order = f"ORDER BY key {direction}, id {direction} {page}"
    columns = f"r.id, {statement.sort_key} AS key"
    matched = statement.filter(statement.walked, statement.sorted_only)
    passed = " AND ".join((statement.walked, *statement.slow))
    are_many = f"(SELECT total FROM counted) > {BOUND}"
    is_short = f"(SELECT count(*) FROM near) < {limit}"
    many = statement.select_driven(columns, _MANY_ROWS, are_many, is_short)
    return f"""
    WITH few AS MATERIALIZED ({statement.select_driven(columns)}),
    counted AS MATERIALIZED (SELECT count(*) AS total FROM few),
    near AS MATERIALIZED (
        SELECT id, key FROM (
            SELECT {columns}, ({passed}) AS is_match FROM data_rows r
            WHERE {statement.along} AND {are_many}
            ORDER BY {statement.order} LIMIT greatest({_NEAR_ROWS}, 4 * ({limit} + {offset}))
        ) s WHERE is_match {order}
    ),
    many AS MATERIALIZED ({many}),
    counted_many AS MATERIALIZED (SELECT count(*) AS total FROM many),
    page AS (
        (SELECT id, key FROM few WHERE NOT {are_many} {order})
        UNION ALL
        (SELECT id, key FROM near WHERE NOT {is_short})
        UNION ALL
        (SELECT id, key FROM many WHERE (SELECT total FROM counted_many) <= {_MANY_ROWS} {order})
        UNION ALL
        (SELECT {columns} FROM data_rows r
         WHERE {matched} AND (SELECT total FROM counted_many) > {_MANY_ROWS}
         ORDER BY {statement.order} {page})
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
    statements = [_Statement(selection, item) for item in _list_drivers(selection.conditions)]
    sorted_ones = [item for item in statements if item.is_sorted_by_driver]
    statement = next(iter((*sorted_ones, *statements)), _Statement(selection, None))
    driven = statement.fast if statement.is_sorted_by_driver else statement.walked
    conditions = [driven, statement.sorted_only]
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
