"""Requests that the tests of conversations share."""

from typing import Any

from app.services import Services
from db.session import ALL_TENANTS
from tests.talk import Talker
from tests.world import Client


async def run_sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


def conversation_path(conversation_id: str) -> str:
    return f"/api/v1/conversations/{conversation_id}"


async def begin_conversation(talk: Talker, message: str = "Hi", who: Client | None = None) -> str:
    answer = await (who or talk.client).post(f"{talk.path}/chat", {"message": message})
    assert answer.status_code == 200, answer.text
    found: str = answer.json()["conversation_id"]
    return found


async def list_conversations(
    talk: Talker, who: Client | None = None, **params: Any
) -> dict[str, Any]:
    answer = await (who or talk.client).get(f"{talk.path}/conversations", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def list_ids(talk: Talker, who: Client | None = None, **params: Any) -> list[str]:
    return [item["id"] for item in (await list_conversations(talk, who, **params))["data"]]


async def get_conversation(talk: Talker, conversation_id: str) -> dict[str, Any]:
    answer = await talk.client.get(conversation_path(conversation_id))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
