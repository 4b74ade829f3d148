"""Metrics: how large they can get, who may read them, and what reading them costs."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from app.areas import AREAS
from app.http.health import BacklogCollector
from app.observe import metrics_server
from app.observe.metrics import RequestMetrics
from app.observe.metrics_page import MetricsPage
from tests.assertions import logged_by, until, wait_until
from tests.http.connection import connect, is_closed
from tests.http_clients import open_client
from tests.observe.formats import PROMETHEUS_TYPE, check_openmetrics, check_prometheus
from tests.ports import free_port
from tests.world import Client

MAX_BYTES = 180_000
# Of the interpreter and of what else the web tier counts.
OTHER_BYTES = 15_000


def test_metrics_stay_small_when_every_route_was_called(app: Litestar) -> None:
    registry = CollectorRegistry()
    requests = RequestMetrics(registry)
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method in route.route_handler_map:
                for status in (200, 303, 404, 422, 500):
                    requests.observe(str(method), route.path_format, status, 1234.5678)
    states = ("pending", "running")
    work = [(kind, state, 10**6, 1e6) for kind in AREAS.work_kinds for state in states]
    registry.register(BacklogCollector(work))
    assert len(generate_latest(registry)) < MAX_BYTES - OTHER_BYTES


def test_a_client_cannot_make_new_series() -> None:
    registry = CollectorRegistry()
    requests = RequestMetrics(registry)
    requests.observe("GET", "/a", 200, 0.1)
    for method in ("PROPFIND", "MKCOL", "get", "X" * 100):
        requests.observe(method, "/a", 405, 0.1)
    for number in range(5000):
        requests.observe("GET", f"/{number}", 200, 0.1)
    text = generate_latest(registry).decode()
    assert 'parley_requests_total{method="other",route="any",status="4xx"} 4.0' in text
    assert 'parley_requests_total{method="GET",route="/a",status="ok"} 1.0' in text
    assert 'parley_requests_total{method="GET",route="other",status="ok"}' in text
    assert "PROPFIND" not in text
    assert len(text) < MAX_BYTES


# The web port


async def test_the_web_port_has_no_metrics(app: Litestar, anonymous: Client) -> None:
    answer = await anonymous.get("/metrics")
    assert answer.status_code == 404
    assert answer.json() == (await anonymous.get("/nothing")).json()
    # It is charged for as any other path.
    assert answer.headers["x-ratelimit-remaining"] != answer.headers["x-ratelimit-limit"]
    assert "/metrics" not in (await anonymous.get("/openapi.json")).json()["paths"]


async def test_the_web_port_has_metrics_when_their_address_is_its_own(
    changed_app: Litestar,
) -> None:
    anonymous = Client(changed_app)
    for method in ("GET", "HEAD"):
        answer = await anonymous(method, "/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == PROMETHEUS_TYPE
        assert ("parley_requests_total" in answer.text) == (method == "GET")
        assert answer.headers["x-ratelimit-remaining"] == answer.headers["x-ratelimit-limit"]
    check_prometheus(await anonymous.get("/metrics"))
    accept = {"accept": "application/openmetrics-text"}
    families = check_openmetrics(await anonymous.get("/metrics", headers=accept))
    assert {"parley_work_open", "parley_work_oldest_seconds"} <= families.keys()


# The address of the metrics


class _Nothing(Collector):
    def collect(self) -> list[Metric]:
        return []


@asynccontextmanager
async def serving(port: int, page: MetricsPage, directory: str = "") -> AsyncIterator[str]:
    stopped = asyncio.Event()
    task = asyncio.create_task(
        metrics_server.serve_until(stopped, page, ("127.0.0.1", port), directory)
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stopped.set()
        await task


async def _answers(url: str) -> bool:
    try:
        async with open_client() as client:
            return (await client.get(f"{url}/metrics")).status_code == 200
    except httpx.TransportError:
        return False


async def test_the_address_serves_metrics_and_nothing_else() -> None:
    async with (
        serving(free_port(), MetricsPage()) as url,
        open_client(base_url=url) as client,
    ):
        await wait_until(lambda: _answers(url))
        page, head = await client.get("/metrics"), await client.head("/metrics?a=b")
        assert "parley_requests_total" in page.text
        assert head.headers["content-length"] == page.headers["content-length"]
        assert head.headers["content-type"] == page.headers["content-type"]
        check_prometheus(page)
        accept = [("Accept", "text/html"), ("ACCEPT", "application/openmetrics-text")]
        check_openmetrics(await client.get("/metrics", headers=accept))
        assert (await client.get("/")).status_code == 404
        assert (await client.get("/health/live")).status_code == 404
        assert (await client.request("PROPFIND", "/metrics")).status_code == 405
        large = await client.get("/metrics", headers={"x-a": "b" * 20_000})
        assert large.status_code == 431


async def test_a_slow_client_of_the_address_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_server, "_DEADLINE_SECONDS", 0.1)
    port = free_port()
    async with serving(port, MetricsPage()) as url:
        await wait_until(lambda: _answers(url))
        async with connect(port) as (reader, writer):
            writer.write(b"GET /metrics HTTP/1.1\r\n")
            assert await is_closed(reader)


async def test_all_who_ask_within_a_second_receive_the_same_page() -> None:
    collections: list[int] = []

    async def collect() -> Collector:
        collections.append(1)
        return _Nothing()

    page = MetricsPage(collect=collect)
    texts = await asyncio.gather(*(page.read() for _ in range(50)))
    assert len(collections) == 1
    assert len(set(texts)) == 1


async def test_an_address_in_use_is_one_warning_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_server, "_RETRY_SECONDS", 0.02)
    port = free_port()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with capture_logs() as logs:
            async with serving(port, MetricsPage()) as url:
                await until(lambda: logged_by("metrics", logs))
                await asyncio.sleep(0.1)
                other.close()
                await wait_until(lambda: _answers(url))
    (line,) = logged_by("metrics", logs)
    assert "PARLEY_METRICS_ADDRESS" in line["advice"]


async def test_one_of_several_processes_serves_and_another_takes_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(metrics_server, "_RETRY_SECONDS", 0.02)
    port, directory = free_port(), str(tmp_path)
    with capture_logs() as logs:
        async with AsyncExitStack() as first:
            url = await first.enter_async_context(serving(port, MetricsPage(directory), directory))
            await wait_until(lambda: _answers(url))
            async with serving(port, MetricsPage(directory), directory):
                await asyncio.sleep(0.1)
                await first.aclose()
                await wait_until(lambda: _answers(url))
    assert logged_by("metrics", logs) == []
