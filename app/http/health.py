"""Liveness, readiness and metrics: without sign-in and without a rate limit."""

import asyncio
import time
from typing import Any, ClassVar, Literal

import msgspec
from litestar import HttpMethod, Request, Response, get, route
from litestar.di import NamedDependency
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from app.jobs import background
from app.kit import logs
from app.observe import heartbeat
from app.observe.cached_report import CachedReport
from app.observe.metrics_page import MetricsPage
from app.services import Services
from db import backlog, schema
from db.session import ALL_TENANTS

log = logs.get("health")

INSTANCE_HEADER = "x-parley-instance"
_TIMEOUT_SECONDS = 2.0
State = Literal["ok", "away", "starting", "off"]


class Alive(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"status": "ok"}

    status: Literal["ok"] = "ok"


class PartState(msgspec.Struct, omit_defaults=True):
    state: State
    detail: str | None = None
    ms: float | None = None


class Ready(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "status": "ok",
        "parts": {
            "postgres": {"state": "ok", "ms": 0.8},
            "redis": {"state": "ok", "ms": 0.3},
            "workers": {"state": "ok", "detail": "1 running"},
            "files": {"state": "ok"},
            "local_model": {"state": "ok", "detail": "local/smollm2"},
        },
        "sandbox": "bubblewrap",
    }

    status: Literal["ok", "degraded", "unavailable"]
    parts: dict[str, PartState]
    sandbox: Literal["bubblewrap", "landlock", "none", "unknown"]


@get("/health/live", summary="Check that the process is alive", public=True, tags=["Health"])
async def live(services: NamedDependency[Services]) -> Response[Alive]:
    """`X-Parley-Instance` tells instances apart."""
    return Response(Alive(), headers={INSTANCE_HEADER: services.keyring.fingerprints()[0]})


@get(
    "/health/ready",
    summary="Check that every part is ready",
    public=True,
    tags=["Health"],
    cache_control=None,
)
async def ready(request: Request[Any, Any, Any]) -> Response[Ready]:
    """503 only while Postgres is unavailable, or while its schema or the root keys do not match.
    Requests are answered while any other part is unavailable.
    """
    report = await reports_of(request).ready.get()
    return Response(report, status_code=503 if report.status == "unavailable" else 200)


@route(
    "/metrics",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    public=True,
    include_in_schema=False,
)
async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Only where PARLEY_METRICS_ADDRESS is the address of the web tier."""
    accept = ",".join(request.headers.getall("accept", []))
    text, content_type = await reports_of(request).metrics.read(accept)
    length = str(len(text))
    headers = {"content-type": content_type, "content-length": length, "vary": "Accept"}
    return Response(text, headers=headers)


class Reports:
    """The cached reports of one web process."""

    def __init__(self, services: Services) -> None:
        self.ready = CachedReport(0.5, lambda: check_parts(services))
        self.metrics = MetricsPage(
            services.settings.metrics_dir, collect=lambda: _collect_backlog(services)
        )


def reports_of(request: Request[Any, Any, Any]) -> Reports:
    reports: Reports = request.app.state.reports
    return reports


async def check_parts(services: Services) -> Ready:
    postgres, redis, files, beats = await asyncio.gather(
        # Apart from the others, which do not wait in its transaction.
        background.start(_check_postgres(services)),
        _check_redis(services),
        _check_files(services),
        heartbeat.read(services.redis),
    )
    workers = [beat for beat in beats if beat.part == "worker"]
    states = {
        "postgres": postgres,
        "redis": redis,
        "workers": _check_workers(services, workers),
        "files": files,
        "local_model": _check_model(services, beats),
    }
    status: Literal["ok", "degraded", "unavailable"] = "ok"
    if postgres.state != "ok":
        status = "unavailable"
    elif any(part.state == "away" for part in states.values()):
        status = "degraded"
    sandbox = next((beat.sandbox for beat in workers if "tools" in beat.queues), "unknown")
    return Ready(status, states, sandbox)  # type: ignore[arg-type]


def _check_workers(services: Services, running: list[heartbeat.Beat]) -> PartState:
    if not running:
        return PartState("away", "no worker has reported in the last 30 seconds")
    unserved = heartbeat.find_unserved_queues(running, services.doorbell.kinds.values())
    if unserved:
        names = ", ".join(unserved)
        return PartState("away", f"{len(running)} running, but no worker takes: {names}")
    return PartState("ok", f"{len(running)} running")


def _check_model(services: Services, beats: list[heartbeat.Beat]) -> PartState:
    if not services.settings.local_model:
        return PartState("off", "PARLEY_LOCAL_MODEL=off")
    for beat in beats:
        if beat.part == "model":
            return PartState("ok", f"local/smollm2 at {beat.address}")
    return PartState("starting", "local/smollm2 has not reported yet")


async def _check_postgres(services: Services) -> PartState:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                revision = await schema.read_revision(await tx.raw())
    except Exception as error:  # noqa: BLE001  # any error means that it is unusable
        log.warning("Postgres is unavailable", reason=str(error)[:200])
        return PartState("away", "cannot be queried; run `parley doctor`")
    services.readiness.record_revision(revision)
    if services.readiness.problem is not None:
        return PartState("away", services.readiness.problem)
    return PartState("ok", schema.describe(revision), ms=_milliseconds_since(started))


async def _check_redis(services: Services) -> PartState:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await services.redis.ping()
    except (RedisError, OSError, TimeoutError) as error:
        log.warning("Redis is unavailable", reason=str(error)[:200])
        return PartState("away", "requests are answered, but not limited; work is found by polling")
    return PartState("ok", ms=_milliseconds_since(started))


async def _check_files(services: Services) -> PartState:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await services.files.check()
    except Exception as error:  # noqa: BLE001  # any error means that it is unusable
        log.warning("the file store is unavailable", reason=str(error)[:200])
        return PartState("away", "cannot be reached; check PARLEY_FILES_URI")
    return PartState("ok")


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)


async def _collect_backlog(services: Services) -> "BacklogCollector":
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await backlog.count_open(await tx.raw())
    return BacklogCollector(
        [(row["kind"], row["state"], row["rows"], row["oldest"]) for row in rows]
    )


class BacklogCollector(Collector):
    """Gauges of the open work in the ledger, for one page of metrics."""

    def __init__(self, rows: list[tuple[str, str, int, float]]) -> None:
        self._rows = rows

    def collect(self) -> list[GaugeMetricFamily]:
        open_work = GaugeMetricFamily(
            "parley_work_open", "Open work in the ledger", labels=["kind", "state"]
        )
        oldest = GaugeMetricFamily(
            "parley_work_oldest_seconds", "Age of the oldest open work", labels=["kind", "state"]
        )
        for kind, state, count, age in self._rows:
            open_work.add_metric([kind, state], count)
            oldest.add_metric([kind, state], max(0.0, age))
        return [open_work, oldest]
