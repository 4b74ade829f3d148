"""Lists: pages in the API's two shapes, stable sorting, searching."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Select
from sqlalchemy.orm import InstrumentedAttribute

from app.kit.errors import Invalid
from db.counting import Total, count_statement
from db.session import Tx

T = TypeVar("T")


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


Columns = Mapping[str, InstrumentedAttribute[Any]]


def order(
    sort: str | None, columns: Columns, default: str, tie: InstrumentedAttribute[str]
) -> list[ColumnElement[Any]]:
    """Returns the ORDER BY of a `sort` parameter. The id breaks ties, so pages never overlap."""
    sort = sort or default
    name = sort.removeprefix("-")
    if name not in columns:
        raise Invalid.field(
            "sort", f"must be one of {', '.join(sorted(columns))}, with or without -"
        )
    column = columns[name]
    is_descending = sort.startswith("-")
    first = column.desc() if is_descending else column.asc()
    if column.property.columns[0].nullable:
        # NULLs come last in both directions; other columns keep the form that an index serves.
        first = first.nulls_last()
    return [first, tie.desc() if is_descending else tie.asc()]


def contains(column: InstrumentedAttribute[str], text: str) -> ColumnElement[bool]:
    """Returns a case-insensitive condition; % and _ in the text are no wildcards."""
    return column.icontains(text, autoescape=True)


async def fetch(
    tx: Tx, statement: Select[T], page: Page, ordering: list[ColumnElement[Any]]
) -> tuple[list[T], Total]:
    """Returns the rows of one page and the total, with two statements."""
    total = await count_statement(tx, statement)
    rows = await (await tx.session()).scalars(
        statement.order_by(*ordering).limit(page.per_page).offset(page.offset)
    )
    return list(rows), total
