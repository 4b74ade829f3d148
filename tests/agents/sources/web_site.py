"""A web site that sources read. Its pages can change, answer conditional requests, and fail."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from tests.agents.tools.site import Site, open_site


class Page(msgspec.Struct):
    body: bytes
    content_type: str = "text/html"
    status: int = 200
    headers: dict[str, str] = {}


class WebSite:
    """`pages` are those of the site, by path. Each has an ETag of its content."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.pages: dict[str, Page] = {}
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        site.handler = self._respond

    @property
    def url(self) -> str:
        return self._site.url

    @property
    def asked(self) -> list[str]:
        """The paths that were requested, without robots.txt."""
        paths = [request.path for request in self._site.requests]
        return [path for path in paths if path != "/robots.txt"]

    @property
    def last_headers(self) -> dict[str, str]:
        return dict(self._site.last.headers)

    def forget(self) -> None:
        self._site.requests.clear()

    def show(self, path: str, body: str | bytes, content_type: str = "text/html") -> None:
        content = body.encode() if isinstance(body, str) else body
        self.pages[path] = Page(content, content_type)

    def article(self, path: str, title: str, text: str) -> None:
        html = f"<html><head><title>{title}</title></head><body><p>{text}</p></body></html>"
        self.show(path, html)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        await self.may_answer.wait()
        page = self.pages.get(request.path_qs)
        if page is None:
            return web.Response(status=404)
        etag = f'"{hashlib.sha256(page.body).hexdigest()[:16]}"'
        headers = {"ETag": etag, "Content-Type": page.content_type, **page.headers}
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        return web.Response(status=page.status, body=page.body, headers=headers)


@asynccontextmanager
async def open_web_site() -> AsyncIterator[WebSite]:
    async with open_site() as site:
        yield WebSite(site)
