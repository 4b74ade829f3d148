"""The worker process: its job functions, queues, start and stop."""

import asyncio
import contextlib
import importlib
import signal
from collections.abc import Mapping
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError
from saq.job import Job as QueueJob
from saq.queue.redis import RedisQueue
from saq.worker import Worker
from sqlalchemy.orm import configure_mappers

from app import container
from app.domain.area import Areas
from app.domain.job import JobFunction
from app.domain.platform.events import api as events
from app.jobs import background
from app.jobs.pubsub import listen_forever
from app.jobs.work import CANCEL_CHANNEL, QUEUES
from app.kit import logs, memory
from app.kit.redis import connect
from app.observe import heartbeat, transaction_waits
from app.observe.heartbeat import Beat
from app.observe.loop_watcher import LoopWatcher
from app.observe.metrics_page import MetricsPage
from app.observe.metrics_server import MetricsServer
from app.services import Services
from app.settings import Settings
from workers.courier import Courier
from workers.lane_scanner import LaneScanner
from workers.runner import NO_FUNCTIONS, Runner, describe_work
from workers.sweep import Sweeper

log = logs.get("worker")

# How many jobs of a queue one process runs at a time.
CONCURRENCY: Final = {
    "chat": 32,
    # One more than the share of a tenant, so that one tenant alone does not take them all.
    "ingest": 3,
    "speech": 4,
    # Twice the share of a tenant: its long runs leave half of them to others.
    "tools": 12,
    "deliveries": 32,
    "workflows": 32,
    "imports": 4,
    # Twice the share of a tenant. They mostly wait for servers of others.
    "sources": 4,
    # It takes a whole processor.
    "refine": 1,
    "default": 16,
}
GRACE_SECONDS = 25
_DEQUEUE_SECONDS = 2
# How many slots of a queue wait for Redis at a time; the others wait for one of these. If each slot
# waited, a process without work would send Redis a command every 15 ms.
_WAITING_SLOTS = 4
# How long Redis may take for a reply; then the connection is replaced. A limit on each command, as
# the client has it, would cost a tenth of the throughput.
_REPLY_SECONDS = 5
_STOP_SECONDS = 5
_MORE_CONNECTIONS = 32
_SWEEP_SECONDS = 60


class PatientQueue(RedisQueue):
    """Waits a second while Redis is unavailable or the worker stops, instead of polling at once.
    No operation waits for ever for a Redis that does not reply.
    """

    def __init__(self, redis: Redis, name: str) -> None:
        super().__init__(redis, name)
        self.stopping = False
        self._waiting_slots = asyncio.Semaphore(_WAITING_SLOTS)

    async def dequeue(self, timeout: float = 0.0, poll_interval: float = 0.0) -> QueueJob | None:  # noqa: ASYNC109
        async with self._waiting_slots:
            if not self.stopping:
                try:
                    async with asyncio.timeout(timeout + _REPLY_SECONDS):
                        return await super().dequeue(timeout, poll_interval)
                except (RedisError, OSError, TimeoutError) as error:
                    log.debug("cannot dequeue from Redis", reason=type(error).__name__)
        await asyncio.sleep(1)
        return None

    async def update(self, job: QueueJob, **changes: Any) -> None:
        async with asyncio.timeout(_REPLY_SECONDS):
            await super().update(job, **changes)

    async def finish(self, job: QueueJob, *args: Any, **options: Any) -> None:
        async with asyncio.timeout(_REPLY_SECONDS):
            await super().finish(job, *args, **options)


class QuietWorker(Worker[Any]):
    """SAQ's loop without schedules, aborts and signals, which the ledger and this module handle."""

    SIGNALS = []  # noqa: RUF012  # the type that SAQ declares

    async def upkeep(self) -> list[asyncio.Task[None]]:
        return [background.start(self._sweep_forever())]

    async def _sweep_forever(self) -> None:
        while not self.event.is_set():
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self.queue.sweep(_SWEEP_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.event.wait(), _SWEEP_SECONDS)


def _connect_queues(redis_address: str, queues: list[str]) -> Redis:
    """Each slot of a queue may need a connection, and some more are for upkeep."""
    connections = sum(CONCURRENCY[queue] for queue in queues) + _MORE_CONNECTIONS
    return connect(redis_address, wait_seconds=None, max_connections=connections)


class WorkerProcess:
    def __init__(
        self,
        services: Services,
        queues: list[str],
        functions: Mapping[str, JobFunction] = NO_FUNCTIONS,
    ) -> None:
        """`functions` replaces those of the areas, by the kind of work; tests use it."""
        self.services = services
        self.queues = queues
        self.runner = Runner(services, functions, on_any_dead=events.emit_dead)
        self.sweeper = Sweeper(services, self.runner, queues)
        self.couriers = {
            name: Courier(services, self.runner, name, job.courier)
            for name, job in services.get(Areas).jobs.items()
            if job.courier is not None and job.kind.queue in queues
        }
        self.runner.couriers = self.couriers
        # By queue: work that is claimed by the lanes of tenants.
        self.scanners = {
            kind.queue: LaneScanner(
                services,
                self.runner,
                kind.name,
                slots=CONCURRENCY[kind.queue],
                share=kind.per_tenant,
            )
            for kind in services.doorbell.kinds.values()
            if kind.per_tenant is not None and kind.queue in queues
        }
        self._redis = _connect_queues(services.settings.redis_address, queues)
        self._saq_queues = [PatientQueue(self._redis, name) for name in queues]
        self._saq_workers = [self._create_worker(queue) for queue in self._saq_queues]
        self.stopped = asyncio.Event()

    def _create_worker(self, queue: PatientQueue) -> QuietWorker:
        scanner = self.scanners.get(queue.name)

        async def run_work(_ctx: dict[str, Any], *, work_id: str) -> None:
            if scanner is None:
                await self.runner.run(work_id)
            else:
                # A consumer waits for a slot and for the run, so that a busy process takes nothing
                # more off the queue.
                await scanner.run_new(work_id)

        return QuietWorker(
            queue,
            functions=[("run_work", run_work)],
            concurrency=CONCURRENCY[queue.name],
            dequeue_timeout=_DEQUEUE_SECONDS,
        )

    async def run(self) -> None:
        """Runs jobs until `stopped` is set, then lets running jobs finish. Raises KeyProblem."""
        try:
            tier, _ = await asyncio.gather(
                self._start_sandbox(), self.services.readiness.wait(self.stopped)
            )
            if not self.stopped.is_set():
                await self._run_jobs(tier)
        finally:
            with contextlib.suppress(RedisError, OSError):
                await self._redis.aclose()
        log.info("worker stopped")

    async def _run_jobs(self, tier: str) -> None:
        beat = Beat("worker", heartbeat.own_name(), self.queues, tier)
        consumers = [background.start(worker.start()) for worker in self._saq_workers]
        pollers = [background.start(self.sweeper.poll_forever())]
        scanners = [*self.scanners.values(), *self.couriers.values()]
        pollers += [background.start(scanner.run()) for scanner in scanners]
        upkeep = [
            background.start(self.runner.renew_forever()),
            background.start(self._listen_for_cancels()),
            background.start(heartbeat.send_forever(self.services.redis, beat)),
        ]
        log.info("worker ready", queues=self.queues, sandbox=tier)
        background.spawn(asyncio.to_thread(_warm_up, self.queues))
        await self.stopped.wait()
        log.info("worker stopping", running=self.runner.running_count)
        # Claim nothing new, let running jobs finish, and only then end the tasks that they need.
        pollers[0].cancel()
        for scanner in scanners:
            scanner.stop()
        for queue in self._saq_queues:
            queue.stopping = True
        await self.runner.drain(GRACE_SECONDS)
        for worker in self._saq_workers:
            worker.event.set()
        await asyncio.wait(consumers, timeout=_STOP_SECONDS)
        for task in upkeep:
            task.cancel()
        await asyncio.wait([*pollers, *upkeep], timeout=_STOP_SECONDS)
        await self.sweeper.stop(_STOP_SECONDS)
        await heartbeat.stop(self.services.redis, beat)

    async def _listen_for_cancels(self) -> None:
        await listen_forever(
            self._redis, CANCEL_CHANNEL, lambda work_id: self.runner.cancel(work_id.decode())
        )

    async def _start_sandbox(self) -> str:
        """Returns the sandbox tier of this machine; a worker that runs no tools needs none."""
        if "tools" not in self.queues:
            return "none"
        return await self.services.sandbox.start()


def _warm_up(queues: list[str]) -> None:
    """Prepares what the first jobs would otherwise wait for; the start does not wait for it."""
    configure_mappers()
    importlib.import_module("jinja2")  # for mails
    if "tools" in queues:
        importlib.import_module("app.domain.agents.tools.executors.database")


async def _main(
    settings: Settings,
    queues: list[str],
    metrics_address: tuple[str, int] | None,
    functions: Mapping[str, JobFunction],
) -> None:
    services = container.build(settings)
    process = WorkerProcess(services, queues, functions)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.stopped.set)
    if metrics_address is not None:
        await MetricsServer(MetricsPage()).start(*metrics_address)
    try:
        with LoopWatcher({Runner.attempt.__code__: describe_work}):
            await process.run()
    finally:
        await services.close()


def main(
    settings: Settings,
    queues: list[str] | None = None,
    *,
    metrics_address: tuple[str, int] | None = None,
    functions: Mapping[str, JobFunction] = NO_FUNCTIONS,
) -> None:
    logs.configure(settings.log_level, settings.log_format)
    transaction_waits.count()
    import uvloop  # noqa: PLC0415  # not on every platform

    memory.tune_gc()
    memory.return_large_blocks()
    uvloop.run(_main(settings, queues or list(QUEUES), metrics_address, functions))
