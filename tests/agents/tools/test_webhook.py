"""Tools that call one address with their input."""

import asyncio
from typing import Any

import pytest

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.site import Site, hang_until_closed, respond_with
from tests.assertions import until
from tests.ports import free_port


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


async def _create_webhook(
    tools: ToolExecutor, site: Site, path: str = "/hook", **fields: Any
) -> str:
    config = {"url": f"{site.url}{path}", **fields.pop("config", {})}
    return await tools.create("webhook", config, **fields)


async def test_the_input_is_the_body(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for method in ("POST", "PUT", "PATCH"):
        with subtests.test(method=method):
            site.reset()
            arguments = {"order": {"id": 7, "note": "für Zoë"}, "urgent": True}
            output = await tools.get_output(
                await _create_webhook(tools, site, config={"method": method}), arguments
            )
            assert (site.last.method, site.last.path) == (method, "/hook")
            assert site.last.body == '{"order":{"id":7,"note":"für Zoë"},"urgent":true}'.encode()
            assert site.last.headers["Content-Type"] == "application/json"
            assert (output["status_code"], output["body"]) == (200, {"ok": True})


async def test_post_is_the_default_method(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(await _create_webhook(tools, site))
    assert (site.last.method, site.last.body) == ("POST", b"{}")


async def test_the_input_of_a_get_is_the_query(tools: ToolExecutor, site: Site) -> None:
    tool = await _create_webhook(tools, site, "/hook?fixed=1", config={"method": "GET"})
    arguments = {"q": "a&b", "n": 2, "x": 1.5, "on": True, "no": None, "ids": [1, 2], "fixed": "2"}
    await tools.get_output(tool, arguments)
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


async def test_an_input_that_fits_into_no_query_is_refused(tools: ToolExecutor, site: Site) -> None:
    tool = await _create_webhook(tools, site, "/hook", config={"method": "GET"})
    error = await tools.get_failure(tool, {"deep": {"a": 1}})
    assert "deep" in error["message"]
    assert not site.requests


async def test_the_input_of_a_delete_is_the_body(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(
        await _create_webhook(tools, site, "/hook", config={"method": "DELETE"}), {"id": 1}
    )
    assert (site.last.method, site.last.body) == ("DELETE", b'{"id":1}')


async def test_a_query_of_the_address_is_kept_without_input(
    tools: ToolExecutor, site: Site
) -> None:
    await tools.get_output(
        await _create_webhook(tools, site, "/hook?fixed=1", config={"method": "GET"})
    )
    assert site.last.path == "/hook?fixed=1"


async def test_the_address_is_called_as_it_was_written(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for path in ("/a%2Fb", "/a%20b", "/a+b", "/%C3%BC", "/a%3Fb", "/"):
        with subtests.test(path=path):
            site.reset()
            await tools.get_output(await _create_webhook(tools, site, path))
            assert site.last.path == path


async def test_headers_of_the_tool_are_sent_without_those_of_the_service(
    tools: ToolExecutor, site: Site
) -> None:
    headers = {
        "X-Kind": "order",
        "Content-Type": "application/vnd.shop+json",
        "Host": "evil.test",
        "X-Service-Token": "evil.test",
        "Webhook-Signature": "evil.test",
    }
    await tools.get_output(await _create_webhook(tools, site, config={"headers": headers}))
    assert site.last.headers["X-Kind"] == "order"
    assert site.last.headers["Content-Type"] == "application/vnd.shop+json"
    assert "evil.test" not in site.last.headers.values()


async def test_a_line_break_in_a_header_adds_no_other(tools: ToolExecutor, site: Site) -> None:
    config = {"headers": {"X-A": "1\r\nX-Injected: 1"}}
    await tools.get_output(await _create_webhook(tools, site, config=config))
    assert "X-Injected" not in site.last.headers


async def test_the_input_sets_no_headers(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(await _create_webhook(tools, site), {"headers": {"X-Injected": "1"}})
    assert "X-Injected" not in site.last.headers


async def test_each_auth_is_sent(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        ("bearer", {"token": "tkn-123456"}, "Authorization", "Bearer tkn-123456"),
        ("basic", {"username": "a", "password": "b"}, "Authorization", "Basic YTpi"),
        ("api_key", {"api_key_value": "key-123456"}, "X-API-Key", "key-123456"),
        ("custom", {"headers": {"X-Sig": "sig-123456"}}, "X-Sig", "sig-123456"),
    ]
    for auth_type, auth, header, value in cases:
        with subtests.test(auth_type=auth_type, auth=auth):
            site.reset()
            await tools.get_output(
                await _create_webhook(tools, site, auth_type=auth_type, auth_config=auth)
            )
            assert site.last.headers[header] == value


async def test_a_key_in_the_query_is_added_to_the_input(tools: ToolExecutor, site: Site) -> None:
    auth = {"api_key_value": "key-123456", "api_key_header": "key", "api_key_location": "query"}
    config = {"method": "GET"}
    tool = await _create_webhook(tools, site, auth_type="api_key", auth_config=auth, config=config)
    await tools.get_output(tool, {"q": "a", "key": "of-the-caller"})
    assert site.last.query == [("q", "a"), ("key", "key-123456")]


async def test_an_error_status_is_an_error_after_one_request(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for status in (400, 404, 500, 503):
        with subtests.test(status=status):
            site.reset()
            site.handler = respond_with("no", status=status)
            error = await tools.get_failure(await _create_webhook(tools, site))
            assert (error["code"], error["output"]["body"]) == ("http_error", "no")
            assert len(site.requests) == 1


async def test_a_redirect_is_not_followed(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with("", status=307, headers={"Location": "/elsewhere"})
    assert (await tools.get_output(await _create_webhook(tools, site)))["status_code"] == 307
    assert [request.path for request in site.requests] == ["/hook"]


async def test_a_closed_port_is_a_connection_error(tools: ToolExecutor, site: Site) -> None:
    config = {"url": f"http://127.0.0.1:{free_port()}/"}
    assert (
        await tools.get_error_code(await _create_webhook(tools, site, config=config))
        == "connection_error"
    )


async def test_an_answer_that_is_too_large_is_cut_off(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with(b"x" * (1024 * 1024 + 1))
    assert await tools.get_error_code(await _create_webhook(tools, site)) == "output_too_large"


async def test_the_timeout_of_a_tool_ends_its_request(tools: ToolExecutor, site: Site) -> None:
    closed = asyncio.Event()
    site.handler = hang_until_closed(closed)
    error = await tools.get_failure(await _create_webhook(tools, site, config={"timeout_ms": 200}))
    assert (error["status"], error["code"]) == ("timeout", "timeout")
    await until(closed.is_set)


async def test_a_large_input_arrives_whole(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(await _create_webhook(tools, site), {"text": "x" * 500_000})
    assert len(site.last.body) == 500_000 + len('{"text":""}')
