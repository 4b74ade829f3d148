"""The timer that other tests here measure with sees what holds the loop."""

import asyncio
import time

from tests.loop.steps import StepTimer, watched_tasks


def _work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def _step() -> None:
    _work(0.05)
    await asyncio.sleep(0)
    _work(0.02)


async def _wait_for_callback() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    loop.call_later(0.01, _work, 0.05)
    loop.call_later(0.02, done.set)
    await done.wait()


async def _start_task() -> None:
    await asyncio.gather(asyncio.create_task(_step()), asyncio.sleep(0.001))


async def test_a_step_of_a_task_is_measured_by_its_name() -> None:
    timer = StepTimer()
    with watched_tasks():
        await timer.run(_start_task())
    assert timer.longest[0] == "_step"
    assert 0.05 <= timer.longest[1] < 0.07
    assert timer.seconds["_start_task"] < 0.02


async def test_a_callback_is_measured_apart_from_tasks() -> None:
    timer = StepTimer()
    with watched_tasks():
        await timer.run(_wait_for_callback())
    assert timer.longest[0] == "callbacks"
    assert timer.longest[1] >= 0.05
