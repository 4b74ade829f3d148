"""Requests of REST API tools: method, body, query, headers and path."""

from typing import Any

import pytest

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.rest_api_tools import build_endpoint, create_rest_api
from tests.agents.tools.site import Site
from tests.assertions import refused


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


# Requests


async def test_each_method_arrives(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        with subtests.test(method=method):
            site.reset()
            await tools.get_output(await create_rest_api(tools, site, build_endpoint(method)))
            assert (site.last.method, site.last.path) == (method, "/things")


async def test_the_body_is_sent_as_json(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(tools, site, build_endpoint("POST"))
    await tools.get_output(tool, {"body": {"name": "Zoë", "tags": [1, None]}})
    assert site.last.body == '{"name":"Zoë","tags":[1,null]}'.encode()
    assert site.last.headers["content-type"] == "application/json"


async def test_a_body_of_text_is_sent_as_text(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(
        await create_rest_api(tools, site, build_endpoint("POST")), {"body": "Grüße"}
    )
    assert site.last.body == "Grüße".encode()
    assert site.last.headers["content-type"] == "text/plain; charset=utf-8"


async def test_default_params_are_sent_unless_the_caller_sets_them(
    tools: ToolExecutor, site: Site
) -> None:
    endpoint = build_endpoint(default_params={"page": 1, "size": 20, "sort": "name"})
    tool = await create_rest_api(tools, site, endpoint)
    await tools.get_output(tool, {"params": {"page": 2, "sort": None}})
    assert site.last.query == [("page", "2"), ("size", "20")]


async def test_a_list_is_repeated_in_the_query(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(
        await create_rest_api(tools, site), {"params": {"id": [1, "two", True, None]}}
    )
    assert site.last.query == [("id", "1"), ("id", "two"), ("id", "true")]


async def test_values_of_the_query_are_encoded(tools: ToolExecutor, site: Site) -> None:
    value = "a&b=c#d é+%2f \n"
    await tools.get_output(await create_rest_api(tools, site), {"params": {"q": value}})
    assert site.last.query == [("q", value)]


async def test_a_query_of_the_base_url_is_kept(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(tools, site, config={"base_url": f"{site.url}/v2/?key=a"})
    await tools.get_output(tool, {"params": {"q": "b"}})
    assert site.last.path.startswith("/v2/things?")
    assert site.last.query == [("key", "a"), ("q", "b")]


async def test_a_query_in_the_path_is_filled_in(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(tools, site, build_endpoint(path="/search?kind=book&q={term}"))
    await tools.get_output(tool, {"params": {"term": "war & peace", "page": 2}})
    assert site.last.query == [("kind", "book"), ("q", "war & peace"), ("page", "2")]


async def test_default_headers_are_sent_unless_the_caller_sets_them(
    tools: ToolExecutor, site: Site
) -> None:
    defaults = {"X-Version": "1", "Accept": "a/b", "X-Size": "20", "X-Page": "1"}
    tool = await create_rest_api(tools, site, build_endpoint(default_headers=defaults))
    arguments = {"x-version": "2", "X-Trace": "t", "ACCEPT": "c/d", "X-Size": "1\r\nX-Evil: 1"}
    await tools.get_output(tool, {"headers": {**arguments, "x_page": "2"}})
    assert site.last.headers.getall("X-Version") == ["2"]
    assert site.last.headers.getall("Accept") == ["c/d"]
    assert site.last.headers["X-Trace"] == "t"
    # A header that cannot be sent replaces nothing.
    assert site.last.headers["X-Size"] == "20"
    # Many servers read both as one header.
    assert (site.last.headers["X_Page"], site.last.headers.get("X-Page")) == ("2", None)


async def test_the_caller_cannot_replace_what_authenticates_the_tool(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, str] | None, str]] = [
        ("bearer", {"token": "own"}, "Authorization"),
        ("api_key", {"api_key_value": "own", "api_key_header": "X-Shop"}, "X-Shop"),
        ("none", None, "Authorization"),
        ("none", None, "X-API-Key"),
    ]
    for auth_type, auth_config, header in cases:
        with subtests.test(auth_type=auth_type, auth_config=auth_config, header=header):
            site.reset()
            defaults = {header: "Bearer own"}
            endpoint = build_endpoint(default_headers=defaults)
            tool = await create_rest_api(
                tools, site, endpoint, auth_type=auth_type, auth_config=auth_config
            )
            await tools.get_output(tool, {"headers": {header.lower(): "evil"}})
            (value,) = site.last.headers.getall(header)
            assert value.endswith("own")


async def test_the_caller_cannot_replace_a_secret_among_the_default_headers(
    tools: ToolExecutor, site: Site
) -> None:
    names = ["X-API-Key", "X-Signature", "X-HMAC", "X-PAT", "X-Bearer", "X-Client-Cert", "X-OTP"]
    endpoint = build_endpoint(default_headers=dict.fromkeys(names, "own"))
    tool = await create_rest_api(tools, site, endpoint)
    for spellings in (map(str.lower, names), (name.replace("-", "_") for name in names)):
        await tools.get_output(tool, {"headers": dict.fromkeys(spellings, "evil")})
        assert {site.last.headers[name] for name in names} == {"own"}
        assert "evil" not in site.last.headers.values()


async def test_a_caller_cannot_add_authentication_to_that_of_the_tool(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    in_header = {"api_key_value": "own", "api_key_header": "X-Shop"}
    in_query = {"api_key_value": "own", "api_key_location": "query"}
    names = ["Authorization", "Cookie", "Proxy-Authorization", "X-API-Key", "X_Token"]
    for auth, more_names in ((in_header, ["x-shop", "X_Shop"]), (in_query, [])):
        with subtests.test(auth=auth):
            tool = await create_rest_api(tools, site, auth_type="api_key", auth_config=auth)
            headers = dict.fromkeys([*names, *more_names], "evil")
            await tools.get_output(tool, {"headers": {"X-Trace": "t", **headers}})
            assert "evil" not in site.last.headers.values()
            assert site.last.headers["X-Trace"] == "t"


async def test_a_caller_may_authenticate_itself_where_the_tool_does_not(
    tools: ToolExecutor, site: Site
) -> None:
    endpoint = build_endpoint(default_headers={"X-Version": "1"})
    tool = await create_rest_api(tools, site, endpoint)
    await tools.get_output(tool, {"headers": {"Authorization": "Bearer a", "X-Signature": "b"}})
    headers = site.last.headers
    assert (headers["Authorization"], headers["X-Signature"]) == ("Bearer a", "b")


_RESERVED_NAMES: list[str] = [
    "Host",
    "HOST",
    "X-Service-Token",
    "x-service-name",
    "X_Service_Name",
    "Connection",
    "Webhook-Id",
    "svix-id",
    "Expect",
    "Content-Encoding",
    "Keep-Alive",
    "Proxy-Connection",
    "Accept-Encoding",
]


async def test_a_header_of_the_service_cannot_be_set(tools: ToolExecutor, site: Site) -> None:
    evil = dict.fromkeys(_RESERVED_NAMES, "evil.test")
    for defaults, headers in ((evil, {}), ({}, evil)):
        tool = await create_rest_api(tools, site, build_endpoint(default_headers=defaults))
        await tools.get_output(tool, {"headers": headers})
        assert "evil.test" not in site.last.headers.values()


async def test_a_line_break_adds_no_header(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str]] = [
        {"X-A": "1\r\nX-Injected: 1"},
        {"X-A": "1\nX-Injected: 1"},
        {"X-A\r\nX-Injected": "1"},
        {"X-A: 1\r\nX-Injected": "1"},
    ]
    for headers in cases:
        with subtests.test(headers=headers):
            site.reset()
            await tools.get_output(await create_rest_api(tools, site), {"headers": headers})
            assert "X-Injected" not in site.last.headers


async def test_the_framing_of_the_body_cannot_be_changed(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(tools, site, build_endpoint("POST"))
    headers = {"Content-Length": "1", "Transfer-Encoding": "chunked"}
    await tools.get_output(tool, {"headers": headers, "body": {"a": 1}})
    assert site.last.body == b'{"a":1}'


# Parameters in the path


_SEGMENTS: list[tuple[object, str]] = [
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
]


async def test_a_parameter_is_one_segment_of_the_path(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for value, segment in _SEGMENTS:
        with subtests.test(value=value, segment=segment):
            site.reset()
            tool = await create_rest_api(tools, site, build_endpoint(path="/things/{id}/parts"))
            await tools.get_output(tool, {"params": {"id": value}})
            assert site.last.path == f"/things/{segment}/parts"


_ESCAPES: list[tuple[str, str]] = [
    ("..", "%2E%2E"),
    (".", "%2E"),
    ("../admin", "%2E%2E%2Fadmin"),
    ("a/../../admin?x=1", "a%2F%2E%2E%2F%2E%2E%2Fadmin%3Fx%3D1"),
    ("..\\admin", "%2E%2E%5Cadmin"),
    ("a/..", "a%2F%2E%2E"),
    ("./a", "%2E%2Fa"),
    ("%2e%2e/admin", "%252e%252e%2Fadmin"),
]


async def test_a_parameter_never_leaves_its_segment(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for value, segment in _ESCAPES:
        with subtests.test(value=value, segment=segment):
            site.reset()
            tool = await create_rest_api(tools, site, build_endpoint("DELETE", "/things/{id}"))
            await tools.get_output(tool, {"params": {"id": value}})
            assert site.last.path == f"/things/{segment}"


async def test_two_dots_from_two_parameters_are_encoded(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(tools, site, build_endpoint(path="/things/{a}{b}/parts"))
    await tools.get_output(tool, {"params": {"a": ".", "b": "."}})
    assert site.last.path == "/things/%2E%2E/parts"


async def test_the_caller_cannot_change_what_the_config_fixes(
    tools: ToolExecutor, site: Site
) -> None:
    tool = await create_rest_api(tools, site, build_endpoint(path="/things?scope=own"))
    await tools.get_output(tool, {"params": {"scope": "all"}})
    assert site.last.query == [("scope", "own")]


async def test_a_secret_that_no_header_can_contain_sends_no_request(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for token in ("abcdef\n", "abc\r\nX-Evil: 1"):
        with subtests.test(token=token):
            site.reset()
            tool = await create_rest_api(
                tools, site, auth_type="bearer", auth_config={"token": token}
            )
            assert await tools.get_error_code(tool) == "auth_failed"
            assert not site.requests


async def test_a_missing_parameter_is_named(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    """An empty id would turn the URL of one thing into the URL of all things."""
    cases: list[object] = [None, ""]
    for value in cases:
        with subtests.test(value=value):
            site.reset()
            tool = await create_rest_api(tools, site, build_endpoint("DELETE", "/things/{id}"))
            error = await tools.get_failure(tool, {"params": {"id": value}})
            assert error["code"] == "runtime_error"
            assert "id" in error["message"]
            assert not site.requests


async def test_a_default_fills_the_path(tools: ToolExecutor, site: Site) -> None:
    endpoint = build_endpoint(path="/things/{id}", default_params={"id": "first"})
    await tools.get_output(await create_rest_api(tools, site, endpoint))
    assert site.last.path == "/things/first"


async def test_a_parameter_of_the_path_is_not_in_the_query(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(tools, site, build_endpoint(path="/things/{id}"))
    await tools.get_output(tool, {"params": {"id": 1, "x": 2}})
    assert site.last.path == "/things/1?x=2"


# Endpoints


async def test_an_unknown_endpoint_is_refused_with_the_known_ones(
    tools: ToolExecutor, site: Site
) -> None:
    error = await tools.get_failure(await create_rest_api(tools, site), {"endpoint": "two"})
    assert error["code"] == "runtime_error"
    assert "one" in error["message"]
    assert not site.requests


async def test_one_of_several_endpoints_must_be_named(tools: ToolExecutor, site: Site) -> None:
    endpoints = {"one": build_endpoint(path="/1"), "two": build_endpoint(path="/2")}
    tool = await create_rest_api(tools, site, config={"endpoints": endpoints})
    assert await tools.get_error_code(tool) == "runtime_error"
    await tools.get_output(tool, {"endpoint": "two"})
    assert [request.path for request in site.requests] == ["/2"]


async def test_input_of_another_shape_is_invalid(
    tool_client: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {"params": []},
        {"headers": {"a": 1}},
        {"endpoint": 1},
        {"params": {"a": {}}},
    ]
    for arguments in cases:
        with subtests.test(arguments=arguments):
            site.reset()
            tool = await create_rest_api(tool_client, site)
            answer = await tool_client.client.post(
                f"/v1/tools/{tool}/execute", {"input": arguments}
            )
            refused(answer, 422, "validation_error")
            assert not site.requests
