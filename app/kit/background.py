"""Small tasks that must end although whoever began them is gone, like keeping half a reply."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from app.kit import logs

log = logs.get("background")

T = TypeVar("T")
_DRAIN_SECONDS = 10
_running: set[asyncio.Task[Any]] = set()
_busy: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def spawn(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a task in the background failed", exc_info=error)


@contextmanager
def busy() -> Iterator[None]:
    """Something is going on that leaves a task behind should it be cut off: a turn, say."""
    loop = asyncio.get_running_loop()
    _busy[loop] = _busy.get(loop, 0) + 1
    try:
        yield
    finally:
        _busy[loop] -= 1


async def drain() -> None:
    """Before the parts are closed: wait for what still runs on this loop."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _DRAIN_SECONDS
    while loop.time() < deadline:
        mine = [task for task in _running if task.get_loop() is loop]
        if mine:
            await asyncio.wait(mine, timeout=max(0, deadline - loop.time()))
        elif _busy.get(loop):
            await asyncio.sleep(0.02)
        else:
            return
