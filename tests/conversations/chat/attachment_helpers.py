"""Files that are attached to messages."""

from typing import Any

import httpx

from tests.scripted_agents import Talker
from tests.world import Client

NOTE = b"The code of the safe is 4711."


async def send_file(
    talk: Talker, name: str = "note.txt", content: bytes = NOTE, caller: Client | None = None
) -> httpx.Response:
    files = {"file": (name, content, "application/octet-stream")}
    client = caller or talk.client
    return await client.post(f"{talk.path}/attachments", files=files)


async def attach(
    talk: Talker, name: str = "note.txt", content: bytes = NOTE, caller: Client | None = None
) -> dict[str, Any]:
    answer = await send_file(talk, name, content, caller)
    assert answer.status_code == 201, answer.text
    attachment: dict[str, Any] = answer.json()
    return attachment


def asked_texts(talk: Talker) -> list[str]:
    """What the model was asked the last time, without the prompt."""
    return [message["content"] for message in talk.asked[-1]["messages"][1:]]
