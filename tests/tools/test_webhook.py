"""Tools that call one address with their input."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.asking import until
from tests.ports import free_port
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site, always, open_site
from tests.world import World
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def bench(world: World, worker: WorkerProcess) -> Bench:
    return await bench_of(world)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


async def _hook(bench: Bench, site: Site, path: str = "/hook", **more: Any) -> str:
    config = {"url": f"{site.url}{path}", **more.pop("config", {})}
    return await bench.create("webhook", config, **more)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_the_input_is_the_body(bench: Bench, site: Site, method: str) -> None:
    given = {"order": {"id": 7, "note": "für Zoë"}, "urgent": True}
    output = await bench.output(await _hook(bench, site, config={"method": method}), given)
    assert (site.last.method, site.last.path) == (method, "/hook")
    assert site.last.body == '{"order":{"id":7,"note":"für Zoë"},"urgent":true}'.encode()
    assert site.last.headers["Content-Type"] == "application/json"
    assert (output["status_code"], output["body"]) == (200, {"ok": True})


async def test_post_is_the_method_by_itself(bench: Bench, site: Site) -> None:
    await bench.output(await _hook(bench, site))
    assert (site.last.method, site.last.body) == ("POST", b"{}")


async def test_what_is_asked_for_with_get_is_the_query(bench: Bench, site: Site) -> None:
    tool = await _hook(bench, site, "/hook?fixed=1", config={"method": "GET"})
    given = {"q": "a&b", "n": 2, "x": 1.5, "on": True, "no": None, "ids": [1, 2], "fixed": "2"}
    await bench.output(tool, given)
    assert (site.last.method, site.last.body) == ("GET", b"")
    assert site.last.query == [
        ("fixed", "1"),
        ("q", "a&b"),
        ("n", "2"),
        ("x", "1.5"),
        ("on", "true"),
        ("ids", "1"),
        ("ids", "2"),
    ]


async def test_what_fits_into_no_query_is_refused(bench: Bench, site: Site) -> None:
    tool = await _hook(bench, site, "/hook", config={"method": "GET"})
    error = await bench.failure(tool, {"deep": {"a": 1}})
    assert "deep" in error["message"]
    assert not site.seen


async def test_what_is_deleted_is_told_in_the_body(bench: Bench, site: Site) -> None:
    await bench.output(await _hook(bench, site, "/hook", config={"method": "DELETE"}), {"id": 1})
    assert (site.last.method, site.last.body) == ("DELETE", b'{"id":1}')


async def test_a_query_of_the_address_is_kept_without_input(bench: Bench, site: Site) -> None:
    await bench.output(await _hook(bench, site, "/hook?fixed=1", config={"method": "GET"}))
    assert site.last.path == "/hook?fixed=1"


@pytest.mark.parametrize("path", ["/a%2Fb", "/a%20b", "/a+b", "/%C3%BC", "/a%3Fb", "/"])
async def test_the_address_is_called_as_it_was_written(bench: Bench, site: Site, path: str) -> None:
    await bench.output(await _hook(bench, site, path))
    assert site.last.path == path


async def test_headers_of_the_tool_are_sent_without_those_that_are_ours(
    bench: Bench, site: Site
) -> None:
    headers = {
        "X-Kind": "order",
        "Content-Type": "application/vnd.shop+json",
        "Host": "evil.test",
        "X-Service-Token": "evil.test",
        "Webhook-Signature": "evil.test",
    }
    await bench.output(await _hook(bench, site, config={"headers": headers}))
    assert site.last.headers["X-Kind"] == "order"
    assert site.last.headers["Content-Type"] == "application/vnd.shop+json"
    assert "evil.test" not in site.last.headers.values()


async def test_a_line_break_in_a_header_adds_no_other(bench: Bench, site: Site) -> None:
    config = {"headers": {"X-A": "1\r\nX-Injected: 1"}}
    await bench.output(await _hook(bench, site, config=config))
    assert "X-Injected" not in site.last.headers


async def test_the_input_sets_no_headers(bench: Bench, site: Site) -> None:
    await bench.output(await _hook(bench, site), {"headers": {"X-Injected": "1"}})
    assert "X-Injected" not in site.last.headers


@pytest.mark.parametrize(
    ("auth_type", "auth", "header", "value"),
    [
        ("bearer", {"token": "tkn-123456"}, "Authorization", "Bearer tkn-123456"),
        ("basic", {"username": "a", "password": "b"}, "Authorization", "Basic YTpi"),
        ("api_key", {"api_key_value": "key-123456"}, "X-API-Key", "key-123456"),
        ("custom", {"headers": {"X-Sig": "sig-123456"}}, "X-Sig", "sig-123456"),
    ],
)
async def test_each_auth_is_shown(
    bench: Bench, site: Site, auth_type: str, auth: dict[str, Any], header: str, value: str
) -> None:
    await bench.output(await _hook(bench, site, auth_type=auth_type, auth_config=auth))
    assert site.last.headers[header] == value


async def test_a_key_in_the_query_stands_beside_the_input(bench: Bench, site: Site) -> None:
    auth = {"api_key_value": "key-123456", "api_key_header": "key", "api_key_location": "query"}
    config = {"method": "GET"}
    tool = await _hook(bench, site, auth_type="api_key", auth_config=auth, config=config)
    await bench.output(tool, {"q": "a", "key": "of-the-caller"})
    assert site.last.query == [("q", "a"), ("key", "key-123456")]


@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_a_refusal_is_an_error_after_one_request(
    bench: Bench, site: Site, status: int
) -> None:
    site.answer = always("no", status=status)
    error = await bench.failure(await _hook(bench, site))
    assert (error["code"], error["output"]["body"]) == ("http_error", "no")
    assert len(site.seen) == 1


async def test_a_redirect_is_not_followed(bench: Bench, site: Site) -> None:
    site.answer = always("", status=307, headers={"Location": "/elsewhere"})
    assert (await bench.output(await _hook(bench, site)))["status_code"] == 307
    assert [seen.path for seen in site.seen] == ["/hook"]


async def test_nobody_listening_is_a_connection_error(bench: Bench, site: Site) -> None:
    config = {"url": f"http://127.0.0.1:{free_port()}/"}
    assert await bench.code(await _hook(bench, site, config=config)) == "connection_error"


async def test_an_answer_that_is_too_large_is_cut_off(bench: Bench, site: Site) -> None:
    site.answer = always(b"x" * (1024 * 1024 + 1))
    assert await bench.code(await _hook(bench, site)) == "output_too_large"


async def test_the_time_of_a_tool_ends_its_request(bench: Bench, site: Site) -> None:
    gone = asyncio.Event()

    async def never(request: web.Request) -> web.StreamResponse:
        await until(lambda: request.transport is None or request.transport.is_closing())
        gone.set()
        return web.Response()

    site.answer = never
    error = await bench.failure(await _hook(bench, site, config={"timeout_ms": 200}))
    assert (error["status"], error["code"]) == ("timeout", "timeout")
    await until(gone.is_set)


async def test_a_large_input_arrives_whole(bench: Bench, site: Site) -> None:
    await bench.output(await _hook(bench, site), {"text": "x" * 500_000})
    assert len(site.last.body) == 500_000 + len('{"text":""}')
