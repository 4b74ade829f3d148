"""Threads for computations of tenants."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from app.jobs.threads import TenantThreads

_variable: ContextVar[str] = ContextVar("variable", default="")


@pytest.fixture
async def threads() -> AsyncIterator[TenantThreads]:
    threads = TenantThreads(2)
    yield threads
    await threads.close()


async def test_a_function_runs_in_another_thread_with_the_context(threads: TenantThreads) -> None:
    _variable.set("request")
    ident, value = await threads.run("a", lambda: (threading.get_ident(), _variable.get()))
    assert (ident == threading.get_ident(), value) == (False, "request")
    with pytest.raises(ZeroDivisionError):
        await threads.run("a", divmod, 1, 0)


async def test_a_tenant_has_one_thread_at_a_time(threads: TenantThreads) -> None:
    started, end = threading.Semaphore(0), threading.Event()

    def wait() -> None:
        started.release()
        end.wait(10)

    first = [asyncio.create_task(threads.run("a", wait)) for _ in range(3)]
    # Two threads are there; the second one is free for another tenant.
    assert await threads.run("b", lambda: "b") == "b"
    assert started.acquire(timeout=10)
    assert not started.acquire(blocking=False)
    end.set()
    await asyncio.gather(*first)


async def test_a_cancelled_caller_keeps_its_thread_until_the_end(threads: TenantThreads) -> None:
    started, end = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        end.wait(10)

    task = asyncio.create_task(threads.run("a", wait))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    after = asyncio.create_task(threads.run("a", lambda: "after"))
    assert await threads.run("b", lambda: "b") == "b"
    assert not after.done()
    end.set()
    assert await after == "after"
    with pytest.raises(asyncio.CancelledError):
        await task
