"""Requests that hold the event loop: which are logged, and what the log says of them."""

import time
from typing import Any

import msgspec
import pytest
from litestar import Litestar, get, post
from litestar.params import FromPath
from structlog.testing import capture_logs

from app.main import create_app
from app.observe import metrics
from tests.assertions import until
from tests.stores import Stores
from tests.world import Client, World

SECONDS = 0.35


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@get("/test/sleep/{secret:str}", public=True, include_in_schema=False)
async def sleep(secret: FromPath[str]) -> str:
    time.sleep(SECONDS)  # noqa: ASYNC251  # what is tested
    return secret


@post("/test/compute", public=True, include_in_schema=False)
async def run_code() -> None:
    compute(SECONDS)


@post("/test/compute-in-c", public=True, include_in_schema=False)
async def run_native_code() -> None:
    """No other thread runs meanwhile."""
    started = time.thread_time()
    sum(range(1_000_000))
    sum(range(int(1_000_000 * SECONDS / (time.thread_time() - started))))


@get("/test/quick", public=True, include_in_schema=False)
async def do_little() -> None:
    compute(0.005)


def _count_stalls() -> float:
    count: float = metrics.LOOP_STALLS.labels("process")._value.get()
    return count


async def _call(client: Client, method: str, path: str, route: str = "") -> dict[str, Any]:
    """Returns what is logged of a request that holds the loop. Something else may hold it before,
    and is logged as well.
    """
    stalls, name = _count_stalls(), f"{method} {route or path}"
    with capture_logs() as lines:
        assert (await client(method, path)).status_code < 300
        await until(lambda: any(line.get("route") == name for line in lines))
    assert _count_stalls() > stalls
    (line,) = [line for line in lines if line.get("route") == name]
    return dict(line)


async def _check_sleeping(client: Client) -> None:
    line = await _call(client, "GET", "/test/sleep/hunter2", "/test/sleep/{secret}")
    assert (line["event"], line["log_level"]) == ("the event loop was held", "warning")
    assert line["request_id"].startswith("req_")
    assert line["ms"] >= SECONDS * 1000
    assert line["cpu_ms"] < line["ms"] / 2
    assert "test_stalls.py:" in line["frames"][0]
    assert line["frames"][0].endswith(" sleep")
    assert len(line["frames"]) <= 15
    assert "hunter2" not in str(line)


async def _check_computing(client: Client) -> None:
    line = await _call(client, "POST", "/test/compute")
    assert line["frames"][0].endswith(" compute")
    assert line["frames"][1].endswith(" run_code")
    assert line["cpu_ms"] > 0


async def _check_native_computing(client: Client) -> None:
    line = await _call(client, "POST", "/test/compute-in-c")
    assert line["frames"][0].endswith(" run_native_code")


async def _check_short(client: Client) -> None:
    """Many of them together take longer than what is logged. A busy machine may stop one in the
    middle for as long, which takes no processor time.
    """
    with capture_logs() as lines:
        for _ in range(80):
            await client.get("/test/quick")
    logged = [line for line in lines if line.get("route") == "GET /test/quick"]
    assert [line for line in logged if line["cpu_ms"] > 100] == []


@pytest.mark.usefixtures("app")
async def test_a_step_that_holds_the_loop_is_logged_with_its_route_and_stack(
    stores: Stores, subtests: pytest.Subtests
) -> None:
    routes = [sleep, run_code, run_native_code, do_little]
    app: Litestar = create_app(msgspec.structs.replace(stores.settings, demo=False), routes=routes)
    async with app.lifespan():
        client = World(app).anonymous()
        for check in (_check_sleeping, _check_computing, _check_native_computing, _check_short):
            with subtests.test(check.__name__):
                await check(client)
