import asyncio

import pytest

from app.jobs import background


async def test_what_must_not_be_interrupted_outlives_several_cancellations() -> None:
    release, ended = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        await release.wait()
        ended.set()

    caller = asyncio.create_task(background.run_to_end(write()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not caller.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()


async def test_the_error_of_what_was_not_interrupted_reaches_its_caller() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await background.run_to_end(fail())
