"""Attachments: the tools of an agent, their order, and who may change them."""

import asyncio
from typing import Any

import pytest

from tests.agents.tools.agent_tool_client import FUNCTION, AgentToolClient
from tests.agents.tools.execution_requests import NO_AGENT, NO_TOOL
from tests.agents.tools.factories import create_tool_client
from tests.assertions import refused
from tests.world import Client, World

ATTACHED_KEYS = {
    "agent_id",
    "tool_id",
    "is_enabled",
    "display_order",
    "config_override",
    "attached_at",
}

LISTED_KEYS = (ATTACHED_KEYS - {"agent_id"}) | {"tool_name", "tool_type", "category"}


# Attach and list


async def test_a_tool_is_attached_with_just_its_id(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    attachment = await agent_tools.attach(tool_id)
    assert attachment.pop("attached_at").endswith("Z")
    assert attachment == {
        "agent_id": agent_tools.agent_id,
        "tool_id": tool_id,
        "is_enabled": True,
        "display_order": 0,
        "config_override": None,
    }


async def test_a_tool_is_attached_with_every_field(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    fields = {
        "is_enabled": False,
        "display_order": 1_000_000,
        "config_override": {"timeout_ms": 7},
    }
    attachment = await agent_tools.attach(tool_id, **fields)
    assert set(attachment) == ATTACHED_KEYS
    assert {name: attachment[name] for name in fields} == fields


async def test_a_list_shows_name_type_and_category_of_each_tool(
    agent_tools: AgentToolClient,
) -> None:
    tool_id = await agent_tools.create_function(name="Adder", category="crm")
    attachment = await agent_tools.attach(tool_id, config_override={"timeout_ms": 7})
    (item,) = await agent_tools.list_attachments()
    assert set(item) == LISTED_KEYS
    assert item == {
        **{name: value for name, value in attachment.items() if name != "agent_id"},
        "tool_name": "Adder",
        "tool_type": "function",
        "category": "crm",
    }


async def test_tools_are_listed_in_the_order_of_attachment(agent_tools: AgentToolClient) -> None:
    ids = [await agent_tools.create_function() for _ in range(3)]
    orders = [(await agent_tools.attach(tool_id))["display_order"] for tool_id in ids]
    assert orders == [0, 1, 2]
    assert [item["tool_id"] for item in await agent_tools.list_attachments()] == ids


async def test_tools_are_listed_by_display_order(
    agent_tools: AgentToolClient,
) -> None:
    last, first, middle, later = [await agent_tools.create_function() for _ in range(4)]
    await agent_tools.attach(last, display_order=9)
    await agent_tools.attach(first, display_order=1)
    await agent_tools.attach(middle, display_order=5)
    assert (await agent_tools.attach(later))["display_order"] == 10
    tool_ids = [item["tool_id"] for item in await agent_tools.list_attachments()]
    assert tool_ids == [first, middle, last, later]
    await agent_tools.patch(later, {"display_order": 0})
    assert [item["tool_id"] for item in await agent_tools.list_attachments()] == [
        later,
        first,
        middle,
        last,
    ]


async def test_an_agent_shows_its_tools(agent_tools: AgentToolClient) -> None:
    second = await agent_tools.create_function(name="Two")
    first = await agent_tools.create_function(name="One")
    await agent_tools.attach(second, display_order=2, is_enabled=False)
    await agent_tools.attach(first, display_order=1)
    agent = (await agent_tools.client.get(f"/api/v1/agents/{agent_tools.agent_id}")).json()
    assert agent["tools"] == [
        {"id": first, "name": "One", "tool_type": "function", "is_enabled": True},
        {"id": second, "name": "Two", "tool_type": "function", "is_enabled": False},
    ]


async def test_a_tool_is_attached_once(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    answers = await asyncio.gather(*(agent_tools.request_attach(tool_id) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    refused(await agent_tools.request_attach(tool_id), 409, "conflict")
    assert len(await agent_tools.list_attachments()) == 1


async def test_one_tool_serves_several_agents(agent_tools: AgentToolClient) -> None:
    tool_id, other = await agent_tools.create_function(), await agent_tools.create_agent()
    await agent_tools.attach(tool_id)
    answer = await agent_tools.client.post(f"/v1/agents/{other}/tools", {"tool_id": tool_id})
    assert answer.status_code == 201
    await agent_tools.client.delete(f"{agent_tools.path}/{tool_id}")
    assert len((await agent_tools.client.get(f"/v1/agents/{other}/tools")).json()["data"]) == 1


_INVALID_FIELDS: list[tuple[str, object]] = [
    ("tool_id", None),
    ("tool_id", ""),
    ("tool_id", 5),
    ("is_enabled", None),
    ("is_enabled", "yes"),
    ("display_order", -1),
    ("display_order", 1_000_001),
    ("display_order", "1"),
    ("config_override", []),
    ("config_override", "x"),
]


async def test_a_wrong_field_is_named(
    agent_tools: AgentToolClient, subtests: pytest.Subtests
) -> None:
    for field, value in _INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            body = {"tool_id": await agent_tools.create_function(), field: value}
            answer = await agent_tools.client.post(agent_tools.path, body)
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert await agent_tools.list_attachments() == []


async def test_a_missing_tool_id_is_named(agent_tools: AgentToolClient) -> None:
    answer = await agent_tools.client.post(agent_tools.path, {})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"tool_id"}


# Patch and detach


_PATCHES: list[dict[str, Any]] = [
    {"is_enabled": False},
    {"display_order": 4},
    {"config_override": {"timeout_ms": 9}},
    {"config_override": None},
    {"config_override": {}},
    {"is_enabled": False, "config_override": {"code": "x"}, "display_order": 2},
    {},
]


async def test_fields_left_out_of_a_patch_stay_unchanged(
    agent_tools: AgentToolClient, subtests: pytest.Subtests
) -> None:
    tool_id = await agent_tools.create_function()
    for change in _PATCHES:
        with subtests.test(change=change):
            agent_tools.agent_id = await agent_tools.create_agent()
            await agent_tools.attach(tool_id, config_override={"timeout_ms": 7})
            (before,) = await agent_tools.list_attachments()
            answer = await agent_tools.patch(tool_id, change)
            assert (answer.status_code, answer.json()) == (200, {"data": {**before, **change}})
            assert await agent_tools.list_attachments() == [{**before, **change}]


async def test_a_wrong_field_of_a_patch_is_named_and_changes_nothing(
    agent_tools: AgentToolClient, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"is_enabled": None}, "is_enabled"),
        ({"is_enabled": 1}, "is_enabled"),
        ({"display_order": None}, "display_order"),
        ({"config_override": "x"}, "config_override"),
        ({"config_override": {"timeout_ms": 0}}, "config_override.timeout_ms"),
    ]
    tool_id = await agent_tools.create_function()
    await agent_tools.attach(tool_id, config_override={"timeout_ms": 7})
    before = await agent_tools.list_attachments()
    for change, field in cases:
        with subtests.test(change=change, field=field):
            answer = await agent_tools.patch(tool_id, {"display_order": 3, **change})
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
            assert await agent_tools.list_attachments() == before


async def test_a_patch_cannot_change_the_tool_or_the_agent(agent_tools: AgentToolClient) -> None:
    tool_id, other = await agent_tools.create_function(), await agent_tools.create_function()
    await agent_tools.attach(tool_id)
    before = await agent_tools.list_attachments()
    await agent_tools.patch(
        tool_id, {"tool_id": other, "agent_id": NO_AGENT, "attached_at": "2020"}
    )
    assert await agent_tools.list_attachments() == before


async def test_detaching_a_tool_does_not_delete_it(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    await agent_tools.attach(tool_id)
    answer = await agent_tools.client.delete(f"{agent_tools.path}/{tool_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await agent_tools.list_attachments() == []
    assert (await agent_tools.client.get(f"/v1/tools/{tool_id}")).status_code == 200
    refused(await agent_tools.client.delete(f"{agent_tools.path}/{tool_id}"), 404, "tool_not_found")


async def test_deleting_an_agent_does_not_delete_its_tools(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    await agent_tools.attach(tool_id)
    await agent_tools.client.delete(f"/api/v1/agents/{agent_tools.agent_id}")
    assert (await agent_tools.client.get(f"/v1/tools/{tool_id}")).status_code == 200
    refused(await agent_tools.client.get(agent_tools.path), 404, "agent_not_found")


async def test_each_change_emits_agent_updated_with_tools(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    await agent_tools.attach(tool_id)
    await agent_tools.patch(tool_id, {"is_enabled": False})
    await agent_tools.client.delete(f"{agent_tools.path}/{tool_id}")
    events = await agent_tools.list_agent_events()
    assert [data["changed"] for data in events] == [["tools"]] * 3
    assert {data["version"] for data in events} == {1}


async def test_a_refused_change_emits_no_event(agent_tools: AgentToolClient) -> None:
    await agent_tools.request_attach(NO_TOOL)
    await agent_tools.request_attach(
        await agent_tools.create_function(), config_override={"runtime": "ruby"}
    )
    assert await agent_tools.list_agent_events() == []


# Tenants and permissions


async def test_an_unknown_or_unattached_tool_is_not_found(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    refused(await agent_tools.request_attach(NO_TOOL), 404, "tool_not_found")
    refused(await agent_tools.patch(tool_id, {}), 404, "tool_not_found")
    refused(await agent_tools.client.delete(f"{agent_tools.path}/{tool_id}"), 404, "tool_not_found")


async def test_an_unknown_agent_is_not_found(agent_tools: AgentToolClient) -> None:
    tool_id = await agent_tools.create_function()
    agent_tools.agent_id = NO_AGENT
    refused(await agent_tools.request_attach(tool_id), 404, "agent_not_found")
    refused(await agent_tools.patch(tool_id, {}), 404, "agent_not_found")
    for method, path in (("GET", agent_tools.path), ("DELETE", f"{agent_tools.path}/{tool_id}")):
        refused(await agent_tools.client(method, path), 404, "agent_not_found")


async def test_tools_and_agents_of_another_tenant_are_not_found(
    agent_tools: AgentToolClient, world: World
) -> None:
    other_tenant = await create_tool_client(world)
    foreign_tool = await other_tenant.create("function", FUNCTION)
    own_tool, foreign_agent = await agent_tools.create_function(), await other_tenant.create_agent()
    refused(await agent_tools.request_attach(foreign_tool), 404, "tool_not_found")
    answer = await agent_tools.client.post(
        f"/v1/agents/{foreign_agent}/tools", {"tool_id": own_tool}
    )
    refused(answer, 404, "agent_not_found")
    assert await agent_tools.list_attachments() == []


async def test_not_even_super_admin_attaches_across_tenants(
    agent_tools: AgentToolClient, world: World, super_admin: Client
) -> None:
    foreign_tool = await (await create_tool_client(world)).create("function", FUNCTION)
    answer = await super_admin.post(agent_tools.path, {"tool_id": foreign_tool})
    refused(answer, 404, "tool_not_found")
    own_tool = await agent_tools.create_function()
    answer = await super_admin.post(agent_tools.path, {"tool_id": own_tool})
    assert answer.status_code == 201


async def test_a_reading_role_neither_lists_nor_changes_attachments(
    agent_tools: AgentToolClient, world: World, subtests: pytest.Subtests
) -> None:
    tool_id = await agent_tools.create_function()
    await agent_tools.attach(tool_id)
    for role in ("viewer", "agent_user"):
        caller = await world.user(role, agent_tools.client.tenant_id)
        for method in ("GET", "POST", "PATCH", "DELETE"):
            with subtests.test(role=role, method=method):
                path = (
                    agent_tools.path
                    if method in {"GET", "POST"}
                    else f"{agent_tools.path}/{tool_id}"
                )
                content = {} if method in {"GET", "DELETE"} else {"json": {"tool_id": tool_id}}
                error = refused(await caller(method, path, **content), 403, "forbidden")
                assert error["details"] == {"required": "agents:write", "your_role": role}
