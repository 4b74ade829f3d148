"""A tool with the address of a private network is not saved."""

import pytest

from tests.agents.tools.blocked_addresses import URL_FIELDS, build_config
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site
from tests.assertions import refused
from tests.net.blocked_addresses import SAMPLE_URLS


async def test_a_blocked_url_is_not_saved(tools: ToolClient, subtests: pytest.Subtests) -> None:
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            for url in SAMPLE_URLS:
                answer = await tools.request_create(tool_type, build_config(tool_type, url))
                details = refused(answer, 422, "validation_error")["details"]
                assert set(details) == {URL_FIELDS[tool_type]}, url


async def test_a_blocked_token_url_is_not_saved(tools: ToolClient, site: Site) -> None:
    for url in (*SAMPLE_URLS, "http://example.com/token"):
        auth = {"token_url": url, "client_id": "a", "client_secret": "b"}
        answer = await tools.request_create(
            "webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth
        )
        details = refused(answer, 422, "validation_error")["details"]
        assert set(details) == {"auth_config.token_url"}, url


async def test_a_tool_with_a_secret_needs_https(
    tools: ToolClient, subtests: pytest.Subtests
) -> None:
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            config = build_config(tool_type, "http://example.com/")
            auth = {"auth_type": "bearer", "auth_config": {"token": "secret"}}
            refused(await tools.request_create(tool_type, config, **auth), 422, "validation_error")


async def test_an_update_is_checked_like_a_new_tool(
    tools: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            site.reset()
            tool = await tools.create(tool_type, build_config(tool_type, site.url))
            config = build_config(tool_type, "http://169.254.169.254/")
            answer = await tools.client.put(f"/v1/tools/{tool}", {"config": config})
            refused(answer, 422, "validation_error")


async def test_an_override_is_checked_like_a_new_tool(
    tools: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            site.reset()
            tool, agent = (
                await tools.create(tool_type, build_config(tool_type, site.url)),
                await tools.create_agent(),
            )
            body = {
                "tool_id": tool,
                "config_override": build_config(tool_type, "http://169.254.169.254/"),
            }
            refused(
                await tools.client.post(f"/v1/agents/{agent}/tools", body), 422, "validation_error"
            )
