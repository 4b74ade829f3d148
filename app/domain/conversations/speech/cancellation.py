"""Ends work that nobody waits for."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from app.kit import logs
from app.kit.errors import ClientGone

log = logs.get("cancellation")

T = TypeVar("T")
_REPEAT_SECONDS = 0.5


async def run_unless(client_gone: Awaitable[object], coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the coroutine's result. Cancels it and raises ClientGone when `client_gone` ends
    first; what the coroutine then raises is logged.
    """
    running = asyncio.create_task(coroutine)
    watching = asyncio.ensure_future(client_gone)
    try:
        await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
    finally:
        await cancel([running, watching])
    if not running.cancelled() and (error := running.exception()) is not None:
        log.warning("a cancelled request failed", exc_info=error)
    raise ClientGone("The client disconnected before the request was complete")


async def cancel(tasks: list[asyncio.Future[Any]]) -> None:
    """Cancels tasks and waits for their end. Cancels again what goes on: a library may catch a
    cancellation, as the Redis client does while it connects. Raises no error of theirs.
    """
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_REPEAT_SECONDS)
    for task in tasks:
        if not task.cancelled():
            # Otherwise asyncio reports an error when the task is collected.
            task.exception()
