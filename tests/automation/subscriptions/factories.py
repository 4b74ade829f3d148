"""Creates subscriptions and calls their routes."""

from typing import Any

from app.services import Services
from tests.automation.workflows.factories import create_workflow, transform
from tests.database import Row, fetch_rows
from tests.messaging.webhooks.factories import create_webhook
from tests.platform.events.responses import post_json, read_json
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
}
_draft_ids: dict[str, str] = {}
_DELIVERIES = """
SELECT d.id, d.webhook_id, d.event_id, d.event_type, d.status, d.work_id
FROM deliveries d WHERE d.tenant_id = $1 ORDER BY d.id
"""


async def create_subscription(client: Client, **fields: Any) -> dict[str, Any]:
    """Runs a draft on `agent.created` unless the fields say otherwise: the action ends dead."""
    if "action_config" not in fields:
        fields["action_config"] = {"workflow_id": await find_draft(client)}
    subscription: dict[str, Any] = await post_json(client, PATH, {**WORKFLOW, **fields})
    return subscription


async def find_draft(client: Client) -> str:
    """Returns the one draft of a workflow that the subscriptions of the tenant share."""
    if client.tenant_id not in _draft_ids:
        _draft_ids[client.tenant_id] = await create_draft(client)
    return _draft_ids[client.tenant_id]


async def create_draft(client: Client) -> str:
    workflow = await create_workflow(client, [transform("only", 1)], name="Draft")
    return str(workflow["id"])


async def subscribe_url(client: Client, url: str, **fields: Any) -> dict[str, Any]:
    """Creates a subscription that delivers to an address of its own."""
    config = {"url": url} | fields.pop("config", {})
    return await create_subscription(client, action_type="webhook", action_config=config, **fields)


async def subscribe_webhook(client: Client, webhook_id: str, **fields: Any) -> dict[str, Any]:
    """Creates a subscription that delivers to an existing webhook."""
    config = {"webhook_id": webhook_id}
    return await create_subscription(client, action_type="webhook", action_config=config, **fields)


async def create_webhook_for(client: Client, url: str, *events: str, **fields: Any) -> str:
    """Returns the webhook's id; without events it gets `system.test` only."""
    event_types = list(events) or ["system.test"]
    webhook_id: str = (await create_webhook(client, url=url, events=event_types, **fields))["id"]
    return webhook_id


async def read_subscription(client: Client, subscription_id: str) -> dict[str, Any]:
    subscription: dict[str, Any] = read_json(await client.get(f"{PATH}/{subscription_id}"))
    return subscription


async def read_trigger_counts(client: Client, subscriptions: list[dict[str, Any]]) -> list[int]:
    return [
        (await read_subscription(client, subscription["id"]))["trigger_count"]
        for subscription in subscriptions
    ]


async def update_subscription(
    client: Client, subscription_id: str, **fields: Any
) -> dict[str, Any]:
    subscription: dict[str, Any] = read_json(await client.put(f"{PATH}/{subscription_id}", fields))
    return subscription


async def list_ids(client: Client, **params: Any) -> list[str]:
    response = await client.get(PATH, params=params)
    return [subscription["id"] for subscription in read_json(response)["data"]]


def build_nested(levels: int) -> dict[str, Any]:
    """Returns objects nested so many levels deep."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


async def load_deliveries(services: Services, client: Client) -> list[Row]:
    return await fetch_rows(services, _DELIVERIES, client.tenant_id)
