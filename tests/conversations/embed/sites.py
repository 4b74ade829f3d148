"""Web sites with an embed key of an agent, and requests from them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from app.kit.ids import new_id
from tests.conversations.embed.factories import create_embed_key
from tests.http_clients import open_client
from tests.scripted_agents import Talker, events_in
from tests.server import Server

ORIGIN = "https://shop.example.com"

NO_CORS: dict[str, str] = {}


class Site(msgspec.Struct):
    """A web site with an embed key of an agent."""

    talk: Talker
    key: dict[str, Any]
    session: str

    @property
    def path(self) -> str:
        return f"/api/v1/public/agents/{self.talk.agent_id}"

    @property
    def api_key(self) -> str:
        api_key: str = self.key["api_key"]
        return api_key

    def headers(self, origin: str | None = None) -> dict[str, str]:
        headers = {"authorization": f"Bearer {self.api_key}"}
        return headers if origin is None else {**headers, "origin": origin}

    def body(self, message: str = "Hi", **fields: Any) -> dict[str, Any]:
        return {"session_id": self.session, "message": message, **fields}

    async def ask(
        self, message: str = "Hi", *, origin: str | None = None, **fields: Any
    ) -> httpx.Response:
        caller = self.talk.world.anonymous()
        return await caller.post(
            f"{self.path}/chat", self.body(message, **fields), headers=self.headers(origin)
        )

    async def say(self, message: str = "Hi", **fields: Any) -> dict[str, Any]:
        answer = await self.ask(message, **fields)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply


async def create_site(talk: Talker, *domains: str) -> Site:
    key = await create_embed_key(talk.client, talk.agent_id, allowed_domains=list(domains))
    return Site(talk, key, new_id("visit"))


class Latch:
    """Lets the first deltas of the scripted model pass, and the others after `open`."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._open = asyncio.Event()
        self.reached = asyncio.Event()

    async def wait(self) -> None:
        if self._first > 0:
            self._first -= 1
            return
        self.reached.set()
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


def cors_headers(answer: httpx.Response) -> dict[str, str]:
    return {
        name: value for name, value in answer.headers.items() if name.startswith("access-control")
    }


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def key_options(transport: str, key: str) -> dict[str, Any]:
    options: dict[str, dict[str, Any]] = {
        "bearer": {"headers": {"authorization": f"Bearer {key}"}},
        "lowercase bearer": {"headers": {"authorization": f"bearer {key}"}},
        "spaced bearer": {"headers": {"authorization": f"Bearer   {key}"}},
        "header": {"headers": {"x-api-key": key}},
        "query": {"params": {"api_key": key}},
    }
    return options[transport]


PREFLIGHT_HEADERS = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}


def assert_preflight_allowed(answer: httpx.Response, origin: str) -> None:
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == origin
    methods = answer.headers["access-control-allow-methods"]
    assert "POST" in {method.strip() for method in methods.split(",")}
    allowed = {
        name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")
    }
    assert {"authorization", "content-type", "x-api-key"} <= allowed
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "origin" in answer.headers["vary"].lower()
    assert "access-control-allow-credentials" not in answer.headers


@asynccontextmanager
async def connect(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(base_url=server.url, timeout=30) as client:
        yield client


async def stream_chat(
    server: Server, site: Site, message: str = "Hi", origin: str | None = None
) -> tuple[httpx.Response, list[tuple[str, Any]]]:
    async with connect(server) as client:
        answer = await client.post(
            f"{site.path}/chat/stream", json=site.body(message), headers=site.headers(origin)
        )
    return answer, events_in(answer.text)


async def attach_sub_agent(parent: Talker, child: Talker, prompt: str = "Knows things") -> None:
    answer = await parent.client.post(
        f"{parent.path}/sub-agents/attach",
        {"agent_id": child.agent_id, "delegation_prompt": prompt},
    )
    assert answer.status_code == 201, answer.text


def offered_tools(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", [])]
