"""The address without a path."""

from typing import Any

from litestar import HttpMethod, MediaType, Request, route
from litestar.exceptions import NotFoundException
from litestar.response import Redirect
from litestar.status_codes import HTTP_302_FOUND

_JSON_OR_HTML = [MediaType.JSON.value, MediaType.HTML.value]
# Browsers send about 200 characters, and parsing takes time for each type.
_MAX_ACCEPT_CHARS = 1024


@route(
    "/",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    include_in_schema=False,
    public=True,
    status_code=HTTP_302_FOUND,
    sync_to_thread=False,
)
def home_page(request: Request[Any, Any, Any]) -> Redirect:
    """Sends a browser to the documentation; for a program there is nothing here."""
    if not _prefers_html(request):
        raise NotFoundException
    return Redirect("/docs", headers={"vary": "Accept"}, status_code=HTTP_302_FOUND)


def _prefers_html(request: Request[Any, Any, Any]) -> bool:
    if len(request.headers.get("accept", "")) > _MAX_ACCEPT_CHARS:
        return False
    try:
        return request.accept.best_match(_JSON_OR_HTML) == MediaType.HTML
    except OverflowError:
        # Litestar fails on an infinite quality.
        return False
