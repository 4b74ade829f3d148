"""Creates webhooks and calls their routes."""

from typing import Any

from app.domain.messaging.deliveries import endpoint_keys
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.services import Services
from tests.assertions import wait_until
from tests.database import run_sql
from tests.platform.events.responses import post_json, read_json
from tests.world import Client

PATH = "/api/v1/webhooks"
BODY: dict[str, Any] = {"url": "https://example.com/hook", "events": ["agent.created"]}
VIEW_KEYS = {
    "id",
    "url",
    "events",
    "active",
    "description",
    "headers",
    "failing_since",
    "disabled_reason",
    "previous_secret_expires_at",
    "secrets_updated_at",
    "created_at",
    "updated_at",
}
DELIVERY_KEYS = {
    "id",
    "event_id",
    "event_type",
    "status",
    "response_code",
    "response_time_ms",
    "attempt",
    "error",
    "correlation_id",
    "created_at",
    "next_attempt_at",
    "finished_at",
}


async def create_webhook(client: Client, **fields: Any) -> dict[str, Any]:
    webhook: dict[str, Any] = await post_json(client, PATH, {**BODY, **fields})
    return webhook


async def update_webhook(client: Client, webhook_id: str, **fields: Any) -> dict[str, Any]:
    webhook: dict[str, Any] = read_json(await client.put(f"{PATH}/{webhook_id}", fields))
    return webhook


async def read_webhook(client: Client, webhook_id: str) -> dict[str, Any]:
    webhook: dict[str, Any] = read_json(await client.get(f"{PATH}/{webhook_id}"))
    return webhook


async def rotate_secret(client: Client, webhook_id: str) -> dict[str, Any]:
    path = f"{PATH}/{webhook_id}/rotate-secret"
    webhook: dict[str, Any] = read_json(await client.post(path))
    return webhook


async def send_test_event(client: Client, webhook_id: str, **fields: Any) -> dict[str, Any]:
    """Returns the finished delivery."""
    response = await client.post(f"{PATH}/{webhook_id}/test", fields, timeout=60)
    delivery: dict[str, Any] = read_json(response)
    return delivery


async def redeliver(client: Client, webhook_id: str, delivery_id: str) -> dict[str, Any]:
    path = f"{PATH}/{webhook_id}/executions/{delivery_id}/redeliver"
    delivery: dict[str, Any] = read_json(await client.post(path), 202)
    return delivery


async def read_delivery(client: Client, webhook_id: str, delivery_id: str) -> dict[str, Any]:
    """With its request and attempts."""
    path = f"{PATH}/{webhook_id}/executions/{delivery_id}"
    delivery: dict[str, Any] = read_json(await client.get(path))
    return delivery


async def list_deliveries(client: Client, webhook_id: str, **params: Any) -> list[dict[str, Any]]:
    response = await client.get(f"{PATH}/{webhook_id}/executions", params=params)
    deliveries: list[dict[str, Any]] = read_json(response)["data"]
    return deliveries


async def wait_for_attempt(client: Client, webhook_id: str, number: int = 1) -> dict[str, Any]:
    """Returns the webhook's latest delivery once it has so many recorded attempts."""

    async def find_delivery() -> dict[str, Any] | None:
        deliveries = await list_deliveries(client, webhook_id)
        return deliveries[0] if deliveries and deliveries[0]["attempt"] >= number else None

    delivery = await wait_until(find_delivery)
    assert delivery is not None
    return delivery


async def list_events(client: Client, event_type: str) -> list[dict[str, Any]]:
    """Returns the events of a type in the log, the oldest first."""
    params = {"event_type": event_type, "per_page": 100}
    response = await client.get("/api/v1/event-log", params=params)
    events: list[dict[str, Any]] = read_json(response)["data"][::-1]
    return events


async def unseal_keys(services: Services, client: Client, webhook_id: str) -> EndpointKeys:
    (row,) = await run_sql(services, "SELECT keys FROM webhooks WHERE id = $1", webhook_id)
    return endpoint_keys.unseal(services.keyring, client.tenant_id, webhook_id, row["keys"])


async def write_keys(
    services: Services, client: Client, webhook_id: str, keys: EndpointKeys
) -> None:
    """Seals and stores keys without the API's validation."""
    sealed = endpoint_keys.seal(services.keyring, client.tenant_id, webhook_id, keys)
    await run_sql(services, "UPDATE webhooks SET keys = $2 WHERE id = $1", webhook_id, sealed)
