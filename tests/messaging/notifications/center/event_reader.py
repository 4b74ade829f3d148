"""Reads the live stream of a user over a socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.http_clients import open_client
from tests.messaging.notifications.center.api import PATH
from tests.server import Server
from tests.world import Client

_SECONDS = 10.0


class EventReader:
    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def wait_until_open(self) -> None:
        async with asyncio.timeout(_SECONDS):
            assert await anext(self._lines) == ": connected"

    async def read(self) -> dict[str, str]:
        """Returns the values of the next event's lines by their names, without comments."""
        lines: dict[str, str] = {}
        async with asyncio.timeout(_SECONDS):
            async for line in self._lines:
                if not line and lines:
                    return lines
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    lines[name] = value
        raise EOFError

    async def read_notification(self) -> dict[str, Any]:
        lines = await self.read()
        assert lines.keys() == {"id", "event", "data"}
        notification: dict[str, Any] = json.loads(lines["data"])
        assert (lines["id"], lines["event"]) == (notification["id"], "notification")
        return notification


@asynccontextmanager
async def open_stream(
    server: Server, caller: Client, last_id: str | None = None
) -> AsyncIterator[EventReader]:
    """Connects, and waits until the stream is open."""
    headers = {"authorization": f"Bearer {caller.token}"}
    if last_id is not None:
        headers["last-event-id"] = last_id
    async with (
        open_client(base_url=server.url, headers=headers, timeout=_SECONDS) as client,
        client.stream("GET", f"{PATH}/stream") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        reader = EventReader(answer)
        await reader.wait_until_open()
        yield reader
