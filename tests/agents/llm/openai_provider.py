"""A provider in OpenAI's wire format that sends exact bytes, and requests to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import AnswerPart, Target, Text
from tests.agents.llm.answers import KEY, make_request, read_failure, read_parts

MIB = 1024 * 1024
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve_connections(handler: Handler) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.partition(b":")[2])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                ),
                0,
            )
            await reader.readexactly(length)
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def serve_packets(*packets: bytes) -> AsyncIterator[str]:
    """Serves a provider that answers with exactly these packets and closes."""

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for packet in packets:
            writer.write(packet)
            await writer.drain()
            # Gives the client time to read the packet before the next one.
            await asyncio.sleep(0.0005)

    async with serve_connections(handle) as url:
        yield url


def make_target(url: str, model: str = "scripted/one", provider: str = "scripted") -> Target:
    return Target(model, provider, KEY, url)


async def request_parts(adapter: OpenAIAdapter, target: Target, **fields: Any) -> list[AnswerPart]:
    return join_texts(await read_parts(adapter, target, make_request(**fields)))


def join_texts(parts: Sequence[AnswerPart]) -> list[AnswerPart]:
    """Joins adjacent texts, because the network decides how many packets they arrive in."""
    joined: list[AnswerPart] = []
    for part in parts:
        if isinstance(part, Text) and joined and isinstance(last := joined[-1], Text):
            joined[-1] = Text(last.text + part.text)
        else:
            joined.append(part)
    return joined


async def request_failure(
    adapter: OpenAIAdapter, target: Target, **fields: Any
) -> tuple[ModelFailed, list[AnswerPart]]:
    return await read_failure(adapter, target, make_request(**fields))


def encode_event(**chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def encode_delta(**delta: Any) -> bytes:
    return encode_event(choices=[{"delta": delta, "finish_reason": None}])


@asynccontextmanager
async def serve_endlessly(head: bytes, packet: bytes) -> AsyncIterator[tuple[str, list[int]]]:
    """Serves a provider that sends the packet until the client leaves; counts the bytes."""
    sent_bytes = [0]

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while sent_bytes[0] < 64 * MIB:
            writer.write(packet)
            await writer.drain()
            sent_bytes[0] += len(packet)

    async with serve_connections(handle) as url:
        yield url, sent_bytes
