"""The address without a path."""

from typing import Any

import msgspec
from litestar import HttpMethod, MediaType, Request, Response, route
from litestar.response import Redirect
from litestar.status_codes import HTTP_200_OK, HTTP_302_FOUND

from app import __version__
from app.http.dependencies import Services
from app.settings import Settings
from app.web.console_page import describe_console, find_screen

_JSON_OR_HTML = [MediaType.JSON.value, MediaType.HTML.value]
# Browsers send about 200 characters, and parsing takes time for each type.
_MAX_ACCEPT_CHARS = 1024


class Home(msgspec.Struct, omit_defaults=True):
    """Where to go on."""

    name: str
    version: str
    docs: str
    openapi: str
    console: str | None = None
    demo: str | None = None


@route(
    "/",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    include_in_schema=False,
    public=True,
    status_code=HTTP_302_FOUND,
    sync_to_thread=False,
)
def home_page(request: Request[Any, Any, Any], services: Services) -> Redirect | Response[Home]:
    """Sends a browser to the console, and tells a program where to go on."""
    if not _prefers_html(request):
        return Response(
            _describe(services.settings), headers={"vary": "Accept"}, status_code=HTTP_200_OK
        )
    target = find_screen(services.settings, "") or "/docs"
    return Redirect(target, headers={"vary": "Accept"}, status_code=HTTP_302_FOUND)


def _describe(settings: Settings) -> Home:
    url = settings.public_url
    demo = f"{url}/demo" if settings.demo else None
    console = describe_console(settings)
    return Home("Parley", __version__, f"{url}/docs", f"{url}/openapi.json", console, demo)


def _prefers_html(request: Request[Any, Any, Any]) -> bool:
    if len(request.headers.get("accept", "")) > _MAX_ACCEPT_CHARS:
        return False
    try:
        return request.accept.best_match(_JSON_OR_HTML) == MediaType.HTML
    except OverflowError:
        # Litestar fails on an infinite quality.
        return False
