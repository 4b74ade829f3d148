"""Reads a stream of server-sent events over a socket, as the clients of live feeds do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.http_clients import open_client
from tests.server import Server
from tests.world import Client

SECONDS = 10.0


class EventReader:
    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def wait_until_open(self) -> None:
        async with asyncio.timeout(SECONDS):
            assert await anext(self._lines) == ": connected"

    async def read(self) -> dict[str, str]:
        """Returns the values of the next event's lines by their names, without comments."""
        lines: dict[str, str] = {}
        async with asyncio.timeout(SECONDS):
            async for line in self._lines:
                if not line and lines:
                    return lines
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    lines[name] = value
        raise EOFError


@asynccontextmanager
async def open_events(
    server: Server, caller: Client, path: str, **headers: str
) -> AsyncIterator[httpx.Response]:
    """Connects. The answer has its body where it is no stream."""
    headers["authorization"] = f"Bearer {caller.token}"
    async with (
        open_client(base_url=server.url, headers=headers, timeout=SECONDS) as client,
        client.stream("GET", path) as answer,
    ):
        if answer.status_code == 200:
            assert answer.headers["content-type"].startswith("text/event-stream")
        else:
            await answer.aread()
        yield answer
