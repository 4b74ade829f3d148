"""Conversations that fill in a form, as visitors have them."""

from typing import Any

import httpx
import msgspec

from tests.forms.api import PUBLIC
from tests.world import Client

GUESTS: dict[str, Any] = {
    "id": "guests",
    "type": "number",
    "label": "How many guests?",
    "validation": {"min": 1, "max": 9},
}
MAIL = "ada@example.com"


class Chat(msgspec.Struct):
    """A visitor, the form and the conversation."""

    client: Client
    form: dict[str, Any]
    id: str
    question: dict[str, Any]

    @property
    def path(self) -> str:
        return f"{PUBLIC}/{self.form['slug']}/conversations/{self.id}"

    async def send(self, content: str, **more: Any) -> httpx.Response:
        return await self.client.post(f"{self.path}/messages", {"content": content}, **more)

    async def say(self, *contents: str) -> dict[str, Any]:
        """Sends messages one after the other; returns the last turn."""
        turn: dict[str, Any] = {}
        for content in contents:
            answer = await self.send(content)
            assert answer.status_code == 200, answer.text
            turn = answer.json()["data"]
        return turn

    async def get(self) -> dict[str, Any]:
        answer = await self.client.get(self.path)
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] = answer.json()["data"]
        return view

    async def list_messages(self) -> list[dict[str, Any]]:
        answer = await self.client.get(f"{self.path}/messages")
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found


async def send_start(
    client: Client, form: dict[str, Any], data: dict[str, Any] | None = None, **more: Any
) -> httpx.Response:
    body = None if data is None else {"data": data}
    return await client.post(f"{PUBLIC}/{form['slug']}/conversations", body, **more)


async def start(client: Client, form: dict[str, Any], data: dict[str, Any] | None = None) -> Chat:
    answer = await send_start(client, form, data)
    assert answer.status_code == 201, answer.text
    body = answer.json()
    return Chat(client, form, body["data"]["id"], body["message"])


def reply_of(turn: dict[str, Any]) -> str:
    content: str = turn["assistant_message"]["content"]
    return content
