"""Small tasks that must end although whoever began them is gone, like keeping half a reply."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from app.kit import logs

log = logs.get("background")

T = TypeVar("T")
_DRAIN_SECONDS = 10
_running: set[asyncio.Task[Any]] = set()


def spawn(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a task in the background failed", exc_info=error)


async def drain() -> None:
    """Before the parts are closed: wait for what still runs on this loop."""
    loop = asyncio.get_running_loop()
    mine = [task for task in _running if task.get_loop() is loop]
    if mine:
        await asyncio.wait(mine, timeout=_DRAIN_SECONDS)
