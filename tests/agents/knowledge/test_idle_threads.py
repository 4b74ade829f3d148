"""Passages are encoded when nothing more urgent runs in the process."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from app.domain.agents.knowledge.encoders import idle_threads
from app.domain.agents.knowledge.encoders.idle_threads import IdleThreads


@pytest.fixture
async def threads() -> AsyncIterator[IdleThreads]:
    threads = IdleThreads()
    yield threads
    await threads.close()


async def test_parts_wait_while_documents_are_read(threads: IdleThreads) -> None:
    started = threading.Event()
    with threads.give_way():
        with threads.give_way():
            encoding = asyncio.ensure_future(threads.map(lambda _: started.set(), [0]))
        # The first of the two still reads.
        assert not await asyncio.to_thread(started.wait, 0.2)
    await encoding
    assert started.is_set()


async def test_where_documents_are_read_without_an_end_parts_are_encoded_all_the_same(
    threads: IdleThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_threads, "_MAX_PAUSE_SECONDS", 0.1)
    with threads.give_way():
        assert await threads.map(lambda part: part + 1, [1, 2]) == [2, 3]
