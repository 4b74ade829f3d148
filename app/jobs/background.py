"""Background tasks that finish after their request has ended, like storing a partial reply."""

import asyncio
import contextvars
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from app.kit import logs
from db import connection_use

log = logs.get("background")

T = TypeVar("T")
_DRAIN_SECONDS = 10
_running: set[asyncio.Task[Any]] = set()
_busy: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def spawn(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = start(coroutine)
    _running.add(task)
    task.add_done_callback(_finish)
    return task


def start(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Creates a task that outlives its creator: its connections are not those of the creator."""
    context = contextvars.copy_context()
    context.run(connection_use.begin)
    return asyncio.create_task(coroutine, context=context)


async def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that must not be interrupted, such as one that holds a lease during a
    commit: a cancelled caller waits for its end.
    """
    task = asyncio.create_task(coroutine)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            # It may be cancelled again, for example by its timeout and then by a stopping worker.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            # The caller's cancellation is raised instead.
            task.exception()
        raise


def is_cancelled() -> bool:
    """True when the current task was cancelled, even if a library has caught the cancellation, as
    the Redis client does while it connects.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _finish(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a background task failed", exc_info=error)


@contextmanager
def busy() -> Iterator[None]:
    """Makes `drain` wait: the block, for example a turn, spawns a task when it is cancelled."""
    loop = asyncio.get_running_loop()
    _busy[loop] = _busy.get(loop, 0) + 1
    try:
        yield
    finally:
        _busy[loop] -= 1


async def drain() -> None:
    """Waits for the background tasks of this loop; to be called before services are closed."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _DRAIN_SECONDS
    while loop.time() < deadline:
        tasks = [task for task in _running if task.get_loop() is loop]
        if tasks:
            await asyncio.wait(tasks, timeout=max(0, deadline - loop.time()))
        elif _busy.get(loop):
            await asyncio.sleep(0.02)
        else:
            return
