"""`/docs` and `/openapi.json`: without sign-in and without a rate limit."""

import asyncio
import gzip
import math
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import msgspec
from litestar import HttpMethod, Litestar, MediaType, Request, Response, get, route
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from app.http import openapi
from app.observe.cached_report import CachedReport

# The package is installed for these files; nothing imports its code.
_ASSETS = Path(str(distribution("swagger-ui-py").locate_file("swagger_ui/static")))
_SERVED = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Parley API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/docs/assets/favicon-32x32.png">
<link rel="stylesheet" href="/docs/assets/swagger-ui.css"></head>
<body><div id="docs"></div><script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script></body></html>
"""
_START = (
    'SwaggerUIBundle({url: "/openapi.json", dom_id: "#docs", deepLinking: true,'
    " persistAuthorization: true, tryItOutEnabled: true, displayRequestDuration: true});\n"
)
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self' data:; frame-ancestors 'none'"
)


class Content(msgspec.Struct, frozen=True):
    """Bytes that do not change while the process runs, compressed once."""

    plain: bytes
    gzipped: bytes

    @classmethod
    def of(cls, plain: bytes) -> "Content":
        return cls(plain, gzip.compress(plain, mtime=0))

    def respond(self, request: Request[Any, Any, Any], media_type: str) -> Response[bytes]:
        headers = {"vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.plain, media_type=media_type, headers=headers)
        headers["content-encoding"] = "gzip"
        return Response(self.gzipped, media_type=media_type, headers=headers)


def cached_document(app: Litestar) -> CachedReport[Content]:
    """Builds the document once, in a thread, because it takes a second."""

    def build() -> Content:
        return Content.of(msgspec.json.encode(openapi.document(app)))

    return CachedReport(math.inf, lambda: asyncio.to_thread(build))


@route(
    "/openapi.json",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    include_in_schema=False,
    public=True,
)
async def openapi_json(request: Request[Any, Any, Any]) -> Response[bytes]:
    content: Content = await request.app.state.openapi.get()
    return content.respond(request, "application/json")


@get("/docs", include_in_schema=False, public=True, sync_to_thread=False)
def docs_page() -> Response[str]:
    return Response(_PAGE, media_type=MediaType.HTML, headers={"content-security-policy": _CSP})


@get("/docs/start.js", include_in_schema=False, public=True, sync_to_thread=False)
def docs_script() -> Response[str]:
    return Response(_START, media_type="text/javascript")


@cache
def _load_asset(name: str) -> Content:
    return Content.of((_ASSETS / name).read_bytes())


@get("/docs/assets/{name:str}", include_in_schema=False, public=True, sync_to_thread=True)
def docs_asset(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    if name not in _SERVED:
        raise NotFoundException
    response = _load_asset(name).respond(request, _SERVED[name])
    response.headers["cache-control"] = "public, max-age=86400"
    return response
