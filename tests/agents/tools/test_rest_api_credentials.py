"""REST API tools with credentials of the vault, and with overrides of an agent."""

import base64
from typing import Any, NamedTuple

import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.tools.factories import ToolClient, create_tool_client
from tests.agents.tools.rest_api_tools import build_endpoint, create_rest_api
from tests.agents.tools.site import Site, open_site
from tests.agents.tools.token_server import TokenServer, build_client_config
from tests.assertions import refused
from tests.world import World

# Credentials of the vault


class CredentialCase(NamedTuple):
    """A credential, the auth type of a tool that uses it, and the headers that it becomes."""

    auth_type: str
    credential_type: str
    secrets: dict[str, str]
    headers: dict[str, str]


BASIC = base64.b64encode(b"zoe:pass-123456").decode()
CREDENTIAL_CASES = [
    CredentialCase("api_key", "api_key", {"api_key": "key-123456"}, {"X-API-Key": "key-123456"}),
    CredentialCase(
        "bearer",
        "bearer_token",
        {"token": "tkn-123456"},
        {"Authorization": "Bearer tkn-123456"},
    ),
    CredentialCase(
        "basic",
        "basic_auth",
        {"username": "zoe", "password": "pass-123456"},
        {"Authorization": f"Basic {BASIC}"},
    ),
    CredentialCase(
        "custom",
        "custom",
        {"X-Account": "acc-1", "X-Key": "key-123456"},
        {"X-Account": "acc-1", "X-Key": "key-123456"},
    ),
    CredentialCase(
        "oauth2",
        "oauth2",
        {
            "client_id": "c",
            "client_secret": "secret-123",
            "token_url": "http://127.0.0.1:9/token",
            "access_token": "tkn-stored-1",
        },
        {"Authorization": "Bearer tkn-stored-1"},
    ),
]


async def test_a_credential_with_an_access_rule_is_sent(
    tools: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    for case in CREDENTIAL_CASES:
        with subtests.test(case=case):
            site.reset()
            credential = await tools.create_credential(case.credential_type, case.secrets)
            auth = {"credential_id": credential}
            tool = await create_rest_api(tools, site, auth_type=case.auth_type, auth_config=auth)
            await tools.grant_access(credential, tool)
            await tools.get_output(tool)
            assert {name: site.last.headers.get(name) for name in case.headers} == case.headers


async def test_a_credential_without_an_access_rule_is_not_sent(
    tools: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    for case in CREDENTIAL_CASES:
        with subtests.test(case=case):
            site.reset()
            auth = {
                "credential_id": await tools.create_credential(case.credential_type, case.secrets)
            }
            tool = await create_rest_api(tools, site, auth_type=case.auth_type, auth_config=auth)
            assert await tools.get_error_code(tool) == "auth_failed"
            assert not site.requests


async def test_a_database_credential_is_no_http_auth(
    tools: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    """No request is sent without auth either."""
    for tool_type in ("rest_api", "webhook", "custom"):
        with subtests.test(tool_type=tool_type):
            site.reset()
            secrets = {
                "host": "127.0.0.1",
                "database": "d",
                "username": "u",
                "password": "pass-123456",
            }
            credential = await tools.create_credential("database", secrets)
            configs: dict[str, dict[str, Any]] = {
                "rest_api": {"base_url": site.url, "endpoints": {"one": build_endpoint()}},
                "webhook": {"url": site.url},
                "custom": {"kind": "mcp", "url": site.url, "tool": "add"},
            }
            auth = {"credential_id": credential}
            tool = await tools.create(
                tool_type, configs[tool_type], auth_type="basic", auth_config=auth
            )
            await tools.grant_access(credential, tool)
            assert await tools.get_error_code(tool) == "auth_failed"
            assert not site.requests


async def test_a_deleted_access_rule_ends_the_use(tools: ToolClient, site: Site) -> None:
    credential = await tools.create_credential("bearer_token", {"token": "tkn-0123456789"})
    tool = await create_rest_api(
        tools, site, auth_type="bearer", auth_config={"credential_id": credential}
    )
    rule = await tools.grant_access(credential, tool)
    await tools.get_output(tool)
    assert (await tools.client.delete(rule)).status_code == 204
    assert await tools.get_error_code(tool) == "auth_failed"
    assert len(site.requests) == 1


async def test_a_deleted_credential_is_not_used(tools: ToolClient, site: Site) -> None:
    credential = await tools.create_credential("bearer_token", {"token": "tkn-0123456789"})
    tool = await create_rest_api(
        tools, site, auth_type="bearer", auth_config={"credential_id": credential}
    )
    await tools.grant_access(credential, tool)
    assert (await tools.client.delete(f"/v1/credentials/{credential}")).status_code == 204
    assert await tools.get_error_code(tool) == "auth_failed"
    assert not site.requests


async def test_an_api_key_credential_is_sent_where_the_tool_says(
    tools: ToolClient, site: Site
) -> None:
    credential = await tools.create_credential("api_key", {"api_key": "key-0123456789"})
    auth = {
        "credential_id": credential,
        "api_key_header": "appid",
        "api_key_location": "query",
    }
    tool = await create_rest_api(tools, site, auth_type="api_key", auth_config=auth)
    await tools.grant_access(credential, tool)
    await tools.get_output(tool)
    assert site.last.query == [("appid", "key-0123456789")]


async def test_a_refused_token_of_a_credential_is_renewed_and_stored(
    tools: ToolClient, token_server: TokenServer
) -> None:
    secrets = {
        **build_client_config(token_server),
        "access_token": "stale",
        "refresh_token": "refresh-0123",
    }
    credential = await tools.create_credential("oauth2", secrets)
    tool = await create_rest_api(
        tools, token_server, auth_type="oauth2", auth_config={"credential_id": credential}
    )
    await tools.grant_access(credential, tool)
    await tools.get_output(tool)
    await tools.get_output(tool)
    assert token_server.paths == ["/things", "/token", "/things", "/things"]
    assert token_server.requests[1].form["refresh_token"] == "refresh-0123"


async def test_a_credential_of_another_kind_does_not_fit(
    tools: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("bearer", "api_key", {"api_key": "key-123456"}),
        ("api_key", "bearer_token", {"token": "tkn-123456"}),
        ("custom", "basic_auth", {"username": "a", "password": "b"}),
        ("basic", "custom", {"X-A": "b"}),
    ]
    for auth_type, type_, secrets in cases:
        with subtests.test(auth_type=auth_type, type_=type_, secrets=secrets):
            site.reset()
            credential = await tools.create_credential(type_, secrets)
            config = {"base_url": site.url, "endpoints": {"one": build_endpoint()}}
            auth = {"credential_id": credential}
            answer = await tools.request_create(
                "rest_api", config, auth_type=auth_type, auth_config=auth
            )
            assert (
                "auth_config.credential_id" in refused(answer, 422, "validation_error")["details"]
            )


async def test_a_credential_of_another_tenant_is_unknown(
    tools: ToolClient, world: World, site: Site
) -> None:
    other = await create_tool_client(world)
    credential = await other.create_credential("bearer_token", {"token": "tkn-0123456789"})
    auth = {"auth_type": "bearer", "auth_config": {"credential_id": credential}}
    answer = await tools.request_create("webhook", {"url": site.url}, **auth)
    assert "auth_config.credential_id" in refused(answer, 422, "validation_error")["details"]


# Overrides of an agent


async def _attach(tools: ToolClient, tool: str, override: dict[str, Any]) -> str:
    agent = await tools.create_agent()
    body = {"tool_id": tool, "config_override": override}
    answer = await tools.client.post(f"/v1/agents/{agent}/tools", body)
    assert answer.status_code == 201, answer.text
    return agent


async def test_an_agents_auth_is_sent_instead_of_the_tools(tools: ToolClient, site: Site) -> None:
    tool = await create_rest_api(
        tools, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"}
    )
    agent = await _attach(tools, tool, {"auth_config": {"token": "tkn-of-the-agent"}})
    await tools.get_output(tool, agent_id=agent)
    assert site.last.headers["Authorization"] == "Bearer tkn-of-the-agent"


async def test_the_tools_auth_is_not_sent_to_the_host_of_an_override(
    tools: ToolClient, site: Site
) -> None:
    tool = await create_rest_api(
        tools, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"}
    )
    async with open_site() as other:
        agent = await _attach(tools, tool, {"base_url": other.url})
        await tools.get_output(tool, agent_id=agent)
        assert "Authorization" not in other.last.headers
    assert not site.requests


async def test_a_credential_of_an_override_needs_an_access_rule_for_the_agent(
    tools: ToolClient, site: Site
) -> None:
    tool = await create_rest_api(
        tools, site, auth_type="bearer", auth_config={"token": "tkn-of-the-tool"}
    )
    credential = await tools.create_credential("bearer_token", {"token": "tkn-of-the-vault"})
    await tools.grant_access(credential, tool)
    agent = await _attach(tools, tool, {"auth_config": {"credential_id": credential}})
    assert await tools.get_error_code(tool, agent_id=agent) == "auth_failed"
    await tools.grant_access(credential, agent, "agent")
    await tools.get_output(tool, agent_id=agent)
    assert site.last.headers["Authorization"] == "Bearer tkn-of-the-vault"


async def test_auth_is_not_sent_to_a_host_that_was_written_into_the_database(
    tools: ToolClient, site: Site, services: Services
) -> None:
    """Write access to the database is not enough to send a secret to another host."""
    auth = {"token": "tkn-sealed-with-its-host"}
    tool = await create_rest_api(tools, site, auth_type="bearer", auth_config=auth)
    new_url = site.url.replace("127.0.0.1", "localhost")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE tools SET config = replace(config::text, $2, $3)::json WHERE id = $1",
            tool,
            site.url,
            new_url,
        )
    assert await tools.get_error_code(tool) == "auth_failed"
    assert not site.requests


async def test_a_credential_is_sent_only_to_its_allowed_hosts(
    tools: ToolClient, site: Site
) -> None:
    token = {"token": "tkn-for-one-host-alone"}
    credential = await tools.create_credential("bearer_token", token)
    auth = {"credential_id": credential}
    tool = await create_rest_api(tools, site, auth_type="bearer", auth_config=auth)
    await tools.grant_access(credential, tool)
    path = f"/v1/credentials/{credential}"
    await tools.client.put(path, {"metadata": {"allowed_hosts": ["api.example.com"]}})
    assert await tools.get_error_code(tool) == "auth_failed"
    assert not site.requests
    await tools.client.put(path, {"metadata": {"allowed_hosts": ["127.0.0.1"]}})
    await tools.get_output(tool)
    assert site.last.headers["Authorization"] == "Bearer tkn-for-one-host-alone"
