"""Requests of the notification center."""

from typing import Any

from tests.platform.events.responses import post_json, read_json
from tests.world import Client

PATH = "/api/v1/notifications"
CHANNELS = "/api/v1/notification-channels"
KEYS = {"id", "type", "title", "message", "read", "data", "created_at"}


async def read_page(client: Client, **params: Any) -> dict[str, Any]:
    page: dict[str, Any] = read_json(await client.get(PATH, params=params))
    return page


async def list_notifications(client: Client, **params: Any) -> list[dict[str, Any]]:
    notifications: list[dict[str, Any]] = (await read_page(client, **params))["data"]
    return notifications


async def list_titles(client: Client, **params: Any) -> list[str]:
    return [item["title"] for item in await list_notifications(client, **params)]


async def count_unread(client: Client) -> int:
    body = read_json(await client.get(f"{PATH}/unread/count"))
    assert body.keys() == {"count"}
    count: int = body["count"]
    return count


async def set_preferences(client: Client, **types: dict[str, Any]) -> dict[str, Any]:
    """Returns all preferences after the change."""
    answer = await client.put(f"{PATH}/preferences", {"preferences": types})
    preferences: dict[str, Any] = read_json(answer)["preferences"]
    return preferences


async def read_preferences(client: Client) -> dict[str, Any]:
    body = read_json(await client.get(f"{PATH}/preferences"))
    assert body.keys() == {"preferences"}
    preferences: dict[str, Any] = body["preferences"]
    return preferences


async def send_by_hand(client: Client, **fields: Any) -> dict[str, Any]:
    body = {"title": "Maintenance", "message": "Tonight at ten.", **fields}
    sent: dict[str, Any] = await post_json(client, PATH, body, 202)
    return sent


async def send_test(client: Client, channel_type: str, **fields: Any) -> dict[str, Any]:
    """Sends a test to the caller that must succeed."""
    body = {"channel_type": channel_type, **fields}
    result: dict[str, Any] = await post_json(client, f"{PATH}/test", body, 200)
    return result
