"""Query parameters of lists: page number, page size, sort order, search text, time range."""

from datetime import datetime
from typing import Annotated, TypeVar

from litestar.params import QueryParameter

from app.kit import cursors, validation
from app.kit.paging import MAX_ROWS, Page
from db.lists import BOUND

S = TypeVar("S")

MAX_PER_PAGE = 100
_MAX_PAGE = 10_000_000

PageNumber = Annotated[
    int,
    QueryParameter(
        ge=1,
        le=_MAX_PAGE,
        description=f"Which page, from 1. Of a list of more than {BOUND:,} rows, only the first "
        f"{MAX_ROWS:,} can be read; narrow it by its filters, for example by time",
    ),
]
PerPage = Annotated[
    int, QueryParameter(ge=1, le=MAX_PER_PAGE, description="Items per page, 1 to 100")
]
Sort = Annotated[
    str | None,
    QueryParameter(max_length=64, description="A field to sort by; a leading - means descending"),
]
Search = Annotated[str | None, QueryParameter(max_length=200, description="Text to search for")]


def provide_page(page: PageNumber = 1, per_page: PerPage = 20) -> Page:
    return Page(page, per_page)


def provide_full_page(page: PageNumber = 1, per_page: PerPage = MAX_PER_PAGE) -> Page:
    """For lists that had no pages before: callers who name none still receive most lists whole."""
    return Page(page, per_page)


Limit = Annotated[
    int, QueryParameter(ge=1, le=MAX_PER_PAGE, description="Items per page, 1 to 100")
]
CursorText = Annotated[
    str | None,
    QueryParameter(
        name="cursor",
        max_length=cursors.MAX_CHARS,
        description="`next_cursor` of the page before; without it, the list begins",
    ),
]
# The OpenAPI description of query parameters that `parse_time` reads.
TIME = {"format": "date-time", "description": "ISO 8601; UTC unless it names another zone"}


def parse_time(name: str, text: str | None) -> datetime | None:
    """Parses a date, or a date and time, of a query parameter; in UTC unless it names a zone."""
    return None if text is None else validation.parse_time_field(name, text)


From = Annotated[str | None, QueryParameter(name="from", schema_extra=TIME)]
To = Annotated[str | None, QueryParameter(name="to", schema_extra=TIME)]
OfStatus = Annotated[S | None, QueryParameter(description="Only those with this status")]
Active = Annotated[
    bool | None, QueryParameter(description="Only active ones, or only inactive ones")
]
