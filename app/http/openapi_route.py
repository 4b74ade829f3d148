"""`/openapi.json`: without sign-in and without a rate limit."""

import asyncio
import gzip
import hashlib
import math
from typing import Any

import msgspec
from litestar import HttpMethod, Litestar, Request, Response, route
from litestar.status_codes import HTTP_200_OK, HTTP_304_NOT_MODIFIED

from app.http import openapi
from app.observe.cached_report import CachedReport

_MEDIA_TYPE = "application/json"


class Content(msgspec.Struct, frozen=True):
    """Bytes that do not change while the process runs, compressed once."""

    plain: bytes
    gzipped: bytes
    tag: str

    @classmethod
    def of(cls, plain: bytes) -> "Content":
        tag = f'"{hashlib.sha256(plain).hexdigest()[:16]}"'
        return cls(plain, gzip.compress(plain, mtime=0), tag)

    def respond(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        headers = {"cache-control": "no-cache", "etag": self.tag, "vary": "Accept-Encoding"}
        content, status = self.plain, HTTP_200_OK
        if self.tag in request.headers.get("if-none-match", ""):
            content, status = b"", HTTP_304_NOT_MODIFIED
        elif "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            content = self.gzipped
        return Response(content, status_code=status, media_type=_MEDIA_TYPE, headers=headers)


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
    return content.respond(request)
