"""Few larger writes instead of many small ones: who goes with whom, who pays for whose fault."""

import asyncio

import pytest

from app.kit import background
from app.kit.batches import MAX_BATCH, Batches


class Writer:
    """Writes numbers, one batch at a time, when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go_on = asyncio.Event()

    async def run(self, items: list[int]) -> list[int | Exception]:
        self.batches.append(items)
        await self.go_on.wait()
        return [ValueError(f"{item}") if item < 0 else item * 10 for item in items]


async def _turns() -> None:
    """Everything that can run without news has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_goes_at_once_and_the_others_together() -> None:
    batches, writer = Batches(), Writer()
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in range(6)]
    await _turns()
    assert writer.batches == [[0]]
    writer.go_on.set()
    assert await asyncio.gather(*tasks) == [0, 10, 20, 30, 40, 50]
    assert writer.batches == [[0], [1, 2, 3, 4, 5]]


async def test_each_lane_goes_its_own_way() -> None:
    batches, slow, quick = Batches(), Writer(), Writer()
    quick.go_on.set()
    waiting = asyncio.create_task(batches.join("slow", 1, slow.run))
    await _turns()
    assert await batches.join("quick", 2, quick.run) == 20
    slow.go_on.set()
    assert await waiting == 10


async def test_a_batch_has_a_size_and_nobody_is_left_behind() -> None:
    batches, writer = Batches(), Writer()
    count = 2 * MAX_BATCH + 5
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in range(count)]
    await _turns()
    writer.go_on.set()
    assert await asyncio.gather(*tasks) == [number * 10 for number in range(count)]
    assert max(map(len, writer.batches)) == MAX_BATCH
    assert [item for batch in writer.batches for item in batch] == list(range(count))


async def test_what_is_wrong_with_one_is_told_to_that_one() -> None:
    batches, writer = Batches(), Writer()
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in (-1, 2, -3)]
    await _turns()
    writer.go_on.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [repr(item) for item in found] == ["ValueError('-1')", "20", "ValueError('-3')"]


async def test_a_batch_that_fails_as_a_whole_fails_for_everybody_in_it_and_nobody_after() -> None:
    batches, writer = Batches(), Writer()

    async def fail(items: list[int]) -> list[int | Exception]:
        writer.batches.append(items)
        await writer.go_on.wait()
        raise ConnectionError("away")

    tasks = [asyncio.create_task(batches.join("a", number, fail)) for number in range(3)]
    await _turns()
    writer.go_on.set()
    for task in tasks:
        with pytest.raises(ConnectionError):
            await task
    assert await batches.join("a", 7, writer.run) == 70


async def test_who_stops_waiting_is_left_out_and_holds_up_nobody() -> None:
    batches, writer = Batches(), Writer()
    tasks = [asyncio.create_task(batches.join("a", number, writer.run)) for number in range(4)]
    await _turns()
    tasks[2].cancel()
    await _turns()
    writer.go_on.set()
    assert [await tasks[0], await tasks[1], await tasks[3]] == [0, 10, 30]
    assert writer.batches == [[0], [1, 3]]


async def test_who_was_cancelled_on_the_way_hands_the_lane_on() -> None:
    batches, writer = Batches(), Writer()
    first = asyncio.create_task(batches.join("a", 1, writer.run))
    await _turns()
    second = asyncio.create_task(batches.join("a", 2, writer.run))
    await _turns()
    first.cancel()
    writer.go_on.set()
    assert await second == 20
    await background.drain()
    assert await batches.join("a", 3, writer.run) == 30
