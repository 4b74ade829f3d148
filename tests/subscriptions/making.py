"""Subscriptions for tests, something that they are told of, and what came of it."""

from typing import Any

import httpx

from app.services import Services
from tests.events.watching import Row, rows, settled
from tests.world import Client

PATH = "/api/v1/event-subscriptions"
KEYS = {
    "id",
    "event_type",
    "action_type",
    "action_config",
    "filters",
    "active",
    "created_at",
    "updated_at",
    "last_triggered_at",
    "trigger_count",
}
WORKFLOW: dict[str, Any] = {
    "event_type": "agent.created",
    "action_type": "workflow",
    "action_config": {"workflow_id": "wfl_1"},
}
_DELIVERIES = """
SELECT d.id, d.webhook_id, d.event_id, d.event_type, d.status, d.work_id
FROM deliveries d WHERE d.tenant_id = $1 ORDER BY d.id
"""


async def subscribe(client: Client, **fields: Any) -> dict[str, Any]:
    answer = await client.post(PATH, {**WORKFLOW, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def to_url(client: Client, url: str, **fields: Any) -> dict[str, Any]:
    config = {"url": url} | fields.pop("config", {})
    return await subscribe(client, action_type="webhook", action_config=config, **fields)


async def to_webhook(client: Client, webhook_id: str, **fields: Any) -> dict[str, Any]:
    config = {"webhook_id": webhook_id}
    return await subscribe(client, action_type="webhook", action_config=config, **fields)


async def webhook(client: Client, url: str, *events: str, **fields: Any) -> str:
    body = {"url": url, "events": list(events) or ["system.test"], **fields}
    answer = await client.post("/api/v1/webhooks", body)
    assert answer.status_code == 201, answer.text
    webhook_id: str = answer.json()["id"]
    return webhook_id


async def read(client: Client, subscription_id: str) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{subscription_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def change(client: Client, subscription_id: str, **fields: Any) -> dict[str, Any]:
    answer = await client.put(f"{PATH}/{subscription_id}", fields)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def listed(client: Client, **params: Any) -> list[str]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["data"]]


def wrong(answer: httpx.Response) -> dict[str, str]:
    """What was refused, by field."""
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == "validation_error"
    details: dict[str, str] = error["details"]
    return details


async def happen(client: Client, name: str = "Agent", **headers: str) -> str:
    """An agent is created, which is an event; gives the agent's id."""
    body = {"name": name, "primary_model": "x/y", "system_prompt": "Be."}
    answer = await client.post("/api/v1/agents", body, headers=headers)
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["id"]
    return agent_id


async def happened(services: Services, client: Client, name: str = "Agent") -> str:
    """The same, and all that it leads to."""
    agent_id = await happen(client, name)
    await settled(services, client.tenant_id)
    return agent_id


async def deliveries_of(services: Services, client: Client) -> list[Row]:
    return await rows(services, _DELIVERIES, client.tenant_id)
