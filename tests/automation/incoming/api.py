"""Calls of the incoming webhook API that tests repeat; each checks the status of the response."""

from typing import Any

from tests.assertions import refused
from tests.world import Client

PATH = "/api/v1/incoming-webhooks"
RECEIVED = "system.incoming_webhook.received"


async def list_payloads(
    owner: Client, webhook: dict[str, Any], **params: Any
) -> list[dict[str, Any]]:
    answer = await owner.get(f"{PATH}/{webhook['id']}/events", params=params)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def list_events(owner: Client, event_type: str) -> list[dict[str, Any]]:
    """Returns the tenant's events of one type, the newest first."""
    answer = await owner.get("/api/v1/event-log", params={"event_type": event_type})
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def read_field_error(caller: Client, field: str, body: object) -> str:
    """Returns the message for the only field that a create request is refused for."""
    error = refused(await caller.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {field}
    message: str = error["details"][field]
    return message
