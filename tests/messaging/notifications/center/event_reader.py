"""Reads the live stream of a user over a socket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests import event_reader
from tests.event_reader import open_events
from tests.messaging.notifications.center.api import PATH
from tests.server import Server
from tests.world import Client


class EventReader(event_reader.EventReader):
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
    headers = {} if last_id is None else {"last-event-id": last_id}
    async with open_events(server, caller, f"{PATH}/stream", **headers) as answer:
        assert answer.status_code == 200
        reader = EventReader(answer)
        await reader.wait_until_open()
        yield reader
