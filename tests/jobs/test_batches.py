"""Batches: which items run together, and which callers receive an error."""

import asyncio

import pytest

from app.jobs import background
from app.jobs.batches import MAX_BATCH, Batches


class Writer:
    """Writes batches of numbers and waits for an event before each result."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go_on = asyncio.Event()

    async def run(self, items: list[int]) -> list[int | Exception]:
        self.batches.append(items)
        await self.go_on.wait()
        return [ValueError(f"{item}") if item < 0 else item * 10 for item in items]


async def _run_ready_tasks() -> None:
    """Runs all tasks that wait for no event."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_item_runs_at_once_and_the_others_together() -> None:
    batches, writer = Batches(), Writer()
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in range(6)]
    await _run_ready_tasks()
    assert writer.batches == [[0]]
    writer.go_on.set()
    assert await asyncio.gather(*tasks) == [0, 10, 20, 30, 40, 50]
    assert writer.batches == [[0], [1, 2, 3, 4, 5]]


async def test_groups_are_independent() -> None:
    batches, slow, quick = Batches(), Writer(), Writer()
    quick.go_on.set()
    waiting = asyncio.create_task(batches.join("slow", 1, slow.run))
    await _run_ready_tasks()
    assert await batches.join("quick", 2, quick.run) == 20
    slow.go_on.set()
    assert await waiting == 10


async def test_batches_have_a_maximal_size_and_all_items_run() -> None:
    batches, writer = Batches(), Writer()
    count = 2 * MAX_BATCH + 5
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in range(count)]
    await _run_ready_tasks()
    writer.go_on.set()
    assert await asyncio.gather(*tasks) == [number * 10 for number in range(count)]
    assert max(map(len, writer.batches)) == MAX_BATCH
    assert [item for batch in writer.batches for item in batch] == list(range(count))


async def test_an_error_of_an_item_goes_to_its_caller() -> None:
    batches, writer = Batches(), Writer()
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in (-1, 2, -3)]
    await _run_ready_tasks()
    writer.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [repr(item) for item in results] == ["ValueError('-1')", "20", "ValueError('-3')"]


async def test_a_failed_batch_fails_for_all_its_callers_and_no_later_ones() -> None:
    batches, writer = Batches(), Writer()

    async def fail(items: list[int]) -> list[int | Exception]:
        writer.batches.append(items)
        await writer.go_on.wait()
        raise ConnectionError("unavailable")

    tasks = [asyncio.create_task(batches.join("a", number, fail)) for number in range(3)]
    await _run_ready_tasks()
    writer.go_on.set()
    for task in tasks:
        with pytest.raises(ConnectionError):
            await task
    assert await batches.join("a", 7, writer.run) == 70


async def test_a_cancelled_item_is_left_out_of_its_batch() -> None:
    batches, writer = Batches(), Writer()
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in range(4)]
    await _run_ready_tasks()
    tasks[2].cancel()
    await _run_ready_tasks()
    writer.go_on.set()
    assert [await tasks[0], await tasks[1], await tasks[3]] == [0, 10, 30]
    assert writer.batches == [[0], [1, 3]]


async def test_the_next_batch_runs_after_the_first_caller_is_cancelled() -> None:
    batches, writer = Batches(), Writer()
    first = asyncio.create_task(batches.join("a", 1, writer.run))
    await _run_ready_tasks()
    second = asyncio.create_task(batches.join("a", 2, writer.run))
    await _run_ready_tasks()
    first.cancel()
    writer.go_on.set()
    assert await second == 20
    await background.drain()
    assert await batches.join("a", 3, writer.run) == 30
