"""Reads HTTP responses of model providers with size limits: whole bodies and event streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import aiohttp

from .protocol import Target
from .provider_failures import answer_too_long

MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_LINE_BYTES = 1024 * 1024
_END_SECONDS = 0.2
_DONE = b"[DONE]"


async def read_body(
    target: Target, response: aiohttp.ClientResponse, max_bytes: int = MAX_BYTES
) -> bytes:
    content = bytearray()
    async for packet in response.content.iter_any():
        content += packet
        if len(content) > max_bytes:
            raise answer_too_long(target)
    return bytes(content)


async def read_events(
    target: Target, response: aiohttp.ClientResponse
) -> AsyncIterator[list[bytes]]:
    """Yields the data of the events that each packet completes, up to `[DONE]`."""
    total, unfinished, unfinished_bytes = 0, list[bytes](), 0
    async for packet in response.content.iter_any():
        total += len(packet)
        head, newline, tail = packet.rpartition(b"\n")
        if not newline:
            unfinished.append(packet)
            unfinished_bytes += len(packet)
        if total > MAX_BYTES or unfinished_bytes > _MAX_LINE_BYTES:
            raise answer_too_long(target)
        if not newline:
            continue
        lines = b"".join([*unfinished, head]).split(b"\n")
        unfinished, unfinished_bytes = [tail], len(tail)
        events = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        if _DONE in events:
            yield list(filter(None, events[: events.index(_DONE)]))
            await _read_to_end(response)
            return
        yield list(filter(None, events))


async def _read_to_end(response: aiohttp.ClientResponse) -> None:
    """Waits shortly for the end of the response: only then is its connection used again."""
    with suppress(TimeoutError, aiohttp.ClientError):
        if not response.content.at_eof():
            async with asyncio.timeout(_END_SECONDS):
                await response.content.readany()
