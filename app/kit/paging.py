"""Lists: pages in the API's two shapes, and the sort orders that a list has."""

from typing import Any, Final, Generic, TypeVar

import msgspec
from sqlalchemy.orm import InstrumentedAttribute

from app.kit.errors import Invalid
from db import lists
from db.fast import Row
from db.lists import BOUND, Total, Where
from db.session import Tx
from db.views import View

# Postgres reads all rows before a page.
MAX_ROWS: Final = 100_000
T = TypeVar("T")
Item = TypeVar("Item", bound=msgspec.Struct)


class Page(msgspec.Struct, frozen=True):
    page: int = 1
    per_page: int = 20

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


class Pagination(msgspec.Struct, omit_defaults=True):
    """Beyond 5,000 rows `total` is an estimate, and `estimated` is true."""

    page: int
    per_page: int
    total: int
    total_pages: int
    estimated: bool = False


class Paged(msgspec.Struct, Generic[T]):
    """The shape of most lists."""

    data: list[T]
    pagination: Pagination


def paged(data: list[T], total: Total, page: Page) -> Paged[T]:
    pages = -(-total.count // page.per_page)
    pagination = Pagination(page.page, page.per_page, total.count, pages, not total.is_exact)
    return Paged(data, pagination)


class Flat(msgspec.Struct, Generic[T], omit_defaults=True):
    """The other shape: the totals beside the list. Beyond 5,000 rows `total` is an estimate, and
    `estimated` is true.
    """

    data: list[T]
    total: int
    page: int
    per_page: int
    estimated: bool = False


def flat(data: list[T], total: Total, page: Page) -> Flat[T]:
    return Flat(data, total.count, page.page, page.per_page, not total.is_exact)


class Keyset(msgspec.Struct, Generic[T]):
    """A page of a list without totals. `next_cursor` reads the page after it; it is null on the
    last page.
    """

    data: list[T]
    next_cursor: str | None


class SortOrders:
    """The values of a `sort` parameter, with or without a leading -, as ORDER BY clauses. The id
    breaks ties, so pages never overlap.
    """

    def __init__(
        self,
        default: str,
        tie: InstrumentedAttribute[Any],
        **columns: InstrumentedAttribute[Any],
    ) -> None:
        self._default = default
        self._names = ", ".join(sorted(columns))
        self._clauses = {}
        for name, column in columns.items():
            self._clauses[name] = _order_by(column, tie, "ASC")
            self._clauses[f"-{name}"] = _order_by(column, tie, "DESC")

    def sql(self, sort: str | None) -> str:
        clause = self._clauses.get(sort or self._default)
        if clause is None:
            raise Invalid.field("sort", f"must be one of {self._names}, with or without -")
        return clause


def _order_by(
    column: InstrumentedAttribute[Any], tie: InstrumentedAttribute[Any], direction: str
) -> str:
    # NULLs come last in both directions; other columns keep the form that an index serves.
    nulls = " NULLS LAST" if column.property.columns[0].nullable else ""
    return f"{_name(column)} {direction}{nulls}, {_name(tie)} {direction}"


def _name(column: InstrumentedAttribute[Any]) -> str:
    """Returns the name in SQL, with the table."""
    return str(column.property.columns[0])


async def fetch(
    tx: Tx,
    view: View[Item],
    table: str,
    where: Where,
    order: str,
    page: Page,
    *,
    tenant_is_implied: bool = False,
) -> tuple[list[Item], Total]:
    """Returns one page of views and the total, with one statement."""
    rows, total = await fetch_rows(
        tx, view.columns, table, where, order, page, tenant_is_implied=tenant_is_implied
    )
    return [view.build(row) for row in rows], total


async def fetch_rows(
    tx: Tx,
    columns: str,
    table: str,
    where: Where,
    order: str,
    page: Page,
    *,
    tenant_is_implied: bool = False,
) -> tuple[list[Row], Total]:
    """Returns one page of rows and the total. With `tenant_is_implied`, another condition selects
    rows of one tenant, so that the estimate leaves out the tenant's.
    """
    counted = f"FROM {table} WHERE {where.sql}"
    return await fetch_page(
        tx,
        where,
        f"{columns} {counted} ORDER BY {order} LIMIT $limit OFFSET $offset",
        page,
        counted=counted,
        estimated=f"FROM {table} WHERE "
        + (where.sql_without_tenant if tenant_is_implied else where.estimated_sql),
    )


async def fetch_page(
    tx: Tx, where: Where, sql: str, page: Page, *, counted: str, estimated: str
) -> tuple[list[Row], Total]:
    """Like `lists.fetch_page`, but refuses pages that are far beyond the first of a long list."""
    if page.offset + page.per_page > MAX_ROWS:
        count = await lists.count_rows(tx, where, counted)
        if count > BOUND:
            reason = "narrow the list by its filters, for example by time"
            raise Invalid.field("page", f"must be within the first {MAX_ROWS:,} rows; {reason}")
        return [], Total(count)
    return await lists.fetch_page(
        tx, where, sql, page.per_page, page.offset, counted=counted, estimated=estimated
    )
