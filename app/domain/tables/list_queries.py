"""SQL of lists of rows.

Exactly one condition or the sort order may use an index, and the statement says which: statistics
mix the rows of all tables, so the planner would often choose the wrong one. A list that is filtered
by one indexed column and sorted by another reads the rows of the filter when there are few, and
else walks along the sort order.
"""

from typing import Any, Final

import msgspec

from app.domain.tables.columns import Column, Table
from app.domain.tables.filters import Condition, Sort
from app.domain.tables.queries import count_sql
from app.domain.tables.row_queries import COLUMNS
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
_RANGE_OPS = frozenset({"gt", "gte", "lt", "lte", "is_null"})
_TOTAL = f"SELECT {count_sql('t')} FROM data_tables t WHERE t.tenant_id = $1 AND t.id = $2"


class Selection(msgspec.Struct, frozen=True):
    """Which rows of a table are listed, and in which order."""

    table: Table
    conditions: list[Condition]
    search: str | None = None
    sort: Sort = Sort()


class _Statement:
    """The parts of a statement on the rows of a selection, with its arguments."""

    def __init__(self, selection: Selection) -> None:
        table, sort = selection.table, selection.sort
        self.where = Where(table.tenant_id, tenant_column="r.tenant_id")
        self.where.add("r.table_id = $n", table.id)
        self.scope = self.where.sql
        self.direction = "DESC" if sort.descending else "ASC"
        self.sort_column = sort.key if isinstance(sort.key, Column) else None
        self.sort_key = key_sql(sort.key) if isinstance(sort.key, Column) else f"r.{sort.key}"
        self.driver = _choose_driver(selection.conditions)
        self.has_conditions = bool(selection.conditions or selection.search)
        self.slow = [
            without_index(condition_sql(self.where, item), item.column)
            for item in selection.conditions
            if item is not self.driver
        ]
        if selection.search:
            self.slow.append(search_sql(self.where, table, selection.search))
        self.fast = self.walked = ""
        # The argument of the driving condition.
        self.operand = f"${len(self.where.args) + 2}"
        if self.driver is not None:
            sql = condition_sql(self.where, self.driver)
            self.fast = by_index(sql, self.driver.column)
            self.walked = without_index(sql, self.driver.column)
        # The condition of statements that are sorted by the driving column.
        self.driven = self.fast
        if self.driver is not None and _is_equality(self.driver):
            bounds = bounds_sql(self.driver, self.operand)
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
    def is_sorted_by_driver(self) -> bool:
        """True when the index of the driving condition returns rows in the sort order."""
        if self.driver is None:
            return False
        if self.driver.column is self.sort_column:
            return self.driver.op != "in"
        return _is_equality(self.driver) and self.sort_key == "r.id"

    def select_driven(self, columns: str) -> str:
        """Selects up to one row more than totals are counted to, by the driving condition."""
        if self.driver is None:
            return (
                f"SELECT {columns} FROM data_rows r WHERE {self.filter()} "
                f"ORDER BY r.id LIMIT {BOUND + 1}"
            )
        key = key_sql(self.driver.column)
        order = f"ORDER BY {key}, r.id LIMIT {BOUND + 1}"
        if self.driver.op != "in":
            return f"SELECT {columns} FROM data_rows r WHERE {self.filter(self.driven)} {order}"
        # One index scan for each value.
        kind = "text" if self.driver.column.is_text else "float8"
        wanted = f"unnest({self.operand}::{kind}[])"
        matched = self.filter(f"{key} = w.operand", self.walked)
        return f"""
        SELECT x.* FROM {wanted} AS w(operand) CROSS JOIN LATERAL (
            SELECT {columns} FROM data_rows r WHERE {matched} {order}
        ) x LIMIT {BOUND + 1}"""


def _is_equality(condition: Condition) -> bool:
    return condition.op == "eq" or condition.operand is True


def _choose_driver(conditions: list[Condition]) -> Condition | None:
    """Returns the condition whose index is used: an equality, if there is one."""
    indexed = [item for item in conditions if item.column.slot is not None]
    equal = [item for item in indexed if _is_equality(item)]
    listed = [item for item in indexed if item.op == "in"]
    ranges = [item for item in indexed if item.op in _RANGE_OPS]
    return next(iter((*equal, *listed, *ranges)), None)


async def list_page(tx: Tx, selection: Selection, page: Page) -> tuple[list[Row], Total]:
    """Returns the rows of one page and the total, which is exact without conditions."""
    statement = _Statement(selection)
    count = f"SELECT count(*) FROM ({statement.select_driven('1 AS found')}) bounded"
    is_exact = not statement.has_conditions
    if is_exact:
        count = _TOTAL
    where, tenant = statement.where, selection.table.tenant_id
    if page.offset + page.per_page > MAX_ROWS:
        return [], await _count_far_page(tx, where, count)
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


async def _fetch_page(tx: Tx, statement: _Statement, count: str, page: Page) -> list[Row]:
    where = statement.where
    number = len(where.args) + 2
    limit = f"LIMIT ${number}::int OFFSET ${number + 1}::int"
    if statement.driver is None or statement.is_sorted_by_driver:
        matched = statement.filter(statement.driven or statement.sorted_only)
        sql = (
            f"SELECT ({count}) AS total, {COLUMNS} FROM data_rows r WHERE {matched} "
            f"ORDER BY {statement.driven_order} {limit}"
        )
    else:
        sql = _two_ways_sql(statement, limit)
    return await fast.rows(tx, where.tenant, sql, *where.args, page.per_page, page.offset)


def _two_ways_sql(statement: _Statement, limit: str) -> str:
    """Only one of the two branches runs: the number of matching rows decides."""
    direction = statement.direction
    few = statement.select_driven(f"r.id, {statement.sort_key} AS key")
    walked = statement.filter(statement.walked, statement.sorted_only)
    return f"""
    WITH few AS MATERIALIZED ({few}),
    counted AS MATERIALIZED (SELECT count(*) AS total FROM few),
    page AS (
        (SELECT id, key FROM few WHERE (SELECT total FROM counted) <= {BOUND}
         ORDER BY key {direction}, id {direction} {limit})
        UNION ALL
        (SELECT r.id, {statement.sort_key} AS key FROM data_rows r
         WHERE {walked} AND (SELECT total FROM counted) > {BOUND}
         ORDER BY {statement.order} {limit})
    )
    SELECT (SELECT total FROM counted) AS total, x.* FROM page p CROSS JOIN LATERAL (
        SELECT {COLUMNS} FROM data_rows r
        WHERE r.id = p.id AND {statement.where.tenant_condition} LIMIT 1
    ) x ORDER BY p.key {direction}, p.id {direction}
    """


# Without a total


async def list_rows(tx: Tx, selection: Selection, limit: int) -> list[Row]:
    """Returns the first rows."""
    return await _fetch_page(tx, _Statement(selection), "NULL::int", Page(1, limit))


async def count(tx: Tx, selection: Selection) -> int:
    """Returns the number of all matching rows."""
    statement = _Statement(selection)
    sql = f"SELECT count(*) FROM data_rows r WHERE {statement.filter(statement.fast)}"
    if not statement.has_conditions:
        sql = _TOTAL
    return int(await fast.value(tx, selection.table.tenant_id, sql, *statement.where.args))


async def list_after(
    tx: Tx, selection: Selection, after: tuple[Any, str] | None, limit: int
) -> list[Row]:
    """Returns the rows after the one with this sort key and id; `key` is the sort key of each."""
    statement = _Statement(selection)
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
    return await fast.rows(tx, selection.table.tenant_id, sql, *statement.where.args)
