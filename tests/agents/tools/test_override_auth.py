"""Auth of overrides: an agent's own secrets and credentials for a tool."""

import json

import pytest

from app.services import Services
from tests.agents.tools.agent_tool_client import (
    OVERRIDE_TOKEN,
    TOKEN,
    AgentToolClient,
    get_other_host_url,
    load_override_auth,
)
from tests.agents.tools.factories import create_tool_client
from tests.agents.tools.site import Site, open_site, respond_with
from tests.assertions import refused
from tests.world import World
from workers.main import WorkerProcess

# Overrides and auth


async def test_the_tools_auth_is_sent_when_an_override_keeps_the_host(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    await agent_tools.attach(tool_id, config_override={"url": f"{site.url}/other"})
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.path == "/other"
    assert site.last.headers["Authorization"] == f"Bearer {TOKEN}"


async def test_the_tools_auth_is_not_sent_to_anget_other_host_url(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    await agent_tools.attach(tool_id, config_override={"url": get_other_host_url(site)})
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Host"].startswith("localhost")
    assert "Authorization" not in site.last.headers
    await agent_tools.get_output(tool_id)
    assert site.last.headers["Authorization"] == f"Bearer {TOKEN}"


async def test_the_tools_auth_is_not_sent_to_another_port(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    async with open_site() as other:
        await agent_tools.attach(tool_id, config_override={"url": other.url})
        await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
        assert "Authorization" not in other.last.headers
    assert site.requests == []


async def test_an_override_may_have_its_own_auth(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    override = {"url": get_other_host_url(site), "auth_config": {"token": OVERRIDE_TOKEN}}
    await agent_tools.attach(tool_id, config_override=override)
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Authorization"] == f"Bearer {OVERRIDE_TOKEN}"


async def test_auth_of_an_override_is_never_shown(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess, services: Services
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    override = {"method": "PUT", "auth_config": {"token": OVERRIDE_TOKEN}}
    attachment = await agent_tools.attach(tool_id, config_override=override)
    assert attachment["config_override"] == {"method": "PUT"}
    answer = await agent_tools.patch(tool_id, {"config_override": override})
    agent = await agent_tools.client.get(f"/api/v1/agents/{agent_tools.agent_id}")
    site.handler = respond_with(json.dumps({"you sent": OVERRIDE_TOKEN}))
    output = await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    texts = [answer.text, agent.text, str(await agent_tools.list_attachments()), str(output)]
    assert OVERRIDE_TOKEN not in "".join(texts)
    assert OVERRIDE_TOKEN.encode() not in (await load_override_auth(services, tool_id) or b"")
    assert await load_override_auth(services, tool_id) is not None


async def test_a_new_override_without_auth_deletes_the_stored_auth(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess, services: Services
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    await agent_tools.attach(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    await agent_tools.patch(tool_id, {"config_override": {"url": get_other_host_url(site)}})
    assert await load_override_auth(services, tool_id) is None
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert "Authorization" not in site.last.headers


async def test_disabling_and_enabling_an_attachment_keeps_its_auth(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    await agent_tools.attach(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    for enabled in (False, True):
        await agent_tools.patch(tool_id, {"is_enabled": enabled})
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Authorization"] == f"Bearer {OVERRIDE_TOKEN}"


async def test_an_agents_auth_is_not_sent_to_a_new_host_of_the_tool(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    """The agent's auth was meant for the former host."""
    tool_id = await agent_tools.create_webhook(site)
    await agent_tools.attach(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    change = {"config": {"url": get_other_host_url(site)}, "auth_config": {"token": "new"}}
    assert (await agent_tools.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Authorization"] == "Bearer new"


async def test_an_agents_auth_for_its_own_url_is_kept_when_the_tool_gets_a_new_host(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    override = {"url": site.url, "auth_config": {"token": OVERRIDE_TOKEN}}
    await agent_tools.attach(tool_id, config_override=override)
    change = {"config": {"url": get_other_host_url(site)}, "auth_config": {"token": "new"}}
    assert (await agent_tools.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Authorization"] == f"Bearer {OVERRIDE_TOKEN}"


async def test_another_auth_type_of_the_tool_drops_the_agents_auth(
    agent_tools: AgentToolClient,
    site: Site,
    worker: WorkerProcess,
    services: Services,
    subtests: pytest.Subtests,
) -> None:
    for auth_type in ("none", "basic"):
        with subtests.test(auth_type=auth_type):
            site.reset()
            tool_id = await agent_tools.create_webhook(site)
            await agent_tools.attach(
                tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}}
            )
            auth = {"username": "u", "password": "p"}
            change = {"auth_type": auth_type, "auth_config": auth if auth_type == "basic" else None}
            assert (await agent_tools.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
            assert await load_override_auth(services, tool_id) is None
            await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
            assert OVERRIDE_TOKEN not in site.last.headers.get("Authorization", "")


# Overrides and credentials


async def _attach_with_credential(agent_tools: AgentToolClient, site: Site) -> tuple[str, str]:
    tool_id = await agent_tools.create_webhook(site)
    credential_id = await agent_tools.create_credential(
        "bearer_token", {"token": "planted-vault-token"}
    )
    override = {"url": get_other_host_url(site), "auth_config": {"credential_id": credential_id}}
    attachment = await agent_tools.attach(tool_id, config_override=override)
    assert attachment["config_override"] == {"url": get_other_host_url(site)}
    return tool_id, credential_id


async def test_a_credential_of_an_override_needs_an_access_rule_for_the_agent(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id, credential_id = await _attach_with_credential(agent_tools, site)
    assert await agent_tools.get_error_code(tool_id, agent_id=agent_tools.agent_id) == "auth_failed"
    await agent_tools.grant_access(credential_id, tool_id, "tool")
    assert await agent_tools.get_error_code(tool_id, agent_id=agent_tools.agent_id) == "auth_failed"
    assert site.requests == []
    rule = await agent_tools.grant_access(credential_id, agent_tools.agent_id, "agent")
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Authorization"] == "Bearer planted-vault-token"
    await agent_tools.client.delete(rule)
    assert await agent_tools.get_error_code(tool_id, agent_id=agent_tools.agent_id) == "auth_failed"


async def test_a_credential_that_does_not_fit_an_override_is_refused(
    agent_tools: AgentToolClient, site: Site, world: World, subtests: pytest.Subtests
) -> None:
    for case in ("unknown", "foreign", "another type"):
        with subtests.test(case=case):
            site.reset()
            if case == "unknown":
                credential_id = "crd_none"
            elif case == "foreign":
                credential_id = await (await create_tool_client(world)).create_credential(
                    "bearer_token", {"token": "x"}
                )
            else:
                credential_id = await agent_tools.create_credential("api_key", {"api_key": "x"})
            override = {"auth_config": {"credential_id": credential_id}}
            answer = await agent_tools.request_attach(
                await agent_tools.create_webhook(site), config_override=override
            )
            details = refused(answer, 422, "validation_error")["details"]
            assert set(details) == {"config_override.auth_config.credential_id"}


async def test_putting_a_credential_into_an_override_needs_credentials_write(
    agent_tools: AgentToolClient, site: Site, world: World, role_without_credentials: str
) -> None:
    tool_id, credential_id = await _attach_with_credential(agent_tools, site)
    caller = await world.user(role_without_credentials, agent_tools.client.tenant_id)
    override = {"auth_config": {"credential_id": credential_id}}
    answer = await caller(
        "PATCH", f"{agent_tools.path}/{tool_id}", json={"config_override": override}
    )
    assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:write"
    change = {"config_override": {"auth_config": {"token": "x"}}}
    assert (await caller("PATCH", f"{agent_tools.path}/{tool_id}", json=change)).status_code == 200


async def test_an_agents_credential_is_not_sent_to_a_new_host_of_the_tool(
    agent_tools: AgentToolClient,
    site: Site,
    world: World,
    role_without_credentials: str,
    worker: WorkerProcess,
) -> None:
    tool_id = await agent_tools.create_webhook(site)
    credential_id = await agent_tools.create_credential(
        "bearer_token", {"token": "planted-vault-token"}
    )
    override = {"auth_config": {"credential_id": credential_id}}
    await agent_tools.attach(tool_id, config_override=override)
    await agent_tools.grant_access(credential_id, agent_tools.agent_id, "agent")
    caller = await world.user(role_without_credentials, agent_tools.client.tenant_id)
    change = {"config": {"url": get_other_host_url(site)}, "auth_config": {"token": "mine"}}
    assert (await caller.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await agent_tools.run(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.headers["Authorization"] == "Bearer mine"
