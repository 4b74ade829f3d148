"""Nobody without credentials:reveal receives a secret by way of a tool that they point elsewhere.

The developer of these tests has the role agent_developer: all permissions on tools and credentials
but credentials:reveal. `site` is the developer's own server.
"""

from typing import Any

import httpx
import pytest

from tests.agents.tools.agent_tool_client import get_other_host_url
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.rest_api_tools import build_endpoint
from tests.agents.tools.site import Site
from tests.assertions import refused
from tests.world import World
from workers.main import WorkerProcess

_TOKEN = "planted-token-of-the-administrator"
_HOST = "127.0.0.1"


@pytest.fixture(scope="module")
async def admin(tools: ToolClient) -> ToolClient:
    return tools


@pytest.fixture(scope="module")
async def developer(world: World, admin: ToolClient, worker: WorkerProcess) -> ToolClient:
    return ToolClient(await world.user("agent_developer", admin.client.tenant_id))


async def _create_credential(
    owner: ToolClient, allowed_hosts: list[str] | None = None, **metadata: Any
) -> str:
    if allowed_hosts is not None:
        metadata["allowed_hosts"] = allowed_hosts
    body = {"name": "Shop", "type": "bearer_token", "secrets": {"token": _TOKEN}}
    answer = await owner.client.post("/v1/credentials", {**body, "metadata": metadata})
    assert answer.status_code == 201, answer.text
    credential_id: str = answer.json()["id"]
    return credential_id


async def _create_webhook(owner: ToolClient, url: str, credential_id: str) -> str:
    auth = {"auth_type": "bearer", "auth_config": {"credential_id": credential_id}}
    return await owner.create("webhook", {"url": url}, **auth)


async def _grant(
    caller: ToolClient, credential_id: str, integration_id: str, type_: str = "tool"
) -> httpx.Response:
    body = {"integration_type": type_, "integration_id": integration_id}
    return await caller.client.post(f"/v1/credentials/{credential_id}/access", body)


def _assert_needs_reveal(answer: httpx.Response) -> None:
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": "credentials:reveal", "your_role": "agent_developer"}
    assert "allowed_hosts" in error["message"]


def _assert_wrong_host(answer: httpx.Response, field: str) -> None:
    details = refused(answer, 422, "validation_error")["details"]
    assert set(details) == {field}
    assert "allowed_hosts" in details[field]


# Grants


async def test_a_developer_does_not_receive_a_secret_by_a_grant_to_their_own_tool(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    credential = await _create_credential(admin)
    tool = await _create_webhook(developer, site.url, credential)
    _assert_needs_reveal(await _grant(developer, credential, tool))
    assert await developer.get_error_code(tool) == "auth_failed"
    assert site.requests == []


async def test_a_grant_to_an_agent_workflow_or_channel_needs_the_permission_too(
    admin: ToolClient, developer: ToolClient, subtests: pytest.Subtests
) -> None:
    credential = await _create_credential(admin)
    agent = await developer.create_agent()
    for type_, integration_id in (("agent", agent), ("workflow", "wfl_1"), ("channel", "chn_1")):
        with subtests.test(type=type_):
            _assert_needs_reveal(await _grant(developer, credential, integration_id, type_))


async def test_with_allowed_hosts_a_developer_grants_only_tools_of_these_hosts(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    credential = await _create_credential(admin, [_HOST])
    tool = await _create_webhook(developer, site.url, credential)
    assert (await _grant(developer, credential, tool)).status_code == 201
    await developer.get_output(tool)
    assert site.last.headers["Authorization"] == f"Bearer {_TOKEN}"
    elsewhere = await developer.create("webhook", {"url": get_other_host_url(site)})
    _assert_wrong_host(await _grant(developer, credential, elsewhere), "integration_id")
    # What can never be used is not granted by anybody.
    _assert_wrong_host(await _grant(admin, credential, elsewhere), "integration_id")


async def test_a_tool_that_connects_to_no_host_gets_no_credential_with_allowed_hosts(
    admin: ToolClient, developer: ToolClient
) -> None:
    credential = await _create_credential(admin, [_HOST])
    code = {"runtime": "python", "code": "def main(input):\n    return 1\n"}
    tool = await developer.create("function", code)
    _assert_wrong_host(await _grant(developer, credential, tool), "integration_id")


async def test_the_creator_of_a_credential_grants_it_without_the_permission(
    developer: ToolClient, site: Site
) -> None:
    """They know the secret already."""
    credential = await _create_credential(developer)
    tool = await _create_webhook(developer, site.url, credential)
    assert (await _grant(developer, credential, tool)).status_code == 201
    await developer.get_output(tool)
    assert site.last.headers["Authorization"] == f"Bearer {_TOKEN}"


async def test_the_creator_needs_the_permission_once_somebody_else_has_set_the_secrets(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    credential = await _create_credential(developer)
    path = f"/v1/credentials/{credential}/secrets"
    new_secrets = {"secrets": {"token": "unknown-to-the-developer"}}
    assert (await admin.client.put(path, new_secrets)).status_code == 200
    tool = await _create_webhook(developer, site.url, credential)
    _assert_needs_reveal(await _grant(developer, credential, tool))


async def test_replacing_the_secrets_of_somebody_else_gives_no_right_to_grant(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    """Otherwise the rule would still be there when the owner restores the secrets."""
    credential = await _create_credential(admin)
    path = f"/v1/credentials/{credential}"
    junk = {"secrets": {"token": "junk-of-the-developer"}}
    assert (await developer.client.put(f"{path}/secrets", junk)).status_code == 200
    tool = await _create_webhook(developer, site.url, credential)
    _assert_needs_reveal(await _grant(developer, credential, tool))
    for metadata in ({"allowed_hosts": [_HOST]}, {"test_url": site.url}):
        answer = await developer.client.put(path, {**junk, "metadata": metadata})
        assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:reveal"


# Changes after the grant


async def _create_granted(admin: ToolClient, url: str) -> tuple[str, str]:
    """Returns a credential without allowed_hosts and a tool that the administrator let use it."""
    credential = await _create_credential(admin)
    tool = await _create_webhook(admin, url, credential)
    assert (await _grant(admin, credential, tool)).status_code == 201
    return credential, tool


async def test_a_developer_does_not_move_a_granted_tool_to_their_own_host(
    admin: ToolClient, developer: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    credential, tool = await _create_granted(admin, get_other_host_url(site))
    auth = {"auth_config": {"credential_id": credential}}
    api = {"base_url": site.url, "endpoints": {"one": build_endpoint()}}
    changes: dict[str, dict[str, Any]] = {
        "url": {"config": {"url": site.url}, **auth},
        "port": {"config": {"url": "http://localhost:1/"}, **auth},
        "type": {"tool_type": "rest_api", "config": api, **auth},
        "mcp": {"tool_type": "custom", "config": {"kind": "mcp", "url": site.url}, **auth},
    }
    for name, change in changes.items():
        with subtests.test(name):
            _assert_needs_reveal(await developer.client.put(f"/v1/tools/{tool}", change))
    # In two steps: without auth it may move, and then the credential does not come back.
    move = {"config": {"url": site.url}, "auth_config": None}
    assert (await developer.client.put(f"/v1/tools/{tool}", move)).status_code == 200
    _assert_needs_reveal(await developer.client.put(f"/v1/tools/{tool}", auth))
    assert await developer.get_error_code(tool) == "auth_failed"
    assert site.requests == []


async def test_a_developer_changes_a_granted_tool_at_its_host(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    credential, tool = await _create_granted(admin, site.url)
    change = {
        "name": "Renamed",
        "config": {"url": f"{site.url}/other"},
        "auth_config": {"credential_id": credential},
    }
    answer = await developer.client.put(f"/v1/tools/{tool}", change)
    assert answer.status_code == 200, answer.text
    await developer.get_output(tool)
    assert (site.last.path, site.last.headers["Authorization"]) == ("/other", f"Bearer {_TOKEN}")


async def test_a_tool_with_a_credential_is_not_saved_for_a_host_that_is_not_allowed(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    credential = await _create_credential(admin, [_HOST])
    auth = {"auth_type": "bearer", "auth_config": {"credential_id": credential}}
    other = {"url": get_other_host_url(site)}
    answer = await developer.request_create("webhook", other, **auth)
    _assert_wrong_host(answer, "auth_config.credential_id")
    tool = await _create_webhook(developer, site.url, credential)
    change = {"config": other, "auth_config": auth["auth_config"]}
    answer = await developer.client.put(f"/v1/tools/{tool}", change)
    _assert_wrong_host(answer, "auth_config.credential_id")


async def _prepare_override(
    admin: ToolClient, developer: ToolClient, site: Site
) -> tuple[str, str, dict[str, Any]]:
    """Returns an agent that may use a credential, a tool of the developer, and an override by
    which the tool would use that credential.
    """
    credential, agent = await _create_credential(admin), await admin.create_agent()
    assert (await _grant(admin, credential, agent, "agent")).status_code == 201
    auth = {"auth_type": "bearer", "auth_config": {"token": "of-the-tool"}}
    tool = await developer.create("webhook", {"url": site.url}, **auth)
    return agent, tool, {"auth_config": {"credential_id": credential}}


async def test_a_developer_does_not_send_the_credential_of_an_agent_to_their_own_host(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    """The access rule of an agent holds for all its tools."""
    agent, tool, override = await _prepare_override(admin, developer, site)
    path = f"/v1/agents/{agent}/tools"
    body = {"tool_id": tool, "config_override": override}
    _assert_needs_reveal(await developer.client.post(path, body))
    assert (await developer.client.post(path, {"tool_id": tool})).status_code == 201
    answer = await developer.client("PATCH", f"{path}/{tool}", json={"config_override": override})
    _assert_needs_reveal(answer)
    await developer.get_output(tool, agent_id=agent)
    assert site.last.headers["Authorization"] == "Bearer of-the-tool"


async def test_a_developer_changes_an_override_that_keeps_its_credential_and_host(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    agent, tool, override = await _prepare_override(admin, developer, site)
    path = f"/v1/agents/{agent}/tools"
    answer = await admin.client.post(path, {"tool_id": tool, "config_override": override})
    assert answer.status_code == 201, answer.text
    change = {"config_override": {**override, "url": f"{site.url}/other"}}
    answer = await developer.client("PATCH", f"{path}/{tool}", json=change)
    assert answer.status_code == 200, answer.text
    change = {"config_override": {**override, "url": get_other_host_url(site)}}
    _assert_needs_reveal(await developer.client("PATCH", f"{path}/{tool}", json=change))
    await developer.get_output(tool, agent_id=agent)
    assert (site.last.path, site.last.headers["Authorization"]) == ("/other", f"Bearer {_TOKEN}")


async def test_an_override_for_a_host_that_is_not_allowed_is_refused_before_and_after_the_grant(
    admin: ToolClient, developer: ToolClient, site: Site
) -> None:
    credential, agent = await _create_credential(admin), await developer.create_agent()
    auth = {"auth_type": "bearer", "auth_config": {"token": "of-the-tool"}}
    tool = await developer.create("webhook", {"url": get_other_host_url(site)}, **auth)
    override: dict[str, Any] = {"auth_config": {"credential_id": credential}}
    path = f"/v1/agents/{agent}/tools"
    answer = await developer.client.post(path, {"tool_id": tool, "config_override": override})
    assert answer.status_code == 201, answer.text
    metadata = {"metadata": {"allowed_hosts": [_HOST]}}
    assert (await admin.client.put(f"/v1/credentials/{credential}", metadata)).status_code == 200
    # The agent's override names a host that the credential allows no more.
    _assert_wrong_host(await _grant(developer, credential, agent, "agent"), "integration_id")
    answer = await developer.client("PATCH", f"{path}/{tool}", json={"config_override": override})
    _assert_wrong_host(answer, "config_override.auth_config.credential_id")
    override["url"] = site.url
    answer = await developer.client("PATCH", f"{path}/{tool}", json={"config_override": override})
    assert answer.status_code == 200, answer.text
    assert (await _grant(developer, credential, agent, "agent")).status_code == 201


async def test_a_developer_widens_no_allowed_hosts(
    admin: ToolClient, developer: ToolClient
) -> None:
    credential = await _create_credential(admin, ["api.example.com"])
    path = f"/v1/credentials/{credential}"
    for metadata in ({}, {"allowed_hosts": None}, {"allowed_hosts": ["api.example.com", _HOST]}):
        answer = await developer.client.put(path, {"metadata": metadata})
        assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:reveal"


async def test_the_use_at_a_host_that_is_not_allowed_any_more_is_recorded_as_denied(
    admin: ToolClient, site: Site
) -> None:
    credential, tool = await _create_granted(admin, site.url)
    path = f"/v1/credentials/{credential}"
    metadata = {"metadata": {"allowed_hosts": ["api.example.com"]}}
    assert (await admin.client.put(path, metadata)).status_code == 200
    assert await admin.get_error_code(tool) == "auth_failed"
    assert site.requests == []
    latest = (await admin.client.get(f"{path}/audit")).json()["data"][0]
    assert (latest["action"], latest["success"]) == ("denied", False)
