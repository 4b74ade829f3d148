"""A tool with the address of a private network is not saved."""

import pytest

from tests.asking import refused
from tests.tools.blocked_addresses import HOSTS, URLS, build_config
from tests.tools.factories import ToolClient
from tests.tools.site import Site


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", HOSTS)
async def test_an_address_that_is_not_public_is_not_saved(
    tools: ToolClient, tool_type: str, scheme: str, host: str
) -> None:
    answer = await tools.request_create(
        tool_type, build_config(tool_type, f"{scheme}://{host}:8080/x")
    )
    refused(answer, 422, "validation_error")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
@pytest.mark.parametrize("url", URLS)
async def test_an_invalid_url_is_not_saved(tools: ToolClient, tool_type: str, url: str) -> None:
    refused(
        await tools.request_create(tool_type, build_config(tool_type, url)),
        422,
        "validation_error",
    )


@pytest.mark.parametrize(
    "url",
    [
        *(pytest.param(f"https://{host.values[0]}/token", id=str(host.id)) for host in HOSTS),
        *URLS,
        pytest.param("http://example.com/token", id="plain http"),
    ],
)
async def test_a_token_url_that_is_not_public_is_not_saved(
    tools: ToolClient, site: Site, url: str
) -> None:
    auth = {"token_url": url, "client_id": "a", "client_secret": "b"}
    answer = await tools.request_create(
        "webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth
    )
    assert "auth_config.token_url" in refused(answer, 422, "validation_error")["details"]


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_a_tool_with_a_secret_needs_https(tools: ToolClient, tool_type: str) -> None:
    config = build_config(tool_type, "http://example.com/")
    auth = {"auth_type": "bearer", "auth_config": {"token": "secret"}}
    refused(await tools.request_create(tool_type, config, **auth), 422, "validation_error")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_an_update_is_checked_like_a_new_tool(
    tools: ToolClient, site: Site, tool_type: str
) -> None:
    tool = await tools.create(tool_type, build_config(tool_type, site.url))
    config = build_config(tool_type, "http://169.254.169.254/")
    answer = await tools.client.put(f"/v1/tools/{tool}", {"config": config})
    refused(answer, 422, "validation_error")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_an_override_is_checked_like_a_new_tool(
    tools: ToolClient, site: Site, tool_type: str
) -> None:
    tool, agent = (
        await tools.create(tool_type, build_config(tool_type, site.url)),
        await tools.create_agent(),
    )
    body = {"tool_id": tool, "config_override": build_config(tool_type, "http://169.254.169.254/")}
    refused(await tools.client.post(f"/v1/agents/{agent}/tools", body), 422, "validation_error")
