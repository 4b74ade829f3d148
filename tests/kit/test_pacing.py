import asyncio
import time

from app.kit.pacing import Pace


def _compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_other_tasks_have_turns_during_a_long_computation() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count_turns())
    pace = Pace()
    for _ in range(20):
        _compute(0.005)
        await pace.rest()
    task.cancel()
    assert 3 <= turns <= 6


async def test_a_short_computation_does_not_wait_for_others() -> None:
    pace, has_run = Pace(), asyncio.Event()
    asyncio.get_running_loop().call_soon(has_run.set)
    await pace.rest()
    assert not has_run.is_set()
