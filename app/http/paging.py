"""Lists: pages in both of the interface's shapes, sorting that is stable, searching."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from litestar.params import QueryParameter
from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute

from app.http.errors import Invalid
from db.session import Tx

T = TypeVar("T")

MAX_PER_PAGE = 100
_MAX_PAGE = 10_000_000

PageNumber = Annotated[int, QueryParameter(ge=1, le=_MAX_PAGE, description="Which page, from 1")]
PerPage = Annotated[
    int, QueryParameter(ge=1, le=MAX_PER_PAGE, description="How many on a page, 1 to 100")
]
Sort = Annotated[
    str | None,
    QueryParameter(max_length=64, description="A field to sort by; a leading - means descending"),
]
Search = Annotated[str | None, QueryParameter(max_length=200, description="Text to look for")]


class Page(msgspec.Struct, frozen=True):
    page: int = 1
    per_page: int = 20

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


class Pagination(msgspec.Struct, omit_defaults=True):
    """`estimated` stands there where `total` is an estimate, as it may be of many rows."""

    page: int
    per_page: int
    total: int
    total_pages: int
    estimated: bool = False


class Paged(msgspec.Struct, Generic[T]):
    """The shape of most lists."""

    data: list[T]
    pagination: Pagination


def paged(data: list[T], total: int, page: Page, *, exact: bool = True) -> Paged[T]:
    pages = -(-total // page.per_page)
    return Paged(data, Pagination(page.page, page.per_page, total, pages, not exact))


class Flat(msgspec.Struct, Generic[T], omit_defaults=True):
    """The other shape: the totals beside the list. Where there are many rows, `total` may be an
    estimate, and `estimated` says so.
    """

    data: list[T]
    total: int
    page: int
    per_page: int
    estimated: bool = False


def flat(data: list[T], total: int, page: Page, *, exact: bool = True) -> Flat[T]:
    return Flat(data, total, page.page, page.per_page, not exact)


def provide_page(page: PageNumber = 1, per_page: PerPage = 20) -> Page:
    return Page(page, per_page)


# What a query parameter that `moment` reads says of itself.
MOMENT = {"format": "date-time", "description": "ISO 8601; UTC unless it names another zone"}


def moment(name: str, text: str | None) -> datetime | None:
    """A point in time from a query parameter: a date or a date and time, in UTC without a zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid.field(name, "must be an ISO 8601 date or date and time") from None


Columns = Mapping[str, InstrumentedAttribute[Any]]


def order(
    sort: str | None, columns: Columns, default: str, tie: InstrumentedAttribute[str]
) -> list[ColumnElement[Any]]:
    """The ORDER BY of a `sort` parameter; ties are broken by id, so pages never overlap."""
    wanted = sort or default
    name = wanted.removeprefix("-")
    if name not in columns:
        raise Invalid.field(
            "sort", f"must be one of {', '.join(sorted(columns))}, with or without -"
        )
    column = columns[name]
    down = wanted.startswith("-")
    first = column.desc() if down else column.asc()
    if column.property.columns[0].nullable:
        # What has no value comes last either way; an index serves the other columns as it is.
        first = first.nulls_last()
    return [first, tie.desc() if down else tie.asc()]


def contains(column: InstrumentedAttribute[str], text: str) -> ColumnElement[bool]:
    """Case-blind search for text as it is: % and _ are no wildcards."""
    return column.icontains(text, autoescape=True)


async def fetch(
    tx: Tx, statement: Select[T], page: Page, ordering: list[ColumnElement[Any]]
) -> tuple[list[T], int]:
    """One page and the total: two statements, whatever the size of the page."""
    session = await tx.session()
    total = await session.scalar(select(func.count()).select_from(statement.subquery()))
    found = await session.scalars(
        statement.order_by(*ordering).limit(page.per_page).offset(page.offset)
    )
    return list(found), total or 0
