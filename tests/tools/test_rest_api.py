"""Tools that call a web interface: what is sent, as whom, and what is made of the answers."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused, until
from tests.ports import free_port
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site, always, first, open_site
from tests.world import World
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def bench(world: World, worker: WorkerProcess) -> Bench:
    return await bench_of(world)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


def _endpoint(method: str = "GET", path: str = "/things", **more: Any) -> dict[str, Any]:
    return {"method": method, "path": path, **more}


async def _api(
    bench: Bench, site: Site, endpoint: dict[str, Any] | None = None, **more: Any
) -> str:
    config = {
        "base_url": site.url,
        "endpoints": {"one": endpoint or _endpoint()},
        **more.pop("config", {}),
    }
    return await bench.create("rest_api", config, **more)


# What is sent


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_each_method_arrives(bench: Bench, site: Site, method: str) -> None:
    await bench.output(await _api(bench, site, _endpoint(method)))
    assert (site.last.method, site.last.path) == (method, "/things")


async def test_the_body_is_sent_as_json(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, _endpoint("POST"))
    await bench.output(tool, {"body": {"name": "Zoë", "tags": [1, None]}})
    assert site.last.body == '{"name":"Zoë","tags":[1,null]}'.encode()
    assert site.last.headers["content-type"] == "application/json"


async def test_a_body_of_text_is_sent_as_text(bench: Bench, site: Site) -> None:
    await bench.output(await _api(bench, site, _endpoint("POST")), {"body": "Grüße"})
    assert site.last.body == "Grüße".encode()
    assert site.last.headers["content-type"] == "text/plain; charset=utf-8"


async def test_default_params_are_sent_and_given_ones_win(bench: Bench, site: Site) -> None:
    endpoint = _endpoint(default_params={"page": 1, "size": 20, "sort": "name"})
    tool = await _api(bench, site, endpoint)
    await bench.output(tool, {"params": {"page": 2, "sort": None}})
    assert site.last.query == [("page", "2"), ("size", "20")]


async def test_a_list_is_repeated_in_the_query(bench: Bench, site: Site) -> None:
    await bench.output(await _api(bench, site), {"params": {"id": [1, "two", True, None]}})
    assert site.last.query == [("id", "1"), ("id", "two"), ("id", "true")]


async def test_values_of_the_query_are_encoded(bench: Bench, site: Site) -> None:
    value = "a&b=c#d é+%2f \n"
    await bench.output(await _api(bench, site), {"params": {"q": value}})
    assert site.last.query == [("q", value)]


async def test_a_query_of_the_base_url_is_kept(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, config={"base_url": f"{site.url}/v2/?key=a"})
    await bench.output(tool, {"params": {"q": "b"}})
    assert site.last.path.startswith("/v2/things?")
    assert site.last.query == [("key", "a"), ("q", "b")]


async def test_a_query_in_the_path_is_filled_in(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, _endpoint(path="/search?kind=book&q={term}"))
    await bench.output(tool, {"params": {"term": "war & peace", "page": 2}})
    assert site.last.query == [("kind", "book"), ("q", "war & peace"), ("page", "2")]


async def test_headers_of_the_tool_win_over_those_of_the_caller(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, _endpoint(default_headers={"X-Version": "1", "Accept": "a/b"}))
    await bench.output(tool, {"headers": {"x-version": "2", "X-Trace": "t"}})
    assert site.last.headers.getall("X-Version") == ["1"]
    assert (site.last.headers["Accept"], site.last.headers["X-Trace"]) == ("a/b", "t")


@pytest.mark.parametrize(
    "name", ["Host", "HOST", "X-Service-Token", "x-service-name", "Connection", "Webhook-Id"]
)
@pytest.mark.parametrize("by", ["caller", "tool"])
async def test_a_header_that_is_ours_cannot_be_set(
    bench: Bench, site: Site, name: str, by: str
) -> None:
    evil = {name: "evil.test"}
    tool = await _api(bench, site, _endpoint(default_headers=evil if by == "tool" else {}))
    await bench.output(tool, {"headers": evil} if by == "caller" else {})
    assert "evil.test" not in site.last.headers.values()


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "1\r\nX-Injected: 1"},
        {"X-A": "1\nX-Injected: 1"},
        {"X-A\r\nX-Injected": "1"},
        {"X-A: 1\r\nX-Injected": "1"},
    ],
)
async def test_a_line_break_adds_no_header(
    bench: Bench, site: Site, headers: dict[str, str]
) -> None:
    await bench.output(await _api(bench, site), {"headers": headers})
    assert "X-Injected" not in site.last.headers


async def test_the_framing_of_the_body_cannot_be_changed(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, _endpoint("POST"))
    given = {"Content-Length": "1", "Transfer-Encoding": "chunked"}
    await bench.output(tool, {"headers": given, "body": {"a": 1}})
    assert site.last.body == b'{"a":1}'


# Parameters in the path


@pytest.mark.parametrize(
    ("value", "piece"),
    [
        ("plain", "plain"),
        ("a/b", "a%2Fb"),
        ("a?b=c", "a%3Fb%3Dc"),
        ("a#b", "a%23b"),
        ("a%2fb", "a%252fb"),
        ("%2e%2e", "%252e%252e"),
        ("zoë", "zo%C3%AB"),
        ("a b", "a%20b"),
        ("a;b", "a%3Bb"),
        ("a\\b", "a%5Cb"),
        ("a\r\nb", "a%0D%0Ab"),
        ("...", "..."),
        ("v1..v2", "v1..v2"),
        (7, "7"),
        (True, "true"),
        ("{other}", "%7Bother%7D"),
    ],
)
async def test_a_parameter_is_one_piece_of_the_path(
    bench: Bench, site: Site, value: object, piece: str
) -> None:
    tool = await _api(bench, site, _endpoint(path="/things/{id}/parts"))
    await bench.output(tool, {"params": {"id": value}})
    assert site.last.path == f"/things/{piece}/parts"


@pytest.mark.parametrize(
    ("value", "piece"),
    [
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("../admin", "%2E%2E%2Fadmin"),
        ("a/../../admin?x=1", "a%2F%2E%2E%2F%2E%2E%2Fadmin%3Fx%3D1"),
        ("..\\admin", "%2E%2E%5Cadmin"),
        ("a/..", "a%2F%2E%2E"),
        ("./a", "%2E%2Fa"),
        ("%2e%2e/admin", "%252e%252e%2Fadmin"),
    ],
)
async def test_a_parameter_never_climbs(bench: Bench, site: Site, value: str, piece: str) -> None:
    tool = await _api(bench, site, _endpoint("DELETE", "/things/{id}"))
    await bench.output(tool, {"params": {"id": value}})
    assert site.last.path == f"/things/{piece}"


async def test_two_parameters_do_not_climb_together(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, _endpoint(path="/things/{a}{b}/parts"))
    await bench.output(tool, {"params": {"a": ".", "b": "."}})
    assert site.last.path == "/things/%2E%2E/parts"


async def test_what_the_config_fixes_is_not_for_the_caller_to_say(bench: Bench, site: Site) -> None:
    endpoint = _endpoint(path="/things?scope=own", default_headers={"X-Role": "guest"})
    tool = await _api(bench, site, endpoint)
    given = {"params": {"scope": "all"}, "headers": {"X-Role": "a", "x-role": "admin"}}
    await bench.output(tool, given)
    assert site.last.query == [("scope", "own")]
    assert site.last.headers.getall("X-Role") == ["guest"]


@pytest.mark.parametrize("token", ["abcdef\n", "abc\r\nX-Evil: 1"])
async def test_a_secret_that_no_header_can_hold_calls_nobody(
    bench: Bench, site: Site, token: str
) -> None:
    tool = await _api(bench, site, auth_type="bearer", auth_config={"token": token})
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


@pytest.mark.parametrize("value", [None, ""])
async def test_a_parameter_that_is_missing_is_named(
    bench: Bench, site: Site, value: object
) -> None:
    """An empty one would turn the address of a thing into that of all things."""
    tool = await _api(bench, site, _endpoint("DELETE", "/things/{id}"))
    error = await bench.failure(tool, {"params": {"id": value}})
    assert error["code"] == "runtime_error"
    assert "id" in error["message"]
    assert not site.seen


async def test_a_default_fills_the_path(bench: Bench, site: Site) -> None:
    endpoint = _endpoint(path="/things/{id}", default_params={"id": "first"})
    await bench.output(await _api(bench, site, endpoint))
    assert site.last.path == "/things/first"


async def test_a_parameter_of_the_path_is_not_in_the_query(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, _endpoint(path="/things/{id}"))
    await bench.output(tool, {"params": {"id": 1, "x": 2}})
    assert site.last.path == "/things/1?x=2"


# Which endpoint


async def test_an_unknown_endpoint_is_refused_with_the_known_ones(bench: Bench, site: Site) -> None:
    error = await bench.failure(await _api(bench, site), {"endpoint": "two"})
    assert error["code"] == "runtime_error"
    assert "one" in error["message"]
    assert not site.seen


async def test_one_of_several_endpoints_must_be_named(bench: Bench, site: Site) -> None:
    endpoints = {"one": _endpoint(path="/1"), "two": _endpoint(path="/2")}
    tool = await _api(bench, site, config={"endpoints": endpoints})
    assert await bench.code(tool) == "runtime_error"
    await bench.output(tool, {"endpoint": "two"})
    assert [seen.path for seen in site.seen] == ["/2"]


@pytest.mark.parametrize(
    "given", [{"params": []}, {"headers": {"a": 1}}, {"endpoint": 1}, {"params": {"a": {}}}]
)
async def test_input_of_another_shape_is_invalid(
    bench: Bench, site: Site, given: dict[str, Any]
) -> None:
    tool = await _api(bench, site)
    answer = await bench.client.post(f"/v1/tools/{tool}/execute", {"input": given})
    refused(answer, 422, "validation_error")
    assert not site.seen


# What is made of answers


@pytest.mark.parametrize(
    ("content", "media_type", "body"),
    [
        pytest.param(b'{"a":[1]}', "application/json", {"a": [1]}, id="json"),
        pytest.param(b'{"a":1}', "application/problem+json; charset=utf-8", {"a": 1}, id="problem"),
        pytest.param("Grüße".encode(), "text/plain", "Grüße", id="text"),
        pytest.param(b"\xff\xfe\x00", "image/png", {"base64": "//4A"}, id="binary"),
        pytest.param(b"", "application/json", None, id="empty"),
        pytest.param(b"{not json", "application/json", "{not json", id="invalid json"),
        pytest.param(b'{"a":NaN}', "application/json", '{"a":NaN}', id="NaN"),
        pytest.param(b'"a\\u0000b"', "application/json", "ab", id="NUL"),
    ],
)
async def test_a_body_is_given_as_what_it_is(
    bench: Bench, site: Site, content: bytes, media_type: str, body: object
) -> None:
    site.answer = always(content, headers={"Content-Type": media_type})
    output = await bench.output(await _api(bench, site))
    assert (output["status_code"], output["body"]) == (200, body)


async def test_json_that_is_nested_too_deeply_is_no_output(bench: Bench, site: Site) -> None:
    site.answer = always(b"[" * 200 + b"]" * 200, headers={"Content-Type": "application/json"})
    assert await bench.code(await _api(bench, site)) == "invalid_output"


async def test_an_output_schema_is_held_against_the_answer(bench: Bench, site: Site) -> None:
    schema = {"type": "object", "properties": {"body": {"type": "array"}}}
    assert await bench.code(await _api(bench, site, output_schema=schema)) == "invalid_output"


async def test_headers_of_the_answer_are_given_without_cookies(bench: Bench, site: Site) -> None:
    site.answer = always("x", headers={"X-Total": "7", "Set-Cookie": "session=abc"})
    headers = (await bench.output(await _api(bench, site)))["headers"]
    assert headers["x-total"] == "7"
    assert "set-cookie" not in headers


async def test_a_cookie_is_not_sent_back(bench: Bench, site: Site) -> None:
    site.answer = always("x", headers={"Set-Cookie": "session=abc; Path=/"})
    tool = await _api(bench, site)
    await bench.output(tool)
    await bench.output(tool)
    assert "Cookie" not in site.last.headers


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 503])
async def test_a_refusal_is_an_error_that_keeps_the_answer(
    bench: Bench, site: Site, status: int
) -> None:
    site.answer = always('{"why":"no"}', status=status, headers={"Content-Type": "text/json"})
    error = await bench.failure(await _api(bench, site))
    assert (error["status"], error["code"]) == ("failed", "http_error")
    assert str(status) in error["message"]
    assert (error["output"]["status_code"], error["output"]["body"]) == (status, {"why": "no"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_not_followed(
    bench: Bench, site: Site, status: int
) -> None:
    site.answer = always("", status=status, headers={"Location": f"{site.url}/elsewhere"})
    output = await bench.output(await _api(bench, site))
    assert output["status_code"] == status
    assert [seen.path for seen in site.seen] == ["/things"]


async def test_an_answer_over_one_mebibyte_is_too_large(bench: Bench, site: Site) -> None:
    site.answer = always(b"x" * (1024 * 1024 + 1))
    assert await bench.code(await _api(bench, site)) == "output_too_large"


async def test_an_answer_of_just_one_mebibyte_is_given(bench: Bench, site: Site) -> None:
    site.answer = always("x" * 1024 * 1024)
    output = await bench.output(await _api(bench, site))
    assert len(output["body"]) == 1024 * 1024


# Trying again


async def test_a_server_error_is_tried_again_until_it_passes(bench: Bench, site: Site) -> None:
    site.answer = first(503, 500)
    await bench.output(await _api(bench, site, config={"retry_count": 3}))
    assert len(site.seen) == 3


async def test_no_more_is_tried_than_the_config_says(bench: Bench, site: Site) -> None:
    site.answer = always("", status=500)
    assert await bench.code(await _api(bench, site, config={"retry_count": 2})) == "http_error"
    assert len(site.seen) == 3


async def test_without_a_retry_count_one_request_is_sent(bench: Bench, site: Site) -> None:
    site.answer = always("", status=500)
    await bench.failure(await _api(bench, site))
    assert len(site.seen) == 1


@pytest.mark.parametrize("status", [400, 404, 409, 429])
async def test_a_refusal_is_not_tried_again(bench: Bench, site: Site, status: int) -> None:
    site.answer = always("", status=status)
    await bench.failure(await _api(bench, site, config={"retry_count": 3}))
    assert len(site.seen) == 1


async def test_a_lost_connection_is_tried_again(bench: Bench, site: Site) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        if len(site.seen) < 3:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({})

    site.answer = hang_up
    await bench.output(await _api(bench, site, config={"retry_count": 2}))
    assert len(site.seen) == 3


async def test_nobody_listening_is_a_connection_error(bench: Bench, site: Site) -> None:
    config = {"base_url": f"http://127.0.0.1:{free_port()}", "retry_count": 1}
    assert await bench.code(await _api(bench, site, config=config)) == "connection_error"


async def test_an_answer_that_is_too_large_is_not_tried_again(bench: Bench, site: Site) -> None:
    site.answer = always(b"x" * (2 * 1024 * 1024))
    await bench.failure(await _api(bench, site, config={"retry_count": 3}))
    assert len(site.seen) == 1


async def test_retries_end_with_the_tools_time(bench: Bench, site: Site) -> None:
    site.answer = always("", status=503)
    config = {"retry_count": 10, "timeout_ms": 300}
    error = await bench.failure(await _api(bench, site, config=config))
    assert (error["status"], error["code"]) == ("timeout", "timeout")
    assert len(site.seen) <= 3


async def test_the_time_of_a_tool_ends_its_request(bench: Bench, site: Site) -> None:
    gone = asyncio.Event()

    async def never(request: web.Request) -> web.StreamResponse:
        await until(lambda: request.transport is None or request.transport.is_closing())
        gone.set()
        return web.Response()

    site.answer = never
    data = await bench.run(await _api(bench, site, config={"timeout_ms": 200}))
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert 150 <= data["execution_time_ms"] < 3000
    await until(gone.is_set)


async def test_an_answer_that_drips_is_a_timeout(bench: Bench, site: Site) -> None:
    dripped = 0

    async def drip(request: web.Request) -> web.StreamResponse:
        nonlocal dripped
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            dripped += 1
            await asyncio.sleep(0.02)

    site.answer = drip
    assert await bench.code(await _api(bench, site, config={"timeout_ms": 200})) == "timeout"
    assert dripped


# Who is calling


async def test_without_auth_nothing_is_shown(bench: Bench, site: Site) -> None:
    await bench.output(await _api(bench, site))
    assert "Authorization" not in site.last.headers


async def test_an_api_key_is_sent_in_its_header(bench: Bench, site: Site) -> None:
    auth = {"api_key_value": "key-0123456789", "api_key_header": "X-Shop-Key"}
    await bench.output(await _api(bench, site, auth_type="api_key", auth_config=auth))
    assert site.last.headers["X-Shop-Key"] == "key-0123456789"


async def test_an_api_key_goes_into_a_usual_header_by_itself(bench: Bench, site: Site) -> None:
    auth = {"api_key_value": "key-0123456789"}
    await bench.output(await _api(bench, site, auth_type="api_key", auth_config=auth))
    assert site.last.headers["X-API-Key"] == "key-0123456789"


async def test_an_api_key_is_sent_in_the_query(bench: Bench, site: Site) -> None:
    auth = {
        "api_key_value": "key/0123&456=é",
        "api_key_header": "key",
        "api_key_location": "query",
    }
    tool = await _api(bench, site, auth_type="api_key", auth_config=auth)
    await bench.output(tool, {"params": {"q": "a", "key": "mine"}})
    assert site.last.query == [("q", "a"), ("key", "key/0123&456=é")]


async def test_an_api_key_in_the_query_leaves_the_path_as_it_is(bench: Bench, site: Site) -> None:
    auth = {"api_key_value": "secret", "api_key_header": "key", "api_key_location": "query"}
    endpoint = _endpoint(path="/things/{id}")
    tool = await _api(bench, site, endpoint, auth_type="api_key", auth_config=auth)
    await bench.output(tool, {"params": {"id": "a/b%2fc"}})
    assert site.last.path == "/things/a%2Fb%252fc?key=secret"


async def test_a_bearer_token_is_sent(bench: Bench, site: Site) -> None:
    auth = {"token": "tkn-0123456789"}
    await bench.output(await _api(bench, site, auth_type="bearer", auth_config=auth))
    assert site.last.headers["Authorization"] == "Bearer tkn-0123456789"


async def test_name_and_password_are_sent(bench: Bench, site: Site) -> None:
    auth = {"username": "zoë", "password": "pä:ss"}
    await bench.output(await _api(bench, site, auth_type="basic", auth_config=auth))
    kind, _, pair = site.last.headers["Authorization"].partition(" ")
    assert (kind, base64.b64decode(pair).decode()) == ("Basic", "zoë:pä:ss")


async def test_headers_of_ones_own_are_sent(bench: Bench, site: Site) -> None:
    auth = {"headers": {"X-Account": "acc-1", "X-Signature": "sig-0123456789"}}
    await bench.output(await _api(bench, site, auth_type="custom", auth_config=auth))
    headers = site.last.headers
    assert (headers["X-Account"], headers["X-Signature"]) == ("acc-1", "sig-0123456789")


async def test_auth_headers_cannot_name_another_host(bench: Bench, site: Site) -> None:
    auth = {"headers": {"Host": "evil.test", "X-Service-Tenant": "evil.test", "X-A": "b"}}
    tool = await _api(bench, site, auth_type="custom", auth_config=auth)
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


async def test_a_caller_cannot_speak_as_somebody_else(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"})
    await bench.output(tool, {"headers": {"authorization": "Bearer of-the-caller"}})
    assert site.last.headers.getall("Authorization") == ["Bearer tkn-of-the-tool"]


async def test_a_tool_whose_auth_is_not_set_calls_nobody(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, auth_type="bearer")
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


# OAuth 2


class Shop(Site):
    """Takes the tokens that it gave out at /token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []
        self.revoked: set[str] = set()
        self.expires_in: int | None = 3600
        self.refuse: Any = None
        self.answer = self._trade

    async def _trade(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return self._token()
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if shown not in self.tokens or shown in self.revoked:
            return web.json_response({"error": "token"}, status=401)
        return web.json_response({"ok": True})

    def _token(self) -> web.Response:
        if self.refuse is not None:
            return web.json_response(self.refuse, status=400)
        self.tokens.append(f"issued-token-{len(self.tokens)}")
        body: dict[str, Any] = {"access_token": self.tokens[-1], "token_type": "bearer"}
        if self.expires_in is not None:
            body["expires_in"] = self.expires_in
        return web.json_response(body)

    @property
    def asked(self) -> list[str]:
        return [seen.path for seen in self.seen]


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    made = Shop()
    await made.start()
    yield made
    await made.close()


def _client_of(shop: Shop, **more: str) -> dict[str, str]:
    return {
        "token_url": f"{shop.url}/token",
        "client_id": "client-1",
        "client_secret": "secret-0123456789",
        **more,
    }


async def _with_oauth2(bench: Bench, shop: Shop, **more: str) -> str:
    return await _api(bench, shop, auth_type="oauth2", auth_config=_client_of(shop, **more))


async def test_a_token_is_asked_for_with_the_clients_secret(bench: Bench, shop: Shop) -> None:
    await bench.output(await _with_oauth2(bench, shop, scope="read write"))
    assert shop.seen[0].form == {
        "grant_type": "client_credentials",
        "client_id": "client-1",
        "client_secret": "secret-0123456789",
        "scope": "read write",
    }
    assert shop.last.headers["Authorization"] == "Bearer issued-token-0"


async def test_a_token_is_used_until_it_runs_out(bench: Bench, shop: Shop) -> None:
    tool = await _with_oauth2(bench, shop)
    await bench.output(tool)
    await bench.output(tool)
    assert shop.asked == ["/token", "/things", "/things"]


async def test_many_at_once_share_one_token(bench: Bench, shop: Shop) -> None:
    tool = await _with_oauth2(bench, shop)
    await asyncio.gather(*(bench.output(tool) for _ in range(5)))
    assert shop.asked.count("/token") == 1


async def test_a_token_that_is_about_to_end_is_not_used_again(bench: Bench, shop: Shop) -> None:
    shop.expires_in = 10
    tool = await _with_oauth2(bench, shop)
    await bench.output(tool)
    await bench.output(tool)
    assert shop.asked.count("/token") == 2


async def test_another_scope_is_another_token(bench: Bench, shop: Shop) -> None:
    await bench.output(await _with_oauth2(bench, shop, scope="read"))
    await bench.output(await _with_oauth2(bench, shop, scope="write"))
    assert shop.asked.count("/token") == 2


async def test_a_refused_token_is_renewed_once(bench: Bench, shop: Shop) -> None:
    tool = await _with_oauth2(bench, shop)
    await bench.output(tool)
    shop.revoked.add("issued-token-0")
    await bench.output(tool)
    assert shop.asked == ["/token", "/things", "/things", "/token", "/things"]
    assert shop.last.headers["Authorization"] == "Bearer issued-token-1"


async def test_a_second_refusal_is_the_answer(bench: Bench, shop: Shop) -> None:
    tool = await _with_oauth2(bench, shop)
    shop.revoked |= {"issued-token-0", "issued-token-1"}
    assert await bench.code(tool) == "http_error"
    assert shop.asked == ["/token", "/things", "/token", "/things"]


async def test_a_client_that_is_refused_is_a_failed_auth(bench: Bench, shop: Shop) -> None:
    shop.refuse = {"error": "unauthorized_client"}
    error = await bench.failure(await _with_oauth2(bench, shop))
    assert error["code"] == "auth_failed"
    assert "unauthorized_client" in error["message"]
    assert shop.asked == ["/token"]


async def test_a_client_refused_in_the_form_is_shown_in_the_header(
    bench: Bench, shop: Shop
) -> None:
    async def header_only(request: web.Request) -> web.StreamResponse:
        if request.path == "/token" and "Authorization" not in request.headers:
            return web.json_response({"error": "invalid_client"}, status=401)
        return await shop._trade(request)

    shop.answer = header_only
    await bench.output(await _with_oauth2(bench, shop))
    pair = base64.b64encode(b"client-1:secret-0123456789").decode()
    assert shop.seen[1].headers["Authorization"] == f"Basic {pair}"


async def test_a_token_endpoint_that_is_away_is_a_failed_auth(bench: Bench, shop: Shop) -> None:
    auth = _client_of(shop) | {"token_url": f"http://127.0.0.1:{free_port()}/token"}
    tool = await _api(bench, shop, auth_type="oauth2", auth_config=auth)
    assert await bench.code(tool) == "auth_failed"
    assert not shop.seen


# Credentials of the vault


def _pair(text: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


_FITTING: list[Any] = [
    pytest.param(
        "api_key", "api_key", {"api_key": "key-123456"}, {"X-API-Key": "key-123456"}, id="api_key"
    ),
    pytest.param(
        "bearer",
        "bearer_token",
        {"token": "tkn-123456"},
        {"Authorization": "Bearer tkn-123456"},
        id="bearer",
    ),
    pytest.param(
        "basic",
        "basic_auth",
        {"username": "zoe", "password": "pass-123456"},
        _pair("zoe:pass-123456"),
        id="basic",
    ),
    pytest.param(
        "custom",
        "custom",
        {"X-Account": "acc-1", "X-Key": "key-123456"},
        {"X-Account": "acc-1", "X-Key": "key-123456"},
        id="custom",
    ),
    pytest.param(
        "oauth2",
        "oauth2",
        {
            "client_id": "c",
            "client_secret": "secret-123",
            "token_url": "http://127.0.0.1:9/token",
            "access_token": "tkn-stored-1",
        },
        {"Authorization": "Bearer tkn-stored-1"},
        id="oauth2",
    ),
]


@pytest.mark.parametrize(("auth_type", "type_", "secrets", "headers"), _FITTING)
async def test_a_credential_is_shown_where_a_rule_allows_it(
    bench: Bench,
    site: Site,
    auth_type: str,
    type_: str,
    secrets: dict[str, Any],
    headers: dict[str, str],
) -> None:
    credential = await bench.credential(type_, secrets)
    auth = {"credential_id": credential}
    tool = await _api(bench, site, auth_type=auth_type, auth_config=auth)
    await bench.grant(credential, tool)
    await bench.output(tool)
    assert {name: site.last.headers.get(name) for name in headers} == headers


@pytest.mark.parametrize(("auth_type", "type_", "secrets", "headers"), _FITTING)
async def test_a_credential_without_a_rule_is_not_shown(
    bench: Bench,
    site: Site,
    auth_type: str,
    type_: str,
    secrets: dict[str, Any],
    headers: dict[str, str],
) -> None:
    auth = {"credential_id": await bench.credential(type_, secrets)}
    tool = await _api(bench, site, auth_type=auth_type, auth_config=auth)
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_a_login_of_a_database_is_no_identity_for_the_web(
    bench: Bench, site: Site, tool_type: str
) -> None:
    """Nor is anybody called without one."""
    secrets = {"host": "127.0.0.1", "database": "d", "username": "u", "password": "pass-123456"}
    credential = await bench.credential("database", secrets)
    configs: dict[str, dict[str, Any]] = {
        "rest_api": {"base_url": site.url, "endpoints": {"one": _endpoint()}},
        "webhook": {"url": site.url},
        "custom": {"kind": "mcp", "url": site.url, "tool": "add"},
    }
    auth = {"credential_id": credential}
    tool = await bench.create(tool_type, configs[tool_type], auth_type="basic", auth_config=auth)
    await bench.grant(credential, tool)
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


async def test_a_rule_that_is_taken_away_ends_the_use(bench: Bench, site: Site) -> None:
    credential = await bench.credential("bearer_token", {"token": "tkn-0123456789"})
    tool = await _api(bench, site, auth_type="bearer", auth_config={"credential_id": credential})
    rule = await bench.grant(credential, tool)
    await bench.output(tool)
    assert (await bench.client.delete(rule)).status_code == 204
    assert await bench.code(tool) == "auth_failed"
    assert len(site.seen) == 1


async def test_a_deleted_credential_is_not_used(bench: Bench, site: Site) -> None:
    credential = await bench.credential("bearer_token", {"token": "tkn-0123456789"})
    tool = await _api(bench, site, auth_type="bearer", auth_config={"credential_id": credential})
    await bench.grant(credential, tool)
    assert (await bench.client.delete(f"/v1/credentials/{credential}")).status_code == 204
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


async def test_a_key_of_the_vault_goes_where_the_tool_wants_it(bench: Bench, site: Site) -> None:
    credential = await bench.credential("api_key", {"api_key": "key-0123456789"})
    auth = {
        "credential_id": credential,
        "api_key_header": "appid",
        "api_key_location": "query",
    }
    tool = await _api(bench, site, auth_type="api_key", auth_config=auth)
    await bench.grant(credential, tool)
    await bench.output(tool)
    assert site.last.query == [("appid", "key-0123456789")]


async def test_a_token_of_the_vault_that_is_refused_is_renewed_and_kept(
    bench: Bench, shop: Shop
) -> None:
    secrets = {**_client_of(shop), "access_token": "stale", "refresh_token": "refresh-0123"}
    credential = await bench.credential("oauth2", secrets)
    tool = await _api(bench, shop, auth_type="oauth2", auth_config={"credential_id": credential})
    await bench.grant(credential, tool)
    await bench.output(tool)
    await bench.output(tool)
    assert shop.asked == ["/things", "/token", "/things", "/things"]
    assert shop.seen[1].form["refresh_token"] == "refresh-0123"


@pytest.mark.parametrize(
    ("auth_type", "type_", "secrets"),
    [
        ("bearer", "api_key", {"api_key": "key-123456"}),
        ("api_key", "bearer_token", {"token": "tkn-123456"}),
        ("custom", "basic_auth", {"username": "a", "password": "b"}),
        ("basic", "custom", {"X-A": "b"}),
    ],
)
async def test_a_credential_of_another_kind_does_not_fit(
    bench: Bench, site: Site, auth_type: str, type_: str, secrets: dict[str, Any]
) -> None:
    credential = await bench.credential(type_, secrets)
    body = {
        "name": "Tool",
        "category": "custom",
        "tool_type": "rest_api",
        "config": {"base_url": site.url, "endpoints": {"one": _endpoint()}},
        "auth_type": auth_type,
        "auth_config": {"credential_id": credential},
    }
    error = refused(await bench.client.post("/v1/tools", body), 422, "validation_error")
    assert "auth_config.credential_id" in error["details"]


async def test_a_credential_of_another_tenant_is_unknown(
    bench: Bench, world: World, site: Site
) -> None:
    other = await bench_of(world)
    credential = await other.credential("bearer_token", {"token": "tkn-0123456789"})
    body = {
        "name": "Tool",
        "category": "custom",
        "tool_type": "webhook",
        "config": {"url": site.url},
        "auth_type": "bearer",
        "auth_config": {"credential_id": credential},
    }
    refused(await bench.client.post("/v1/tools", body), 422, "validation_error")


# An agent's own settings


async def _attached(bench: Bench, tool: str, override: dict[str, Any]) -> str:
    agent = await bench.agent()
    body = {"tool_id": tool, "config_override": override}
    answer = await bench.client.post(f"/v1/agents/{agent}/tools", body)
    assert answer.status_code == 201, answer.text
    return agent


async def test_an_agents_auth_is_shown_instead_of_the_tools(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"})
    agent = await _attached(bench, tool, {"auth_config": {"token": "tkn-of-the-agent"}})
    await bench.output(tool, agent_id=agent)
    assert site.last.headers["Authorization"] == "Bearer tkn-of-the-agent"


async def test_the_tools_auth_is_not_shown_where_an_agent_leads(bench: Bench, site: Site) -> None:
    tool = await _api(bench, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"})
    async with open_site() as other:
        agent = await _attached(bench, tool, {"base_url": other.url})
        await bench.output(tool, agent_id=agent)
        assert "Authorization" not in other.last.headers
    assert not site.seen


async def test_a_credential_of_an_agents_settings_needs_a_rule_for_the_agent(
    bench: Bench, site: Site
) -> None:
    tool = await _api(bench, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"})
    credential = await bench.credential("bearer_token", {"token": "tkn-of-the-vault"})
    await bench.grant(credential, tool)
    agent = await _attached(bench, tool, {"auth_config": {"credential_id": credential}})
    assert await bench.code(tool, agent_id=agent) == "auth_failed"
    await bench.grant(credential, agent, "agent")
    await bench.output(tool, agent_id=agent)
    assert site.last.headers["Authorization"] == "Bearer tkn-of-the-vault"


async def test_auth_stays_where_it_was_given_for_whatever_becomes_of_the_config(
    bench: Bench, site: Site, services: Services
) -> None:
    """Who can write to the database still sends no secret anywhere else."""
    auth = {"token": "tkn-sealed-with-its-host"}
    tool = await _api(bench, site, auth_type="bearer", auth_config=auth)
    moved = site.url.replace("127.0.0.1", "localhost")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE tools SET config = replace(config::text, $2, $3)::json WHERE id = $1",
            tool,
            site.url,
            moved,
        )
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen


async def test_a_credential_goes_to_its_allowed_hosts_alone(bench: Bench, site: Site) -> None:
    token = {"token": "tkn-for-one-host-alone"}
    credential = await bench.credential("bearer_token", token)
    auth = {"credential_id": credential}
    tool = await _api(bench, site, auth_type="bearer", auth_config=auth)
    await bench.grant(credential, tool)
    path = f"/v1/credentials/{credential}"
    await bench.client.put(path, {"metadata": {"allowed_hosts": ["api.example.com"]}})
    assert await bench.code(tool) == "auth_failed"
    assert not site.seen
    await bench.client.put(path, {"metadata": {"allowed_hosts": ["127.0.0.1"]}})
    await bench.output(tool)
    assert site.last.headers["Authorization"] == "Bearer tkn-for-one-host-alone"
