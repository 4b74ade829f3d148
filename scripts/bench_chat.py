"""Measures chat against a handler that only forwards the request to the same stub model."""

import asyncio
import json
import os
import statistics
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import psutil
from litestar import Litestar, Request, post
from litestar.response import Stream
from load import CLIENTS, SECONDS, per_second
from stub_model import DELTAS

from tests.world import Client, World

ROUNDS = 3
_CONVERSATIONS = 40
_MEMORY_TURNS = 5000
_STREAMS = 200
_QUESTION = {"model": "stub", "messages": [{"role": "user", "content": "Hi"}]}

Row = Callable[..., None]


# The bare counterparts


@post("/chat", status_code=200)
async def bare_chat(request: Request) -> dict:  # type: ignore[type-arg]
    await request.json()
    async with request.app.state.http.post(request.app.state.stub, json=_QUESTION) as response:
        body: dict[str, Any] = await response.json()
    return body


@post("/chat/stream", status_code=200)
async def bare_stream(request: Request) -> Stream:  # type: ignore[type-arg]
    await request.json()

    async def forward() -> AsyncIterator[bytes]:
        body = {**_QUESTION, "stream": True}
        async with request.app.state.http.post(request.app.state.stub, json=body) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    return Stream(forward(), media_type="text/event-stream")


def bare_app() -> Litestar:
    async def start(app: Litestar) -> None:
        app.state.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            json_serialize=lambda value: json.dumps(value, separators=(",", ":")),
        )
        app.state.stub = f"http://127.0.0.1:{os.environ['STUB_PORT']}/v1/chat/completions"

    return Litestar([bare_chat, bare_stream], on_startup=[start], openapi_config=None)


# Load


def _request(path: str, body: dict[str, Any], token: str = "") -> bytes:
    raw = json.dumps(body).encode()
    auth = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{auth}Content-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(raw), raw)


# The rows


class Chat:
    """Agents that use the stub model, and their conversations."""

    def __init__(self, client: Client, ports: dict[str, int], web_pid: int) -> None:
        self._client = client
        self._ports = ports
        self._web_pid = web_pid
        self._conversations: list[str] = []
        self._agents: dict[str, str] = {}

    async def prepare(self) -> None:
        key = {
            "provider": "stub",
            "name": "Stub",
            "api_key": "sk-stub",
            "base_url": f"http://127.0.0.1:{self._ports['stub']}/v1",
        }
        (await self._client.post("/api/v1/api-keys", key)).raise_for_status()
        for model in ("stub", "slow"):
            agent = {
                "name": model,
                "primary_model": f"stub/{model}",
                "system_prompt": "You are measured.",
                "status": "published",
            }
            response = await self._client.post("/api/v1/agents", agent)
            self._agents[model] = response.json()["id"]
        path = f"/api/v1/agents/{self._agents['stub']}/chat"
        for _ in range(CLIENTS * _CONVERSATIONS):
            reply = await self._client.post(path, {"message": "Hello"})
            self._conversations.append(reply.json()["conversation_id"])

    def _path(self, end: str, model: str = "stub") -> str:
        return f"/api/v1/agents/{self._agents[model]}/{end}"

    def _requests(self, end: str) -> list[list[bytes]]:
        token = self._client.token or ""
        path = self._path(end)
        requests = [
            _request(path, {"message": "Hi", "conversation_id": conversation_id}, token)
            for conversation_id in self._conversations
        ]
        return [requests[start::CLIENTS] for start in range(CLIENTS)]

    async def _compare(self, end: str) -> tuple[float, float]:
        bare = [[_request(f"/{end}", {"message": "Hi"})]] * CLIENTS
        pairs = [
            (
                await per_second(self._ports["parley"], self._requests(end)),
                await per_second(self._ports["bare_chat"], bare),
            )
            for _ in range(ROUNDS)
        ]
        return statistics.median(o for o, _ in pairs), statistics.median(b for _, b in pairs)

    async def rates(self, row: Row) -> None:
        for name, end, bar in (("sync chat", "chat", 0.2), ("streamed chat", "chat/stream", 0.25)):
            ours, bare = await self._compare(end)
            share = ours / bare
            row(f"{name}, beside a bare forward", f"{ours:.0f}/s", f"{bare:.0f}/s", f"{share:.0%}",
                f"≥ {bar:.0%}", holds=share >= bar)  # fmt: skip

    async def first_delta(self, row: Row) -> None:
        """With one client: the delay of the first delta compared with the stub's own."""
        stub = f"http://127.0.0.1:{self._ports['stub']}/v1/chat/completions"
        url = f"http://127.0.0.1:{self._ports['parley']}{self._path('chat/stream')}"
        auth = {"Authorization": f"Bearer {self._client.token}"}
        delays: dict[str, list[float]] = {"ours": [], "stub": []}
        async with aiohttp.ClientSession() as http:
            for _ in range(100):
                body = {**_QUESTION, "stream": True}
                raw = json.dumps(body, separators=(",", ":")).encode()
                delays["stub"].append(await _time_to_word(http, stub, raw, b"content", {}))
                raw = b'{"message": "Hi"}'
                delays["ours"].append(await _time_to_word(http, url, raw, b"content_delta", auth))
        ours, bare = (statistics.median(delays[name]) for name in ("ours", "stub"))
        row("first delta, one client", f"{ours:.1f} ms", f"{bare:.1f} ms", f"{ours - bare:.1f} ms",
            "≤ 10 ms", holds=ours - bare <= 10)  # fmt: skip

    async def many_streams(self, row: Row) -> None:
        url = f"http://127.0.0.1:{self._ports['parley']}{self._path('chat/stream', 'slow')}"
        headers = {
            "Authorization": f"Bearer {self._client.token}",
            "Content-Type": "application/json",
        }

        async def read_stream(http: aiohttp.ClientSession) -> bool:
            async with http.post(url, data=b'{"message": "Hi"}', headers=headers) as response:
                text = await response.text()
            return text.count("word ") == DELTAS and "message_stop" in text

        started = time.perf_counter()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as http:
            complete = sum(await asyncio.gather(*(read_stream(http) for _ in range(_STREAMS))))
        seconds = time.perf_counter() - started
        row(f"{_STREAMS} streams of 1.2 s at once", f"{complete} complete", "", f"{seconds:.1f} s",
            "all", holds=complete == _STREAMS)  # fmt: skip

    async def memory(self, row: Row) -> None:
        process = psutil.Process(self._web_pid)

        async def turns(count: int) -> float:
            requests = [[_request(self._path("chat"), {"message": "Hi"}, self._client.token or "")]]
            ended = 0.0
            while ended < count:
                ended += await per_second(self._ports["parley"], requests * CLIENTS) * SECONDS
            return float(process.memory_info().rss) / 2**20

        before = await turns(_MEMORY_TURNS // 2)
        after = await turns(_MEMORY_TURNS)
        row(f"memory over {_MEMORY_TURNS} turns", f"{after:.0f} MiB", f"{before:.0f} MiB",
            f"{after - before:+.1f} MiB", "flat", holds=after - before < 5)  # fmt: skip


async def _time_to_word(
    http: aiohttp.ClientSession, url: str, raw: bytes, word: bytes, headers: dict[str, str]
) -> float:
    """Reads the whole response and returns the milliseconds until the word came."""
    started = time.perf_counter()
    headers = {**headers, "Content-Type": "application/json"}
    received, milliseconds = b"", 0.0
    async with http.post(url, data=raw, headers=headers) as response:
        async for chunk in response.content.iter_any():
            received += chunk
            if not milliseconds and word in received:
                milliseconds = (time.perf_counter() - started) * 1000
    return milliseconds


async def bench(world: World, ports: dict[str, int], web_pid: int, row: Row) -> None:
    chat = Chat(await world.user("tenant_admin"), ports, web_pid)
    await chat.prepare()
    await chat.rates(row)
    await chat.first_delta(row)
    await chat.many_streams(row)
    await chat.memory(row)
