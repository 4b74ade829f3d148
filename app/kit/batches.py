"""Many small writes of one kind as few larger ones, without making anybody wait for company.

The first to come goes at once, alone. Who comes while it is on its way waits for its end, and goes
together with everybody else who did. The busier it gets, the larger the batches.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from app.kit import background

T = TypeVar("T")
R = TypeVar("R")
# An answer for each item, in their order; an exception is for the one in whose place it is.
Run = Callable[[list[T]], Awaitable[list[R | Exception]]]

MOST = 32


class Batches:
    def __init__(self) -> None:
        self._lanes: dict[Hashable, list[tuple[Any, asyncio.Future[Any]]]] = {}

    async def join(self, lane: Hashable, item: T, run: Run[T, R]) -> R:
        """`run` gets the items of one lane only. Who stops waiting is left out, if it has not
        begun.
        """
        waiting = self._lanes.get(lane)
        if waiting is not None:
            future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
            waiting.append((item, future))
            return await future
        self._lanes[lane] = []
        try:
            (found,) = await run([item])
        finally:
            if self._lanes[lane]:
                background.spawn(self._serve(lane, run))
            else:
                del self._lanes[lane]
        if isinstance(found, Exception):
            raise found
        return found

    async def _serve(self, lane: Hashable, run: Run[Any, Any]) -> None:
        """Batch after batch, until nobody waits any more."""
        try:
            while waiting := [some for some in self._lanes[lane] if not some[1].done()]:
                self._lanes[lane] = waiting[MOST:]
                await _answer(waiting[:MOST], run)
        finally:
            _refuse(self._lanes.pop(lane), "nobody is left to serve it")


async def _answer(batch: list[tuple[Any, asyncio.Future[Any]]], run: Run[Any, Any]) -> None:
    try:
        answers = await run([item for item, _ in batch])
    except Exception as error:  # noqa: BLE001  # passed on to everybody in it
        answers = [error] * len(batch)
    except BaseException:
        _refuse(batch, "it was cut off")
        raise
    for (_, future), answer in zip(batch, answers, strict=True):
        if isinstance(answer, Exception) and not future.done():
            future.set_exception(answer)
        elif not future.done():
            future.set_result(answer)


def _refuse(batch: list[tuple[Any, asyncio.Future[Any]]], why: str) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(RuntimeError(f"a batch ended early: {why}"))
