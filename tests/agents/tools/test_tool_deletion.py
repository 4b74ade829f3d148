"""Deleted tools, events of tools, and who may use a tool."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.tool_requests import (
    FUNCTION_CONFIG,
    FUNCTION_TOOL,
    NO_TOOL,
    PATH,
    create_credential,
    create_tool,
    get_tool,
    list_tool_events,
    list_tools,
    load_auth_config,
    update_tool,
)
from tests.assertions import refused
from tests.world import Client, World
from workers.main import WorkerProcess

# Delete


async def test_deleting_a_tool_deletes_its_attachments_access_rules_and_runs(
    developer: Client, services: Services, worker: WorkerProcess
) -> None:
    tools, credential_id = ToolClient(developer), await create_credential(developer)
    tool = await create_tool(developer)
    agent_id = await tools.create_agent()
    await developer.post(f"/v1/agents/{agent_id}/tools", {"tool_id": tool["id"]})
    await tools.grant_access(credential_id, tool["id"])
    await tools.run(tool["id"], {"a": 1})
    answer = await developer.delete(f"{PATH}/{tool['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    refused(await developer.get(f"{PATH}/{tool['id']}"), 404, "tool_not_found")
    refused(await developer.delete(f"{PATH}/{tool['id']}"), 404, "tool_not_found")
    assert (await developer.get(f"/v1/agents/{agent_id}/tools")).json() == {"data": []}
    assert (await developer.get(f"/api/v1/agents/{agent_id}")).json()["tools"] == []
    rules = await developer.get(f"/v1/credentials/{credential_id}/access")
    assert rules.json() == {"data": []}
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count_sql = "SELECT count(*) FROM tool_executions WHERE tool_id = $1"
        assert await (await tx.raw()).fetchval(count_sql, tool["id"]) == 0


async def test_one_of_three_concurrent_deletes_succeeds(developer: Client) -> None:
    tool = await create_tool(developer)
    answers = await asyncio.gather(*(developer.delete(f"{PATH}/{tool['id']}") for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404]


async def test_a_deleted_tools_slug_is_free_again(developer: Client) -> None:
    tool = await create_tool(developer)
    await developer.delete(f"{PATH}/{tool['id']}")
    assert (await create_tool(developer))["slug"] == "echo"


# Events


async def test_create_update_and_delete_emit_events(developer: Client) -> None:
    tool = await create_tool(developer)
    change = {"name": "New", "config": {"timeout_ms": 5}, "category": "automation"}
    await update_tool(developer, tool["id"], change)
    await developer.delete(f"{PATH}/{tool['id']}")
    common = {"tool_id": tool["id"], "tool_type": "function"}
    created, updated, deleted = await list_tool_events(developer)
    assert created == ("system.tool.created", {**common, "name": "Echo"})
    assert updated[0] == "system.tool.updated"
    assert sorted(updated[1].pop("changed")) == ["config", "name"]
    assert updated[1] == {**common, "name": "New"}
    assert deleted == ("system.tool.deleted", {**common, "name": "New"})


async def test_the_event_of_a_new_auth_config_has_no_secret(
    developer: Client, webhook_id: str
) -> None:
    await update_tool(developer, webhook_id, {"auth_config": {"token": "other"}})
    event_type, data = (await list_tool_events(developer))[-1]
    assert (event_type, data["changed"]) == ("system.tool.updated", ["auth_config"])
    assert "other" not in str(data)


async def test_an_update_without_changes_emits_no_event(
    developer: Client, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{}, {"name": "Echo"}, {"config": dict(FUNCTION_CONFIG)}]
    tool = await create_tool(developer)
    before = await get_tool(developer, tool["id"])
    for change in cases:
        with subtests.test(change=change):
            updated = await update_tool(developer, tool["id"], change)
            assert updated == before
            assert [event_type for event_type, _ in await list_tool_events(developer)] == [
                "system.tool.created"
            ]


async def test_a_refused_tool_emits_no_event(developer: Client) -> None:
    await developer.post(PATH, {**FUNCTION_TOOL, "config": {}})
    assert await list_tool_events(developer) == []


# Tenants and permissions


async def test_another_tenants_tool_is_not_found(
    developer: Client, world: World, subtests: pytest.Subtests
) -> None:
    tool = await create_tool(developer)
    for role in ("agent_developer", "tenant_admin"):
        with subtests.test(role=role):
            stranger = await world.user(role)
            cases: list[tuple[str, str, object]] = [
                ("GET", "", None),
                ("PUT", "", {"name": "Mine"}),
                ("DELETE", "", None),
                ("POST", "/execute", {"input": {}}),
                ("GET", "/executions", None),
                ("GET", "/stats", None),
                ("POST", "/discover", None),
            ]
            for method, suffix, body in cases:
                content = {} if body is None else {"json": body}
                answer = await stranger(method, f"{PATH}/{tool['id']}{suffix}", **content)
                refused(answer, 404, "tool_not_found")
            assert await list_tools(stranger) == []
            assert (await get_tool(developer, tool["id"]))["name"] == "Echo"


async def test_super_admin_sees_and_changes_every_tenants_tools(
    developer: Client, super_admin: Client, services: Services, webhook_id: str
) -> None:
    assert (await get_tool(super_admin, webhook_id))["id"] == webhook_id
    await update_tool(super_admin, webhook_id, {"auth_config": {"token": "from above"}})
    assert await load_auth_config(services, webhook_id) == b'{"token":"from above"}'
    answer = await super_admin.get(PATH, headers={"x-tenant-id": developer.tenant_id})
    assert [item["id"] for item in answer.json()["data"]] == [webhook_id]


async def test_super_admin_creates_a_tool_in_the_tenant_of_the_header(
    developer: Client, super_admin: Client
) -> None:
    headers = {"x-tenant-id": developer.tenant_id}
    answer = await super_admin.post(PATH, FUNCTION_TOOL, headers=headers)
    assert answer.status_code == 201
    assert (await get_tool(developer, answer.json()["data"]["id"]))["name"] == "Echo"


async def test_a_reading_role_lists_tools_but_changes_none(
    developer: Client, world: World, subtests: pytest.Subtests
) -> None:
    tool = await create_tool(developer)
    for role in ("viewer", "agent_user"):
        caller = await world.user(role, developer.tenant_id)
        for method, suffix, permission in [
            ("POST", "", "tools:write"),
            ("PUT", "/{}", "tools:write"),
            ("DELETE", "/{}", "tools:delete"),
            ("POST", "/{}/execute", "tools:execute"),
            ("POST", "/{}/discover", "tools:execute"),
        ]:
            with subtests.test(role=role, method=method):
                content = {} if method == "DELETE" else {"json": FUNCTION_TOOL}
                answer = await caller(method, PATH + suffix.format(tool["id"]), **content)
                error = refused(answer, 403, "forbidden")
                assert error["details"] == {"required": permission, "your_role": role}
                assert [item["id"] for item in await list_tools(caller)] == [tool["id"]]
                assert (await get_tool(developer, tool["id"]))["config"] == FUNCTION_CONFIG
                assert (await get_tool(caller, tool["id"]))["config"] == {}


async def test_tools_need_a_login(anonymous: Client) -> None:
    for path in (PATH, f"{PATH}/categories", f"{PATH}/{NO_TOOL}"):
        refused(await anonymous.get(path), 401, "unauthorized")
