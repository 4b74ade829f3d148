"""Authentication of REST API tools with secrets of their own."""

import asyncio
import base64

import pytest
from aiohttp import web

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.rest_api_tools import build_endpoint, create_rest_api
from tests.agents.tools.site import Site
from tests.agents.tools.token_server import TokenServer, build_client_config, create_oauth2_tool
from tests.ports import free_port


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


# Authentication


async def test_without_auth_no_authorization_is_sent(tools: ToolExecutor, site: Site) -> None:
    await tools.get_output(await create_rest_api(tools, site))
    assert "Authorization" not in site.last.headers


async def test_an_api_key_is_sent_in_its_header(tools: ToolExecutor, site: Site) -> None:
    auth = {"api_key_value": "key-0123456789", "api_key_header": "X-Shop-Key"}
    await tools.get_output(
        await create_rest_api(tools, site, auth_type="api_key", auth_config=auth)
    )
    assert site.last.headers["X-Shop-Key"] == "key-0123456789"


async def test_an_api_key_is_sent_in_a_default_header(tools: ToolExecutor, site: Site) -> None:
    auth = {"api_key_value": "key-0123456789"}
    await tools.get_output(
        await create_rest_api(tools, site, auth_type="api_key", auth_config=auth)
    )
    assert site.last.headers["X-API-Key"] == "key-0123456789"


async def test_an_api_key_is_sent_in_the_query(tools: ToolExecutor, site: Site) -> None:
    auth = {
        "api_key_value": "key/0123&456=é",
        "api_key_header": "key",
        "api_key_location": "query",
    }
    tool = await create_rest_api(tools, site, auth_type="api_key", auth_config=auth)
    await tools.get_output(tool, {"params": {"q": "a", "key": "mine"}})
    assert site.last.query == [("q", "a"), ("key", "key/0123&456=é")]


async def test_an_api_key_in_the_query_leaves_the_path_as_it_is(
    tools: ToolExecutor, site: Site
) -> None:
    auth = {"api_key_value": "secret", "api_key_header": "key", "api_key_location": "query"}
    endpoint = build_endpoint(path="/things/{id}")
    tool = await create_rest_api(tools, site, endpoint, auth_type="api_key", auth_config=auth)
    await tools.get_output(tool, {"params": {"id": "a/b%2fc"}})
    assert site.last.path == "/things/a%2Fb%252fc?key=secret"


async def test_a_bearer_token_is_sent(tools: ToolExecutor, site: Site) -> None:
    auth = {"token": "tkn-0123456789"}
    await tools.get_output(await create_rest_api(tools, site, auth_type="bearer", auth_config=auth))
    assert site.last.headers["Authorization"] == "Bearer tkn-0123456789"


async def test_name_and_password_are_sent(tools: ToolExecutor, site: Site) -> None:
    auth = {"username": "zoë", "password": "pä:ss"}
    await tools.get_output(await create_rest_api(tools, site, auth_type="basic", auth_config=auth))
    kind, _, pair = site.last.headers["Authorization"].partition(" ")
    assert (kind, base64.b64decode(pair).decode()) == ("Basic", "zoë:pä:ss")


async def test_custom_headers_are_sent(tools: ToolExecutor, site: Site) -> None:
    auth = {"headers": {"X-Account": "acc-1", "X-Signature": "sig-0123456789"}}
    await tools.get_output(await create_rest_api(tools, site, auth_type="custom", auth_config=auth))
    headers = site.last.headers
    assert (headers["X-Account"], headers["X-Signature"]) == ("acc-1", "sig-0123456789")


async def test_auth_headers_cannot_name_another_host(tools: ToolExecutor, site: Site) -> None:
    auth = {"headers": {"Host": "evil.test", "X-Service-Tenant": "evil.test", "X-A": "b"}}
    tool = await create_rest_api(tools, site, auth_type="custom", auth_config=auth)
    assert await tools.get_error_code(tool) == "auth_failed"
    assert not site.requests


async def test_a_caller_cannot_replace_the_authorization(tools: ToolExecutor, site: Site) -> None:
    tool = await create_rest_api(
        tools, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"}
    )
    await tools.get_output(tool, {"headers": {"authorization": "Bearer of-the-caller"}})
    assert site.last.headers.getall("Authorization") == ["Bearer tkn-of-the-tool"]


async def test_a_tool_whose_auth_is_not_set_sends_no_request(
    tools: ToolExecutor, site: Site
) -> None:
    tool = await create_rest_api(tools, site, auth_type="bearer")
    assert await tools.get_error_code(tool) == "auth_failed"
    assert not site.requests


# OAuth 2


async def test_a_token_is_requested_with_the_clients_secret(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    await tools.get_output(await create_oauth2_tool(tools, token_server, scope="read write"))
    assert token_server.requests[0].form == {
        "grant_type": "client_credentials",
        "client_id": "client-1",
        "client_secret": "secret-0123456789",
        "scope": "read write",
    }
    assert token_server.last.headers["Authorization"] == "Bearer issued-token-0"


async def test_a_token_is_used_until_it_expires(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    tool = await create_oauth2_tool(tools, token_server)
    await tools.get_output(tool)
    await tools.get_output(tool)
    assert token_server.paths == ["/token", "/things", "/things"]


async def test_concurrent_runs_share_one_token(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    tool = await create_oauth2_tool(tools, token_server)
    await asyncio.gather(*(tools.get_output(tool) for _ in range(5)))
    assert token_server.paths.count("/token") == 1


async def test_a_token_that_is_about_to_expire_is_not_used_again(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    token_server.expires_in = 10
    tool = await create_oauth2_tool(tools, token_server)
    await tools.get_output(tool)
    await tools.get_output(tool)
    assert token_server.paths.count("/token") == 2


async def test_another_scope_is_another_token(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    await tools.get_output(await create_oauth2_tool(tools, token_server, scope="read"))
    await tools.get_output(await create_oauth2_tool(tools, token_server, scope="write"))
    assert token_server.paths.count("/token") == 2


async def test_a_refused_token_is_renewed_once(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    tool = await create_oauth2_tool(tools, token_server)
    await tools.get_output(tool)
    token_server.revoked.add("issued-token-0")
    await tools.get_output(tool)
    assert token_server.paths == ["/token", "/things", "/things", "/token", "/things"]
    assert token_server.last.headers["Authorization"] == "Bearer issued-token-1"


async def test_a_second_refused_token_is_an_http_error(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    tool = await create_oauth2_tool(tools, token_server)
    token_server.revoked |= {"issued-token-0", "issued-token-1"}
    assert await tools.get_error_code(tool) == "http_error"
    assert token_server.paths == ["/token", "/things", "/token", "/things"]


async def test_a_refused_client_is_auth_failed(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    token_server.refusal = {"error": "unauthorized_client"}
    error = await tools.get_failure(await create_oauth2_tool(tools, token_server))
    assert error["code"] == "auth_failed"
    assert "unauthorized_client" in error["message"]
    assert token_server.paths == ["/token"]


async def test_a_client_secret_refused_in_the_form_is_sent_in_the_header(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    async def require_header(request: web.Request) -> web.StreamResponse:
        if request.path == "/token" and "Authorization" not in request.headers:
            return web.json_response({"error": "invalid_client"}, status=401)
        return await token_server.respond(request)

    token_server.handler = require_header
    await tools.get_output(await create_oauth2_tool(tools, token_server))
    pair = base64.b64encode(b"client-1:secret-0123456789").decode()
    assert token_server.requests[1].headers["Authorization"] == f"Basic {pair}"


async def test_an_unreachable_token_endpoint_is_auth_failed(
    tools: ToolExecutor, token_server: TokenServer
) -> None:
    auth = build_client_config(token_server) | {
        "token_url": f"http://127.0.0.1:{free_port()}/token"
    }
    tool = await create_rest_api(tools, token_server, auth_type="oauth2", auth_config=auth)
    assert await tools.get_error_code(tool) == "auth_failed"
    assert not token_server.requests
