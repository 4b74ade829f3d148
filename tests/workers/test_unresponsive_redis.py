"""A Redis that keeps its connections open and does not reply."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
import pytest
from saq.job import Status

from app.areas import AREAS
from app.jobs import pubsub
from app.jobs.work import CANCEL_CHANNEL, Doorbell
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import until, wait_until
from tests.stores import Stores
from workers import main
from workers.main import WorkerProcess


class _RedisProxy:
    """Forwards to the tests' Redis. After `hang`, the connections that are open get no reply, and
    with `also_new`, no other ones either.
    """

    def __init__(self, socket_path: str) -> None:
        self.connection_count = 0
        self.url = ""
        self._socket_path = socket_path
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_silent = False

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def hang(self, *, also_new: bool = False) -> None:
        self._is_silent = also_new
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        replies, requests = await asyncio.open_unix_connection(self._socket_path)
        if not self._is_silent:
            self._tasks.add(asyncio.create_task(_copy(replies, writer)))
        with suppress(ConnectionError):
            await _copy(reader, requests)
        for stream in (writer, requests):
            stream.close()

    async def close(self) -> None:
        self.hang()
        if self._server is not None:
            self._server.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()


@pytest.fixture
async def proxy(stores: Stores) -> AsyncIterator[_RedisProxy]:
    proxy = _RedisProxy(stores.settings.redis_address.removeprefix("unix://"))
    await proxy.start()
    yield proxy
    await proxy.close()


@pytest.fixture
async def process(
    services: Services, proxy: _RedisProxy, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[WorkerProcess]:
    """A worker that is not started and has short time limits."""
    for name in ("_DEQUEUE_SECONDS", "_REPLY_SECONDS"):
        monkeypatch.setattr(main, name, 0.1)
    for name in ("_REPLY_SECONDS", "_RECONNECT_SECONDS"):
        monkeypatch.setattr(pubsub, name, 0.1)
    settings = msgspec.structs.replace(services.settings, redis_url=proxy.url)
    process = WorkerProcess(msgspec.structs.replace(services, settings=settings), ["default"])
    yield process
    await process._redis.aclose()


async def test_no_operation_of_a_queue_waits_for_ever(
    process: WorkerProcess, proxy: _RedisProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (queue,) = process._saq_queues
    # No other worker takes the job.
    monkeypatch.setattr(queue, "_queued", new_id("queue"))
    job = await queue.enqueue("run_work", work_id="wrk_1", key=new_id("wrk"))
    assert job is not None
    proxy.hang(also_new=True)
    for operation in (job.update(), job.finish(Status.COMPLETE)):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(operation, 5)
    # It logs that Redis is away, and waits a second.
    assert await asyncio.wait_for(queue.dequeue(timeout=0.1), 5) is None


async def test_a_worker_listens_for_cancelled_work_again(
    process: WorkerProcess, proxy: _RedisProxy, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    monkeypatch.setattr(process.runner, "cancel", cancelled.append)

    async def is_cancelled() -> bool:
        await services.redis.publish(CANCEL_CHANNEL, "wrk_1")
        return bool(cancelled)

    listener = asyncio.create_task(process._listen_for_cancels())
    await wait_until(is_cancelled)
    proxy.hang()
    cancelled.clear()
    await wait_until(is_cancelled)
    listener.cancel()


async def test_waiting_for_work_ends_in_time(proxy: _RedisProxy) -> None:
    doorbell = Doorbell(proxy.url, AREAS.work_kinds)
    wait = asyncio.create_task(doorbell.wait_for_done("wrk_1", 0.5))
    await until(lambda: proxy.connection_count == 1)
    proxy.hang()
    await asyncio.wait_for(wait, 5)
    await doorbell.close()
