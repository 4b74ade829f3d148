"""A stub of all search engines, and pages and answers in their formats."""

import html
import json
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from tests.peer import Handler, Peer

Item = tuple[str, str, str]
ITEMS: list[Item] = [
    ("Opening hours", "https://shop.example.com/hours", "The shop opens at nine."),
    ("The shop", "https://shop.example.com/", "All about the shop."),
    ("A review", "http://review.example.net/shop?id=7", "I liked the shop."),
]


class SearchCall(msgspec.Struct):
    """A request that the stub received."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    form: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class EngineServer(Peer):
    """Answers every request with `status` and `body`, after `hold` is set if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[SearchCall] = []
        self.open = self.most_open = 0
        self.reset()

    def reset(self) -> None:
        self.calls.clear()
        self.most_open = 0
        self.status = 200
        self.body: str | bytes = searxng_answer(ITEMS)
        self.headers: dict[str, str] = {}
        self.hold: Any = None

    def routes(self) -> dict[str, Handler]:
        return {"* /{rest:.*}": self._answer}

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        form = {name: str(value) for name, value in (await request.post()).items()}
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = dict(request.query)
        self.calls.append(SearchCall(request.method, request.path, query, headers, form, body))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.hold is not None:
                await self.hold.wait()
        finally:
            self.open -= 1
        body = self.body.encode() if isinstance(self.body, str) else self.body
        return web.Response(body=body, status=self.status, headers=self.headers)


def searxng_answer(items: list[Item]) -> str:
    keys = ("title", "url", "content")
    results = [dict(zip(keys, item, strict=True)) | {"score": 4.5} for item in items]
    return json.dumps({"query": "x", "number_of_results": 0, "results": results})


def brave_answer(items: list[Item]) -> str:
    keys = ("title", "url", "description")
    results = [dict(zip(keys, item, strict=True)) for item in items]
    return json.dumps({"type": "search", "web": {"type": "search", "results": results}})


def tavily_answer(items: list[Item], scores: list[Any] | None = None) -> str:
    keys = ("title", "url", "content")
    results = [
        dict(zip(keys, item, strict=True)) | {"score": score}
        for item, score in zip(items, scores or [0.5] * len(items), strict=True)
    ]
    return json.dumps({"query": "x", "results": results, "response_time": 0.1})


def duckduckgo_page(items: list[Item]) -> str:
    """A page whose links are redirects of DuckDuckGo."""
    return wrap_results(
        duckduckgo_result(
            html.escape(title), f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=1", text
        )
        for title, url, text in items
    )


def duckduckgo_result(title: str, href: str, snippet: str, classes: str = "web-result") -> str:
    return f"""
    <div class="result links_deep {classes}"><div class="result__body">
      <h2 class="result__title"><a rel="nofollow" class="result__a" href="{href}">{title}</a></h2>
      <a class="result__url" href="{href}">shown address</a>
      <a class="result__snippet" href="{href}">{snippet}</a>
    </div></div>"""


def wrap_results(results: Any) -> str:
    return f"""<!doctype html><html><head><title>x at DuckDuckGo</title></head>
    <body><form action="/html/"><input name="q"></form>
    <div id="links" class="results">{"".join(results)}</div></body></html>"""
