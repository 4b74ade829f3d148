"""Combines many small writes into few larger ones, without a delay for single writes.

The first item of a group runs at once, alone. Items that arrive while a batch runs form the next
batch. Batches grow with the load.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, TypeVar

import asyncpg

from app.jobs import background
from db import fast

T = TypeVar("T")
R = TypeVar("R")
# Returns a result or an exception for each item, in the order of the items.
Run = Callable[[list[T]], Awaitable[Sequence[R | Exception]]]

MAX_BATCH = 32


class Batches:
    def __init__(self) -> None:
        self._groups: dict[Hashable, list[tuple[Any, asyncio.Future[Any]]]] = {}

    async def join(self, group: Hashable, item: T, run: Run[T, R]) -> R:
        """Returns the result of one item. `run` receives items of this group only; an item whose
        caller is cancelled before its batch starts is left out.
        """
        waiting = self._groups.get(group)
        if waiting is not None:
            future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
            waiting.append((item, future))
            return await future
        self._groups[group] = []
        try:
            (result,) = await run([item])
        finally:
            if self._groups[group]:
                background.spawn(self._run_batches(group, run))
            else:
                del self._groups[group]
        if isinstance(result, Exception):
            raise result
        return result

    async def _run_batches(self, group: Hashable, run: Run[Any, Any]) -> None:
        """Runs batches until no item of the group waits."""
        try:
            while waiting := [entry for entry in self._groups[group] if not entry[1].done()]:
                self._groups[group] = waiting[MAX_BATCH:]
                await _run_batch(waiting[:MAX_BATCH], run)
        finally:
            _fail(self._groups.pop(group), "its group was closed")


async def _run_batch(batch: list[tuple[Any, asyncio.Future[Any]]], run: Run[Any, Any]) -> None:
    try:
        results = await run([item for item, _ in batch])
    except Exception as error:  # noqa: BLE001  # passed on to every caller
        results = [error] * len(batch)
    except BaseException:
        _fail(batch, "it was cancelled")
        raise
    for (_, future), result in zip(batch, results, strict=True):
        if isinstance(result, Exception) and not future.done():
            future.set_exception(result)
        elif not future.done():
            future.set_result(result)


def _fail(batch: list[tuple[Any, asyncio.Future[Any]]], reason: str) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(RuntimeError(f"a batch ended early: {reason}"))


async def run_together(
    items: list[T], run: Callable[[list[T]], Awaitable[list[R]]]
) -> list[R | Exception]:
    """Runs all items in one transaction. When Postgres refuses it because of one of them, runs each
    alone: only that one gets the error.
    """
    try:
        return list(await run(items))
    except asyncpg.PostgresError as error:
        if len(items) == 1 or not fast.was_refused(error):
            raise
    results: list[R | Exception] = []
    for item in items:
        try:
            results += await run([item])
        except Exception as error:  # noqa: BLE001  # raised to the caller that waits for this item
            results.append(error)
    return results
