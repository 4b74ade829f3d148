"""Calls of the event log API that tests repeat."""

from typing import Any

from tests.platform.events.responses import read_json
from tests.world import Client

PATH = "/api/v1/event-log"


async def read_trace(client: Client, correlation_id: str) -> dict[str, Any]:
    trace: dict[str, Any] = read_json(await client.get(f"{PATH}/trace/{correlation_id}"))
    return trace
