"""Requests that send messages and read conversations, and the events of a turn."""

from typing import Any

import httpx

from tests.scripted_agents import Talker
from tests.world import Client


def conversation_path(conversation_id: str) -> str:
    return f"/api/v1/conversations/{conversation_id}"


async def send_chat(
    caller: Client, talk: Talker, message: str = "Hi", **more: Any
) -> httpx.Response:
    return await caller.post(f"{talk.path}/chat", {"message": message, **more})


async def start_conversation(
    talk: Talker, message: str = "Hi", caller: Client | None = None
) -> str:
    answer = await send_chat(caller or talk.client, talk, message)
    assert answer.status_code == 200, answer.text
    conversation_id: str = answer.json()["conversation_id"]
    return conversation_id


async def list_conversations(
    talk: Talker, caller: Client | None = None, **params: Any
) -> dict[str, Any]:
    """Returns one page, with its pagination."""
    answer = await (caller or talk.client).get(f"{talk.path}/conversations", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def list_ids(talk: Talker, caller: Client | None = None, **params: Any) -> list[str]:
    return [item["id"] for item in (await list_conversations(talk, caller, **params))["data"]]


async def count_conversations(talk: Talker) -> int:
    total: int = (await list_conversations(talk))["pagination"]["total"]
    return total


async def get_conversation(talk: Talker, conversation_id: str) -> dict[str, Any]:
    answer = await talk.client.get(conversation_path(conversation_id))
    assert answer.status_code == 200, answer.text
    conversation: dict[str, Any] = answer.json()
    return conversation


async def list_messages(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"{conversation_path(conversation_id)}/messages")
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["data"]
    return messages


async def list_event_data(talk: Talker, kind: str) -> list[dict[str, Any]]:
    """Returns the data of the agent's events of one type, the oldest first."""
    params: dict[str, Any] = {"event_type": kind, "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    assert answer.status_code == 200, answer.text
    events = [entry["data"] for entry in reversed(answer.json()["data"])]
    return [data for data in events if data["agent_id"] == talk.agent_id]


async def create_visitor_headers(talk: Talker) -> dict[str, str]:
    """Creates an embed key of the agent and returns the headers that carry it."""
    body = {"agent_id": talk.agent_id, "name": "Site"}
    answer = await talk.client.post("/api/v1/embed/api-keys", body)
    assert answer.status_code == 201, answer.text
    return {"x-api-key": answer.json()["api_key"]}


def has_asked(talk: Talker, more_than: int = 0) -> bool:
    """True when the model has received more requests than that."""
    return len(talk.asked) > more_than
