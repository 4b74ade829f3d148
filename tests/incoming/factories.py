"""Incoming webhooks as tests use them: one is opened, something is sent to it, its log is read."""

import asyncio
from typing import Any

import httpx
import msgspec

from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.world import Client

PATH = "/api/v1/incoming-webhooks"
RECEIVED = "system.incoming_webhook.received"
FORM = "application/x-www-form-urlencoded"
SECRET = "a-long-random-secret-9f2c"
GITHUB = {"scheme": "github", "secret": SECRET}
MASKED = {"scheme": "github", "secret": "********", "header": None}
# Whoever waits for a lock in such a statement.
WAITING = """
SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1
"""
JSON = {"content-type": "application/json"}


async def opened(owner: Client, **fields: Any) -> dict[str, Any]:
    answer = await owner.post(PATH, {"name": "Orders", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def send(
    sender: Client, door: dict[str, Any], body: object = b"{}", **headers: str | bytes
) -> httpx.Response:
    """Bytes as they are; anything else as JSON. `x_name` is sent as `x-name`."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    given: Any = {name.replace("_", "-"): value for name, value in headers.items()}
    return await sender.http.post(
        f"/webhooks/in/{door['slug']}", content=content, headers={**JSON, **given}
    )


async def received(sender: Client, door: dict[str, Any], body: object = b"{}", **more: str) -> str:
    """The id under which it is stored."""
    answer = await send(sender, door, body, **more)
    assert answer.status_code == 202, answer.text
    event_id: str = answer.json()["event_id"]
    return event_id


async def log_of(owner: Client, door: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    answer = await owner.get(f"{PATH}/{door['id']}/events", params=params)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def events_of(owner: Client, event_type: str) -> list[dict[str, Any]]:
    """What the tenant's event log tells of one type, the newest first."""
    answer = await owner.get("/api/v1/event-log", params={"event_type": event_type})
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def query(services: Services, sql: str, *args: object) -> list[Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return list(await (await tx.raw()).fetch(sql, *args))


async def found(services: Services, sql: str, *args: object) -> list[Any]:
    """The rows of a query, once there are some."""
    async with asyncio.timeout(20):
        while not (rows := await query(services, sql, *args)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return rows


async def bodies(services: Services, door: dict[str, Any]) -> list[bytes]:
    """What is stored of it, byte by byte."""
    sql = "SELECT body FROM incoming_payloads WHERE webhook_id = $1 ORDER BY id"
    return [row["body"] for row in await query(services, sql, door["id"])]


async def refused_field(caller: Client, field: str, body: object) -> str:
    error = refused(await caller.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {field}
    told: str = error["details"][field]
    return told
