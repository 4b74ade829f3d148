"""Responses to REST API tools: their output, and retries."""

import asyncio

import pytest
from aiohttp import web

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.rest_api_tools import create_rest_api
from tests.agents.tools.site import Site, hang_until_closed, respond_in_turn, respond_with
from tests.assertions import until
from tests.ports import free_port


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


# Responses


_BODIES: list[tuple[bytes, str, object]] = [
    (b'{"a":[1]}', "application/json", {"a": [1]}),
    (b'{"a":1}', "application/problem+json; charset=utf-8", {"a": 1}),
    ("Grüße".encode(), "text/plain", "Grüße"),
    (b"\xff\xfe\x00", "image/png", {"base64": "//4A"}),
    (b"", "application/json", None),
    (b"{not json", "application/json", "{not json"),
    (b'{"a":NaN}', "application/json", '{"a":NaN}'),
    (b'"a\\u0000b"', "application/json", "ab"),
]


async def test_a_body_is_decoded_by_its_media_type(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for content, media_type, body in _BODIES:
        with subtests.test(content=content, media_type=media_type, body=body):
            site.reset()
            site.handler = respond_with(content, headers={"Content-Type": media_type})
            output = await tools.get_output(await create_rest_api(tools, site))
            assert (output["status_code"], output["body"]) == (200, body)


async def test_json_that_is_nested_too_deeply_is_invalid_output(
    tools: ToolExecutor, site: Site
) -> None:
    site.handler = respond_with(
        b"[" * 200 + b"]" * 200, headers={"Content-Type": "application/json"}
    )
    assert await tools.get_error_code(await create_rest_api(tools, site)) == "invalid_output"


async def test_an_answer_that_violates_the_output_schema_is_invalid_output(
    tools: ToolExecutor, site: Site
) -> None:
    schema = {"type": "object", "properties": {"body": {"type": "array"}}}
    assert (
        await tools.get_error_code(await create_rest_api(tools, site, output_schema=schema))
        == "invalid_output"
    )


async def test_headers_of_the_answer_are_returned_without_cookies(
    tools: ToolExecutor, site: Site
) -> None:
    site.handler = respond_with("x", headers={"X-Total": "7", "Set-Cookie": "session=abc"})
    headers = (await tools.get_output(await create_rest_api(tools, site)))["headers"]
    assert headers["x-total"] == "7"
    assert "set-cookie" not in headers


async def test_a_cookie_is_not_sent_back(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with("x", headers={"Set-Cookie": "session=abc; Path=/"})
    tool = await create_rest_api(tools, site)
    await tools.get_output(tool)
    await tools.get_output(tool)
    assert "Cookie" not in site.last.headers


async def test_an_error_status_is_an_error_with_the_answer_as_output(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for status in (400, 401, 403, 404, 409, 422, 429, 500, 503):
        with subtests.test(status=status):
            site.reset()
            site.handler = respond_with(
                '{"why":"no"}', status=status, headers={"Content-Type": "text/json"}
            )
            error = await tools.get_failure(await create_rest_api(tools, site))
            assert (error["status"], error["code"]) == ("failed", "http_error")
            assert str(status) in error["message"]
            assert (error["output"]["status_code"], error["output"]["body"]) == (
                status,
                {"why": "no"},
            )


async def test_a_redirect_is_an_answer_and_not_followed(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for status in (301, 302, 303, 307, 308):
        with subtests.test(status=status):
            site.reset()
            site.handler = respond_with(
                "", status=status, headers={"Location": f"{site.url}/elsewhere"}
            )
            output = await tools.get_output(await create_rest_api(tools, site))
            assert output["status_code"] == status
            assert [request.path for request in site.requests] == ["/things"]


async def test_an_answer_over_one_mebibyte_is_too_large(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with(b"x" * (1024 * 1024 + 1))
    assert await tools.get_error_code(await create_rest_api(tools, site)) == "output_too_large"


async def test_an_answer_of_just_one_mebibyte_is_returned(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with("x" * 1024 * 1024)
    output = await tools.get_output(await create_rest_api(tools, site))
    assert len(output["body"]) == 1024 * 1024


# Retries


async def test_a_server_error_is_retried_until_it_passes(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_in_turn(503, 500)
    await tools.get_output(await create_rest_api(tools, site, config={"retry_count": 3}))
    assert len(site.requests) == 3


async def test_there_are_no_more_retries_than_the_retry_count(
    tools: ToolExecutor, site: Site
) -> None:
    site.handler = respond_with("", status=500)
    assert (
        await tools.get_error_code(await create_rest_api(tools, site, config={"retry_count": 2}))
        == "http_error"
    )
    assert len(site.requests) == 3


async def test_without_a_retry_count_one_request_is_sent(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with("", status=500)
    await tools.get_failure(await create_rest_api(tools, site))
    assert len(site.requests) == 1


async def test_a_client_error_is_not_retried(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for status in (400, 404, 409, 429):
        with subtests.test(status=status):
            site.reset()
            site.handler = respond_with("", status=status)
            await tools.get_failure(await create_rest_api(tools, site, config={"retry_count": 3}))
            assert len(site.requests) == 1


async def test_a_lost_connection_is_retried(tools: ToolExecutor, site: Site) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        if len(site.requests) < 3:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({})

    site.handler = hang_up
    await tools.get_output(await create_rest_api(tools, site, config={"retry_count": 2}))
    assert len(site.requests) == 3


async def test_a_closed_port_is_a_connection_error(tools: ToolExecutor, site: Site) -> None:
    config = {"base_url": f"http://127.0.0.1:{free_port()}", "retry_count": 1}
    assert (
        await tools.get_error_code(await create_rest_api(tools, site, config=config))
        == "connection_error"
    )


async def test_an_answer_that_is_too_large_is_not_retried(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with(b"x" * (2 * 1024 * 1024))
    await tools.get_failure(await create_rest_api(tools, site, config={"retry_count": 3}))
    assert len(site.requests) == 1


async def test_retries_end_with_the_timeout_of_the_tool(tools: ToolExecutor, site: Site) -> None:
    site.handler = respond_with("", status=503)
    config = {"retry_count": 10, "timeout_ms": 300}
    error = await tools.get_failure(await create_rest_api(tools, site, config=config))
    assert (error["status"], error["code"]) == ("timeout", "timeout")
    assert len(site.requests) <= 3


async def test_the_timeout_of_a_tool_ends_its_request(tools: ToolExecutor, site: Site) -> None:
    closed = asyncio.Event()
    site.handler = hang_until_closed(closed)
    data = await tools.run(await create_rest_api(tools, site, config={"timeout_ms": 200}))
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert 150 <= data["execution_time_ms"] < 3000
    await until(closed.is_set)


async def test_an_answer_that_drips_is_a_timeout(tools: ToolExecutor, site: Site) -> None:
    sent_bytes = 0

    async def drip(request: web.Request) -> web.StreamResponse:
        nonlocal sent_bytes
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            sent_bytes += 1
            await asyncio.sleep(0.02)

    site.handler = drip
    tool = await create_rest_api(tools, site, config={"timeout_ms": 1000})
    assert await tools.get_error_code(tool) == "timeout"
    assert sent_bytes
