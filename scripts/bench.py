"""Measures Parley against the bare libraries that it uses, as ratios within one run.

Everything runs on this machine, over loopback and sockets, for a limited time.
"""

import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import asyncpg
import bench_chat
import bench_clean_up
import bench_console
import bench_conversations
import bench_events
import bench_fairness
import bench_forms
import bench_knowledge
import bench_manuals
import bench_notifications
import bench_processes
import bench_reads
import bench_start
import bench_tables
import bench_tools
import bench_widget
import bench_workflows
import msgspec
import uvloop
from litestar import Litestar, Request, get
from load import CLIENTS, SECONDS, per_second, wait_for_port
from redis.asyncio import Redis
from saq.queue.redis import RedisQueue
from saq.worker import Worker

sys.path.insert(0, str(Path(__file__).parent.parent))

from app import settings as configuration
from app.areas import AREAS
from app.domain.identity.accounts import sign_in
from app.domain.identity.accounts.schemas import Login
from app.domain.job import Job
from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import logs
from app.kit.errors import Unauthorized
from app.local.postgres import Postgres
from app.security import passwords
from app.security.principal import ClientInfo
from app.services import Services
from db.session import ALL_TENANTS
from tests.ports import free_port
from tests.stores import Stores
from tests.world import PASSWORD, Client, World
from workers.main import CONCURRENCY
from workers.main import main as worker_main

ROUNDS = 3
JOB_COUNT = 2000
# Those of the child processes that run the work of submissions.
_WORKERS = (6, 9)
NOOP = WorkKind("bench.noop", retry_delays=(1,))
ROW = "SELECT id, name, plan, limits::text AS limits, created_at FROM tenants WHERE id = $1"


# The bare counterparts


@get("/row/{row_id:str}")
async def bare_row(request: Request, row_id: str) -> dict:  # type: ignore[type-arg]
    async with request.app.state.pool.acquire() as connection:
        return dict(await connection.fetchrow(ROW, row_id))


def bare_app() -> Litestar:
    async def start(app: Litestar) -> None:
        url = os.environ["PARLEY_DATABASE_URL"]
        app.state.pool = await asyncpg.create_pool(url, min_size=10, max_size=20)

    return Litestar([bare_row], on_startup=[start], openapi_config=None)


async def bare_job(_ctx: object, *, number: int) -> None:
    del number


async def noop(_job: Job) -> None:
    return


def ledger_worker() -> None:
    AREAS.work_kinds[NOOP.name] = NOOP
    worker_main(configuration.load(), ["default"], functions={NOOP.name: noop})


def saq_worker() -> None:
    async def run() -> None:
        queue = RedisQueue.from_url(os.environ["PARLEY_REDIS_URL"], name="bare")
        await Worker(queue, functions=[bare_job], concurrency=CONCURRENCY["default"]).start()

    uvloop.run(run())


# Load


async def requests_per_second(port: int, path: str, token: str = "") -> float:
    auth = f"Authorization: Bearer {token}\r\n" if token else ""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{auth}\r\n".encode()
    return await per_second(port, [[request]] * CLIENTS)


async def compare(
    ours: Callable[[], Awaitable[float]], bare: Callable[[], Awaitable[float]]
) -> tuple[float, float]:
    """Runs both alternately, several times, and returns the medians."""
    pairs = [(await ours(), await bare()) for _ in range(ROUNDS)]
    return statistics.median(o for o, _ in pairs), statistics.median(b for _, b in pairs)


# The rows of the table


def row(name: str, ours: str, bare: str, figure: str, bar: str, *, holds: bool) -> None:
    print(f"| {name:<34} | {ours:>12} | {bare:>12} | {figure:>9} | {bar:>9} | "
          f"{'yes' if holds else 'NO':<5} |", flush=True)  # fmt: skip


def print_head() -> None:
    print(
        f"| {'path':<34} | {'ours':>12} | {'bare':>12} | {'figure':>9} | {'bar':>9} | holds |\n"
        "|---|---|---|---|---|---|",
        flush=True,
    )


async def bench_get(ports: dict[str, int], tenant_id: str, token: str) -> None:
    ours, bare = await compare(
        lambda: requests_per_second(ports["parley"], f"/api/v1/tenants/{tenant_id}", token),
        lambda: requests_per_second(ports["bare"], f"/row/{tenant_id}"),
    )
    share = ours / bare
    row("authenticated GET of one row", f"{ours:.0f}/s", f"{bare:.0f}/s", f"{share:.0%}", "≥ 40 %",
        holds=share >= 0.4)  # fmt: skip


async def bench_limiter(ports: dict[str, int], token: str) -> None:
    """The cost of session check, limit and headers: an equal handler with and without a limit."""
    counted, uncounted = await compare(
        lambda: requests_per_second(ports["parley"], "/bench/empty", token),
        lambda: requests_per_second(ports["parley"], "/health/live"),
    )
    cost = 1000 / counted - 1000 / uncounted
    row("limiter and session check", f"{counted:.0f}/s", f"{uncounted:.0f}/s", f"{cost:.2f} ms",
        "≤ 0.6 ms", holds=cost <= 0.6)  # fmt: skip


async def _rate(call: Callable[[], Awaitable[object]], clients: int = 8) -> float:
    """Returns how often `call` ends per second, with several clients at a time."""
    deadline, count = time.perf_counter() + SECONDS, 0

    async def client() -> None:
        nonlocal count
        while time.perf_counter() < deadline:
            await call()
            count += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return count / SECONDS


async def bench_sign_in(services: Services, email: str) -> None:
    """A sign-in, with throttle, session and event, compared with hashing the password alone."""
    hashed = await passwords.hash_password(PASSWORD)
    login, client = Login(email, PASSWORD), ClientInfo("192.0.2.1", "192.0.2.1")
    ours, bare = await compare(
        lambda: _rate(lambda: sign_in.sign_in(services, login, client)),
        lambda: _rate(lambda: passwords.verify_password(hashed, PASSWORD)),
    )
    share = ours / bare
    row("sign-in, beside argon2id alone", f"{ours:.0f}/s", f"{bare:.0f}/s", f"{share:.0%}", "none",
        holds=True)  # fmt: skip


async def bench_enumeration(world: World) -> None:
    """The medians of wrong passwords and of unknown e-mails must not differ noticeably."""
    durations: dict[str, list[float]] = {"known": [], "unknown": []}
    for number in range(40):
        user = await world.user("viewer")
        for kind, email in (("known", user.email), ("unknown", f"x{number}@example.com")):
            started = time.perf_counter()
            with suppress(Unauthorized):
                data = Login(email, "Wrong7Password")
                client = ClientInfo("198.51.100.1", f"198.51.100.{number}")
                await sign_in.sign_in(world.services, data, client)
            durations[kind].append((time.perf_counter() - started) * 1000)
    known, unknown = (statistics.median(times) for times in durations.values())
    row("wrong password, unknown e-mail", f"{known:.1f} ms", f"{unknown:.1f} ms",
        f"{abs(known - unknown):.2f} ms", "< 10 ms", holds=abs(known - unknown) < 10)  # fmt: skip


async def ledger_rate(services: Services, tenant_id: str) -> float:
    started = time.perf_counter()
    numbers = itertools.count()

    async def accept() -> None:
        while next(numbers) < JOB_COUNT:
            async with services.db.tx(tenant_id) as tx:
                await work.accept(tx, NOOP, tenant_id=tenant_id)

    await asyncio.gather(*(accept() for _ in range(16)))
    await _wait_until_done(services)
    return JOB_COUNT / (time.perf_counter() - started)


async def _wait_until_done(services: Services) -> None:
    while True:
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            left = await raw.fetchval("SELECT count(*) FROM work WHERE finished_at IS NULL")
        if not left:
            return
        await asyncio.sleep(0.02)


async def saq_rate(redis: Redis) -> float:
    queue = RedisQueue(redis, name="bare")
    started = time.perf_counter()
    numbers = itertools.count()

    async def enqueue() -> None:
        while (number := next(numbers)) < JOB_COUNT:
            await queue.enqueue("bare_job", number=number)

    await asyncio.gather(*(enqueue() for _ in range(16)))
    while await queue.count("incomplete"):  # noqa: ASYNC110  # another process counts it down
        await asyncio.sleep(0.02)
    return JOB_COUNT / (time.perf_counter() - started)


async def bench_ledger(services: Services, tenant_id: str) -> None:
    """Jobs per second, and whether the clean-up deletes finished work as fast as it is added."""
    ours, bare = await compare(
        lambda: ledger_rate(services, tenant_id), lambda: saq_rate(services.redis)
    )
    share = ours / bare
    row("ledger job, accept to done", f"{ours:.0f}/s", f"{bare:.0f}/s", f"{share:.0%}", "≥ 40 %",
        holds=share >= 0.4)  # fmt: skip
    deleted = await bench_clean_up.deletion_rate(services)
    row("finished work, deleted and added", f"{deleted:.0f}/s", f"{ours:.0f}/s",
        f"{deleted / ours:.0%}", "≥ 100 %", holds=deleted >= ours)  # fmt: skip


async def bench_wake_up(services: Services, tenant_id: str) -> None:
    """From the commit to the claim, one job at a time."""
    for _ in range(200):
        async with services.db.tx(tenant_id) as tx:
            await work.accept(tx, NOOP, tenant_id=tenant_id)
        await _wait_until_done(services)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        waits = await raw.fetch(
            "SELECT extract(epoch FROM started_at - created_at) * 1000 AS ms FROM work "
            "WHERE kind = $1 ORDER BY id DESC LIMIT 200", NOOP.name
        )  # fmt: skip
    p50 = statistics.median(float(item["ms"]) for item in waits)
    row("wake-up of a worker, p50", f"{p50:.1f} ms", "", "", "≤ 15 ms", holds=p50 <= 15)


async def main() -> None:
    stores = Stores()
    # Durable, as in production, so that the disk is measured as well.
    stores.postgres = Postgres(stores.folder / "postgres", stores.folder / "run")
    # All submissions come from one address.
    stores.settings = msgspec.structs.replace(
        stores.settings, form_submissions_per_minute=1_000_000
    )
    AREAS.work_kinds[NOOP.name] = NOOP
    names = ("parley", "bare", "bare_chat", "stub", "receiver", "bare_reads", "knowledge")
    ports = {name: 18461 + number for number, name in enumerate((*names, "bare_forms"))}
    os.environ["STUB_PORT"] = str(ports["stub"])
    os.environ["RECEIVER_PORT"] = str(ports["receiver"])
    children: list[subprocess.Popen[bytes]] = []
    try:
        await stores.start()
        children += bench_processes.start_children(stores, ports)
        await measure(stores, ports, [child.pid for child in children])
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(30)
        stores.close()


def parley_app() -> Litestar:
    from app.kit import memory  # noqa: PLC0415
    from app.main import create_app  # noqa: PLC0415

    # The default log level, with the lines discarded.
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    logs.configure("info", "json")
    app = create_app(configuration.load(), routes=[bench_reads.empty])
    memory.tune_gc()
    return app


async def measure(stores: Stores, ports: dict[str, int], pids: list[int]) -> None:
    from app import bootstrap  # noqa: PLC0415
    from app.main import create_app  # noqa: PLC0415

    logs.configure("warning", "json")
    app = create_app(stores.settings)
    services: Services = app.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    world = World(app)
    user = await world.user("super_admin")
    for port in ports.values():
        await wait_for_port(port)
    print_head()
    only = os.environ.get("BENCH", "")
    if only in {"", "start"}:
        bench_start.bench(stores.settings, free_port(), row)
    await measure_parts(world, user, ports, pids, only)
    await bench_spine(world, ports, user, only)
    # Has tables of its own, so it comes last.
    if only in {"", "knowledge", "manuals"}:
        await bench_manuals.bench(services, user.tenant_id)
    await services.close()


async def measure_parts(
    world: World, user: Client, ports: dict[str, int], pids: list[int], only: str
) -> None:
    web_pid, knowledge_pid, worker_pids = pids[0], pids[-1], [pids[n] for n in _WORKERS]
    parts: dict[str, Callable[[], Awaitable[None]]] = {
        "reads": lambda: bench_reads.bench(world, ports, web_pid, row),
        "tools": lambda: bench_tools.bench(world, ports["parley"], row),
        "events": lambda: bench_events.bench(world, ports, row),
        "notifications": lambda: bench_notifications.bench(world, ports, row),
        "workflows": lambda: bench_workflows.bench(
            world, row, partial(ledger_rate, world.services, user.tenant_id)
        ),
        "forms": lambda: bench_forms.bench(world, ports, worker_pids, row),
        "fairness": lambda: bench_fairness.bench(world, ports, row),
        "widget": lambda: bench_widget.bench(world, ports, row),
        "console": lambda: bench_console.bench(world, ports, row),
        "tables": lambda: bench_tables.bench(world, row),
        "conversations": lambda: bench_conversations.bench(world, row),
        "growth": lambda: bench_events.growth(world, row),
        "chat": lambda: bench_chat.bench(world, ports, web_pid, row),
        "knowledge": lambda: bench_knowledge.bench(world, ports, knowledge_pid, row),
    }
    for name, bench in parts.items():
        if only in {"", name}:
            await bench()


async def bench_spine(world: World, ports: dict[str, int], user: Client, only: str) -> None:
    services = world.services
    if only in {"", "spine"}:
        await bench_get(ports, user.tenant_id, user.token or "")
        await bench_limiter(ports, user.token or "")
        await bench_sign_in(services, user.email)
        await bench_enumeration(world)
    if only in {"", "spine", "ledger"}:
        await bench_ledger(services, user.tenant_id)
        await bench_wake_up(services, user.tenant_id)


if __name__ == "__main__":
    uvloop.run(main())
