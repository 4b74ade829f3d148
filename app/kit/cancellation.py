"""Ends what nobody waits for any more."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from app.kit.errors import ClientGone

T = TypeVar("T")


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
        for task in (running, watching):
            task.cancel()
        await asyncio.wait([running, watching])
