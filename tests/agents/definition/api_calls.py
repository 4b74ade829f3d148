"""Requests that list agents and events."""

from typing import Any

from tests.agents.definition.factories import PATH
from tests.world import Client


async def list_names(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["data"]]


async def list_events(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    """Returns type and data of all events, the oldest first."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    assert answer.status_code == 200, answer.text
    return [(entry["type"], entry["data"]) for entry in reversed(answer.json()["data"])]


async def list_event_data(caller: Client, kind: str) -> list[dict[str, Any]]:
    """Returns the data of the events of one type, the oldest first."""
    return [data for event_type, data in await list_events(caller) if event_type == kind]
