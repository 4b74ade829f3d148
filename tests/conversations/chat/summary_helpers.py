"""Requests for lists of conversations over all agents."""

from datetime import datetime
from typing import Any

from tests.world import Client

PATH = "/api/v1/conversations"


async def get_page(caller: Client, **params: Any) -> dict[str, Any]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def list_summaries(caller: Client, **params: Any) -> list[dict[str, Any]]:
    summaries: list[dict[str, Any]] = (await get_page(caller, **params))["data"]
    return summaries


async def list_ids(caller: Client, **params: Any) -> list[str]:
    return [item["id"] for item in await list_summaries(caller, **params)]


async def list_pages(caller: Client, limit: int, **params: Any) -> list[list[str]]:
    """Returns the ids of all pages."""
    page = await get_page(caller, limit=limit, **params)
    pages = [[item["id"] for item in page["data"]]]
    while page["next_cursor"] is not None:
        page = await get_page(caller, limit=limit, cursor=page["next_cursor"], **params)
        pages.append([item["id"] for item in page["data"]])
    return pages


async def list_unread(caller: Client) -> list[str]:
    return await list_ids(caller, unread=True)


async def set_activity(talk: Any, times: dict[str, str]) -> None:
    """Sets the times of the last messages."""
    sql = "UPDATE conversations SET last_message_at = $2 WHERE id = $1"
    async with talk.world.services.db.tx(talk.client.tenant_id) as tx:
        for conversation_id, time in times.items():
            await (await tx.raw()).execute(sql, conversation_id, datetime.fromisoformat(time))


async def rate(caller: Client, reply: dict[str, Any], rating: str | None) -> None:
    path = f"{PATH}/{reply['conversation_id']}/messages/{reply['message']['id']}/feedback"
    answer = await caller.post(path, {"rating": rating})
    assert answer.status_code == 200, answer.text
