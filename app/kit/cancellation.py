"""Ends what nobody waits for any more."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from app.kit.errors import ClientGone

T = TypeVar("T")
_REPEAT_SECONDS = 0.5


async def run_unless(client_gone: Awaitable[object], coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the coroutine's result. Cancels it and raises ClientGone when `client_gone` ends
    first.
    """
    running = asyncio.create_task(coroutine)
    watching = asyncio.ensure_future(client_gone)
    try:
        await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise ClientGone("The client disconnected before the request was complete")
        return running.result()
    finally:
        await cancel([running, watching])


async def cancel(tasks: list[asyncio.Future[Any]]) -> None:
    """Cancels tasks and waits for their end. Cancels again what goes on: a library may catch a
    cancellation, as the Redis client does while it connects.
    """
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_REPEAT_SECONDS)
