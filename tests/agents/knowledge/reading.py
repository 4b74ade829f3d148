"""Reads documents in the test process: most of a test would be the start of a process for each."""

import asyncio

import pytest

from app.domain.agents.knowledge import parsing
from app.domain.agents.knowledge.chunks import Chunk
from app.domain.agents.knowledge.parsing import Kind, Unreadable
from app.domain.agents.knowledge.readers import formats
from app.domain.agents.knowledge.readers.cutting import Refused

read_in_child = parsing.read_chunks


def read_here(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parsing, "read_chunks", _read_here)


async def _read_here(content: bytes, kind: Kind) -> list[Chunk]:
    try:
        chunks = await asyncio.to_thread(formats.read_chunks, content, kind)
    except Refused as error:
        raise Unreadable(str(error)) from None
    return [Chunk(*chunk) for chunk in chunks]
