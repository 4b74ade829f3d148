"""Requests that the tests of streamed chat share."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from tests.server import Server
from tests.talk import Talker, events_in
from tests.world import Client


@asynccontextmanager
async def remote_client(server: Server, who: Client) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {who.token}"} if who.token else {}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, timeout=30, limits=limits
    ) as made:
        yield made


async def stream_chat(
    server: Server, talk: Talker, message: str = "Hi", **more: Any
) -> list[tuple[str, Any]]:
    async with remote_client(server, talk.client) as remote:
        body = {"message": message, **more}
        answer = await remote.post(f"{talk.path}/chat/stream", json=body)
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


@asynccontextmanager
async def while_reading(
    server: Server, talk: Talker, **more: Any
) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
    """The events of a stream one by one. Leaving closes the connection."""
    async with (
        remote_client(server, talk.client) as remote,
        remote.stream("POST", f"{talk.path}/chat/stream", json={"message": "Hi", **more}) as answer,
    ):
        assert answer.status_code == 200
        yield read_events(answer)


async def read_events(answer: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    rest = ""
    async for text in answer.aiter_text():
        *whole, rest = (rest + text).split("\n\n")
        for block in whole:
            for found in events_in(block + "\n\n"):
                yield found


async def list_messages(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/api/v1/conversations/{conversation_id}/messages")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def first_message_id(events: list[tuple[str, Any]]) -> str:
    assert events[0][0] == "message_start"
    conversation_id: str = events[0][1]["conversation_id"]
    return conversation_id


class SilentModel:
    """Takes questions, says some bytes or none, and notes when the asker hangs up."""

    def __init__(self, said: bytes = b"") -> None:
        self.said = said
        self.open = 0
        self.asked = 0
        self.url = ""
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.asked += 1
            self.open += 1
            try:
                if self.said:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + self.said
                    )
                    await writer.drain()
                await reader.read()
            finally:
                self.open -= 1
        writer.close()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


def delta(text: str) -> bytes:
    chunk = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def on_silent(talk: Talker, silent: SilentModel, **fields: Any) -> Talker:
    """An agent of the same user whose model is the silent one."""
    key = {"provider": "silent", "name": "S", "api_key": "sk-silent-1", "base_url": silent.url}
    answer = await talk.client.post("/api/v1/api-keys", key)
    assert answer.status_code == 201, answer.text
    return await talk.agent(primary_model="silent/model", **fields)
