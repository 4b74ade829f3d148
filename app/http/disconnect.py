"""Ends what a request waits for when its client has closed its connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from app.http import idempotency
from app.http.dependencies import HttpRequest
from app.kit.errors import ClientGone

# Most requests end before they are watched: a watch costs a task.
_UNWATCHED_SECONDS = 1.0


async def wait_for_disconnect(request: HttpRequest) -> None:
    """To be awaited once the body is read: it takes the messages of the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def while_connected(request: HttpRequest) -> AsyncIterator[None]:
    """Cancels the block and raises ClientGone within two seconds after the client has closed its
    connection. To be entered once the body is read.
    """
    limit = asyncio.timeout(None)
    try:
        async with limit:
            watch = _Watch(request, limit)
            try:
                yield
            finally:
                watch.stop()
    except TimeoutError:
        if not limit.expired():
            raise
        raise ClientGone("The client disconnected before the request was complete") from None


def while_awaited(request: HttpRequest) -> AbstractAsyncContextManager[None]:
    """Like `while_connected`, but a request with an Idempotency-Key goes on to its end, because its
    repetition is promised the same answer. For callers who signed in: a visitor's request ends.
    """
    is_repeatable = request.headers.get(idempotency.HEADER) is not None
    return nullcontext() if is_repeatable else while_connected(request)


class _Watch:
    """Lets a timeout expire when the client disconnects."""

    def __init__(self, request: HttpRequest, limit: asyncio.Timeout) -> None:
        self._request = request
        self._limit = limit
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, self._start)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        await wait_for_disconnect(self._request)
        self._limit.reschedule(asyncio.get_running_loop().time())

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
