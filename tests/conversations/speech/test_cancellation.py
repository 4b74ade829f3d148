"""Coroutines that end when their client goes away."""

import asyncio
import gc
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from app.domain.conversations.speech.cancellation import run_unless
from app.kit.errors import ClientGone


async def _fail(message: str = "failed") -> None:
    raise ValueError(message)


async def test_the_result_or_the_error_of_the_coroutine_is_passed_on() -> None:
    gone = asyncio.Event()
    assert await run_unless(gone.wait(), asyncio.sleep(0, "result")) == "result"
    with pytest.raises(ValueError, match="failed"):
        await run_unless(gone.wait(), _fail())


async def test_a_client_that_goes_away_cancels_the_coroutine() -> None:
    gone, ended = asyncio.Event(), asyncio.Event()

    async def wait_forever() -> None:
        gone.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(ClientGone):
        await run_unless(gone.wait(), wait_forever())
    assert ended.is_set()


async def test_a_coroutine_that_catches_a_cancellation_is_cancelled_again() -> None:
    gone, caught = asyncio.Event(), asyncio.Event()

    async def go_on_once() -> None:
        gone.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        caught.set()
        await asyncio.Event().wait()

    with pytest.raises(ClientGone):
        await run_unless(gone.wait(), go_on_once())
    assert caught.is_set()


async def test_a_cancelled_caller_takes_the_coroutine_along() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait_forever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(run_unless(asyncio.Event().wait(), wait_forever()))
    await started.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_an_error_that_nobody_gets_is_retrieved() -> None:
    """Otherwise asyncio reports it when the task is collected, without saying whose it was."""
    reports: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, report: reports.append(report))

    async def fail_when_cancelled(message: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError(message)

    coroutine, watcher = "the coroutine while it is cancelled", "the watcher while it is cancelled"
    cases: list[tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None], type[Exception]]] = [
        (asyncio.sleep(0), fail_when_cancelled(coroutine), ClientGone),
        (_fail("the watcher"), asyncio.sleep(60), ClientGone),
        (_fail("both, the watcher"), _fail("both, the coroutine"), ValueError),
        (fail_when_cancelled(watcher), _fail(), ValueError),
    ]
    for client_gone, task, error in cases:
        with pytest.raises(error):
            await run_unless(client_gone, task)
    # Once: a collection takes nearly a second here. A report has the exception with its message.
    gc.collect()
    loop.set_exception_handler(None)
    assert reports == []
