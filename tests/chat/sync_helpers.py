"""Requests and rows that the tests of synchronous chat share."""

from typing import Any

import httpx

from app.services import Services
from db.session import ALL_TENANTS
from tests.talk import Talker
from tests.world import Client


async def read_value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


async def send_chat(who: Client, talk: Talker, message: str = "Hi", **more: Any) -> httpx.Response:
    return await who.post(f"{talk.path}/chat", {"message": message, **more})


async def list_messages(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/api/v1/conversations/{conversation_id}/messages")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def count_conversations(talk: Talker) -> int:
    answer = await talk.client.get(f"{talk.path}/conversations")
    total: int = answer.json()["pagination"]["total"]
    return total


async def list_events(talk: Talker, kind: str) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"event_type": kind, "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    entries = answer.json()["data"]
    return [entry for entry in reversed(entries) if entry["data"]["agent_id"] == talk.agent_id]
