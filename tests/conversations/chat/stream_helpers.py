"""Streamed chat over a socket, and a model that falls silent."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from tests.http_clients import open_client
from tests.scripted_agents import Talker, events_in
from tests.server import Server
from tests.world import Client


@asynccontextmanager
async def connect(server: Server, caller: Client) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {caller.token}"} if caller.token else {}
    limits = httpx.Limits(max_connections=None)
    async with open_client(
        base_url=server.url, headers=headers, timeout=30, limits=limits
    ) as client:
        yield client


async def post_stream(
    server: Server, talk: Talker, body: Any, caller: Client | None = None
) -> httpx.Response:
    """Sends a request for a stream and returns the response with its whole body."""
    async with connect(server, caller or talk.client) as client:
        return await client.post(f"{talk.path}/chat/stream", json=body)


async def stream_chat(
    server: Server, talk: Talker, message: str = "Hi", **more: Any
) -> list[tuple[str, Any]]:
    answer = await post_stream(server, talk, {"message": message, **more})
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


@asynccontextmanager
async def open_stream(
    server: Server, talk: Talker, **more: Any
) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
    """Yields the events of a stream one by one, and disconnects at the end of the block."""
    async with (
        connect(server, talk.client) as client,
        client.stream("POST", f"{talk.path}/chat/stream", json={"message": "Hi", **more}) as answer,
    ):
        assert answer.status_code == 200
        yield _read_events(answer)


async def _read_events(answer: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    rest = ""
    async for text in answer.aiter_text():
        *blocks, rest = (rest + text).split("\n\n")
        for block in blocks:
            for event in events_in(block + "\n\n"):
                yield event


def conversation_of(events: list[tuple[str, Any]]) -> str:
    """Returns the conversation id of a stream's first event."""
    name, data = events[0]
    assert name == "message_start"
    conversation_id: str = data["conversation_id"]
    return conversation_id


class SilentModel:
    """Reads requests, sends `response` and then nothing, until the client disconnects."""

    def __init__(self) -> None:
        self.response = b""
        self.connections = 0
        self.requests = 0
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
            self.requests += 1
            self.connections += 1
            try:
                if self.response:
                    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
                    writer.write(head + self.response)
                    await writer.drain()
                await reader.read()
            finally:
                self.connections -= 1
        writer.close()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


def encode_delta(text: str) -> bytes:
    chunk = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def create_silent_agent(talk: Talker, model: SilentModel, **fields: Any) -> Talker:
    """Creates an agent of the same user that uses the silent model."""
    key = {"provider": "silent", "name": "S", "api_key": "sk-silent-1", "base_url": model.url}
    answer = await talk.client.post("/api/v1/api-keys", key)
    assert answer.status_code == 201, answer.text
    return await talk.agent(primary_model="silent/model", **fields)
