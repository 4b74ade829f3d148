"""Outgoing webhooks for tests, and what is asked about them again and again."""

import asyncio
from typing import Any

from app.domain.deliveries import endpoint_keys
from app.domain.deliveries.endpoint_keys import EndpointKeys
from app.services import Services
from db.session import ALL_TENANTS
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


async def create(client: Client, **fields: Any) -> dict[str, Any]:
    answer = await client.post(PATH, {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def update(client: Client, webhook_id: str, **fields: Any) -> dict[str, Any]:
    answer = await client.put(f"{PATH}/{webhook_id}", fields)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def read(client: Client, webhook_id: str) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{webhook_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def rotate(client: Client, webhook_id: str) -> dict[str, Any]:
    answer = await client.post(f"{PATH}/{webhook_id}/rotate-secret")
    assert answer.status_code == 200, answer.text
    renewed: dict[str, Any] = answer.json()
    return renewed


async def try_out(client: Client, webhook_id: str, **fields: Any) -> dict[str, Any]:
    """The finished delivery of a test event."""
    answer = await client.post(f"{PATH}/{webhook_id}/test", fields, timeout=60)
    assert answer.status_code == 200, answer.text
    delivery: dict[str, Any] = answer.json()
    return delivery


async def full(client: Client, webhook_id: str, delivery_id: str) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{webhook_id}/executions/{delivery_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def deliveries(client: Client, webhook_id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"{PATH}/{webhook_id}/executions")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def attempted(client: Client, webhook_id: str, times: int = 1) -> dict[str, Any]:
    """Its latest delivery, once so many attempts at it are recorded."""
    async with asyncio.timeout(20):
        while True:
            found = await deliveries(client, webhook_id)
            if found and found[0]["attempt"] >= times:
                return found[0]
            await asyncio.sleep(0.01)


async def told(client: Client, event_type: str) -> list[dict[str, Any]]:
    """The events of a type in the log, the oldest first."""
    answer = await client.get("/api/v1/event-log", params={"event_type": event_type})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"][::-1]
    return found


async def make_agent(client: Client) -> str:
    """Something happens: `agent.created`."""
    body = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}
    answer = await client.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["id"]
    return agent_id


async def run_sql(services: Services, sql: str, *args: object) -> list[Any]:
    async with services.db.tx(ALL_TENANTS) as tx:
        return list(await (await tx.raw()).fetch(sql, *args))


async def opened(services: Services, client: Client, webhook_id: str) -> EndpointKeys:
    """What is sealed with it."""
    (row,) = await run_sql(services, "SELECT keys FROM webhooks WHERE id = $1", webhook_id)
    return endpoint_keys.unseal(services.keyring, client.tenant_id, webhook_id, row["keys"])


async def write_keys(
    services: Services, client: Client, webhook_id: str, wanted: EndpointKeys
) -> None:
    """Past the API and its checks."""
    sealed = endpoint_keys.seal(services.keyring, client.tenant_id, webhook_id, wanted)
    await run_sql(services, "UPDATE webhooks SET keys = $2 WHERE id = $1", webhook_id, sealed)
