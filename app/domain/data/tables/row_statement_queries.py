"""The parts of statements that list rows, by an index that the statement chooses."""

from typing import Final

import msgspec

from db.lists import Where

from .columns import Column, Table
from .filters import Condition, Sort
from .slot_queries import bounds_sql, by_index, condition_sql, key_sql, search_sql, without_index

# Lower than that of other lists: the rows of a filter are anywhere in a large table.
BOUND: Final = 1000
_RANGE_OPS = frozenset({"gt", "gte", "lt", "lte", "is_null"})


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
        return bool(list_indexed_filters(self.conditions))


class IndexedFilter(msgspec.Struct, frozen=True):
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
        """Orders filters by how few rows they are likely to have."""
        is_unique = self.is_equality and self.column.unique
        return (not is_unique, not self.is_equality, not self.is_list, self.column.key)


class RowStatement:
    """The parts of a statement on the rows of a selection, with its arguments."""

    def __init__(self, selection: Selection, indexed_filter: IndexedFilter | None) -> None:
        table, sort = selection.table, selection.sort
        self.where = Where(table.tenant_id, tenant_column="r.tenant_id")
        self.where.add("r.table_id = $n", table.id)
        self.scope = self.where.sql
        self.direction = "DESC" if sort.descending else "ASC"
        self.sort_column = sort.key if isinstance(sort.key, Column) else None
        self.sort_key = key_sql(sort.key) if isinstance(sort.key, Column) else f"r.{sort.key}"
        self.indexed_filter = indexed_filter
        filter_conditions = indexed_filter.conditions if indexed_filter is not None else []
        self.has_conditions = bool(selection.conditions or selection.search)
        self.other_conditions = [
            without_index(condition_sql(self.where, item), item.column)
            for item in selection.conditions
            if not any(item is other for other in filter_conditions)
        ]
        if selection.search:
            self.other_conditions.append(search_sql(self.where, table, selection.search))
        self.indexed_sql = self.unindexed_sql = ""
        # The first argument of the indexed filter.
        self.operand = f"${len(self.where.args) + 2}"
        if indexed_filter is not None:
            sql = " AND ".join(condition_sql(self.where, item) for item in filter_conditions)
            self.indexed_sql = by_index(sql, indexed_filter.column)
            self.unindexed_sql = without_index(sql, indexed_filter.column)
        # The condition of statements that are sorted by the column of the filter.
        self.bounded_sql = self.indexed_sql
        if indexed_filter is not None and indexed_filter.is_equality:
            bounds = bounds_sql(filter_conditions[0], self.operand)
            self.bounded_sql = f"{bounds} AND {self.unindexed_sql}"

    def filter(self, *conditions: str) -> str:
        return " AND ".join(
            condition
            for condition in (self.scope, *conditions, *self.other_conditions)
            if condition
        )

    @property
    def order(self) -> str:
        if self.sort_key == "r.id":
            return f"r.id {self.direction}"
        return f"{self.sort_key} {self.direction}, r.id {self.direction}"

    @property
    def filter_order(self) -> str:
        """The sort order, for rows that the indexed filter returns in it."""
        if self.indexed_filter is None or self.sort_key != "r.id":
            return self.order
        return f"{key_sql(self.indexed_filter.column)} {self.direction}, r.id {self.direction}"

    @property
    def sorted_only(self) -> str:
        """Admits the partial index of the sort order; holds for every row."""
        is_indexed = self.sort_column is not None and self.sort_column.slot is not None
        return f"{self.sort_key} IS NOT NULL" if is_indexed else ""

    @property
    def sort_index_sql(self) -> str:
        """Selects all rows by the index of the sort order; none when it has no index."""
        is_unindexed = self.sort_column is not None and self.sort_column.slot is None
        parts = (self.scope, self.sorted_only, "false" if is_unindexed else "")
        return " AND ".join(part for part in parts if part)

    @property
    def is_sorted_by_filter(self) -> bool:
        """True when the index of the indexed filter returns rows in the sort order."""
        if self.indexed_filter is None:
            return False
        if self.indexed_filter.column is self.sort_column:
            return not self.indexed_filter.is_list
        return self.indexed_filter.is_equality and self.sort_key == "r.id"

    @property
    def may_scan(self) -> bool:
        """True when the statement may read many rows that are not part of its result."""
        is_unindexed = self.sort_column is not None and self.sort_column.slot is None
        is_ordered = self.indexed_filter is None or self.is_sorted_by_filter
        return bool(self.other_conditions) or is_unindexed or not is_ordered

    def select_filtered(self, columns: str, maximum: int = BOUND, *conditions: str) -> str:
        """Selects up to one row more than a maximum, by the indexed filter."""
        if self.indexed_filter is None:
            return (
                f"SELECT {columns} FROM data_rows r WHERE {self.filter(*conditions)} "
                f"ORDER BY r.id LIMIT {maximum + 1}"
            )
        key = key_sql(self.indexed_filter.column)
        order = f"ORDER BY {key}, r.id LIMIT {maximum + 1}"
        if not self.indexed_filter.is_list:
            matched = self.filter(self.bounded_sql, *conditions)
            return f"SELECT {columns} FROM data_rows r WHERE {matched} {order}"
        # One index scan for each value.
        kind = "text" if self.indexed_filter.column.is_text else "float8"
        wanted = f"unnest({self.operand}::{kind}[])"
        matched = self.filter(f"{key} = w.operand", self.unindexed_sql, *conditions)
        return f"""
        SELECT x.* FROM {wanted} AS w(operand) CROSS JOIN LATERAL (
            SELECT {columns} FROM data_rows r WHERE {matched} {order}
        ) x LIMIT {maximum + 1}"""


def _is_equality(condition: Condition) -> bool:
    return condition.op == "eq" or condition.operand is True


def list_indexed_filters(conditions: list[Condition]) -> list[IndexedFilter]:
    """Returns all conditions that can use an index, in an order that does not depend on theirs.
    The bounds of one column belong together.
    """
    ranges: dict[str, list[Condition]] = {}
    candidates: list[IndexedFilter] = []
    for item in conditions:
        if item.column.slot is None:
            continue
        if _is_equality(item) or item.op == "in":
            candidates.append(IndexedFilter([item]))
        elif item.op in _RANGE_OPS:
            ranges.setdefault(item.column.key, []).append(item)
    return sorted((*candidates, *map(IndexedFilter, ranges.values())), key=lambda item: item.rank)
