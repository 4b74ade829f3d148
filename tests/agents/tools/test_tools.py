"""Tools that are created and read, and their slugs."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.agents.tools.tool_requests import (
    FUNCTION_CONFIG,
    FUNCTION_TOOL,
    INVALID_FIELDS,
    NO_TOOL,
    PATH,
    VIEW_KEYS,
    WEBHOOK_TOOL,
    create_tool,
    get_tool,
    list_tools,
    load_auth_config,
    update_tool,
)
from tests.assertions import refused
from tests.world import Client, World

# Create


async def test_a_tool_is_created_with_only_the_required_fields(developer: Client) -> None:
    tool = await create_tool(developer)
    assert set(tool) == VIEW_KEYS
    expected = {
        "name": "Echo",
        "slug": "echo",
        "description": "",
        "category": "automation",
        "tool_type": "function",
        "auth_type": "none",
        "is_enabled": True,
        "usage_count": 0,
        "last_used_at": None,
        "input_schema": None,
        "output_schema": None,
    }
    assert {name: tool[name] for name in expected} == expected
    assert tool["id"].startswith("tool_")
    assert tool["created_at"].endswith("Z")
    assert tool["updated_at"].endswith("Z")


async def test_a_tool_is_created_with_every_field(developer: Client) -> None:
    schema = {"type": "object", "required": ["a"]}
    fields: dict[str, Any] = {
        **WEBHOOK_TOOL,
        "name": "N" * 100,
        "slug": "my-own-1",
        "description": "Two\nlines",
        "input_schema": schema,
        "output_schema": {"type": "object"},
        "is_enabled": False,
    }
    tool = await create_tool(developer, **fields)
    names = fields.keys() - {"config", "auth_config"}
    assert {name: tool[name] for name in names} == {name: fields[name] for name in names}


async def test_every_required_field_is_named_at_once(developer: Client) -> None:
    error = refused(await developer.post(PATH, {}), 422, "validation_error")
    assert set(error["details"]) == {"name", "category", "tool_type", "config", "auth_type"}


async def test_a_wrong_field_is_named(developer: Client, subtests: pytest.Subtests) -> None:
    for field, value in INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            error = refused(
                await developer.post(PATH, {**FUNCTION_TOOL, field: value}), 422, "validation_error"
            )
            assert set(error["details"]) == {field}
    assert await list_tools(developer) == []


async def test_a_tool_without_config_is_refused(developer: Client) -> None:
    body = {name: value for name, value in FUNCTION_TOOL.items() if name != "config"}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {"config"}


async def test_read_only_fields_are_ignored(developer: Client) -> None:
    fields = {
        "id": "tool_mine",
        "usage_count": 99,
        "last_used_at": "2020-01-01T00:00:00Z",
        "created_at": "2020-01-01T00:00:00Z",
    }
    tool = await create_tool(developer, **fields)
    assert tool["id"] != "tool_mine"
    assert (tool["usage_count"], tool["last_used_at"]) == (0, None)
    assert tool["created_at"] > "2025"
    assert [item["id"] for item in await list_tools(developer)] == [tool["id"]]


async def test_a_tool_without_auth_stores_none(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [None, {}, {"token": "x"}]
    for auth_config in cases:
        with subtests.test(auth_config=auth_config):
            tool = await create_tool(
                developer, **{**WEBHOOK_TOOL, "auth_type": "none", "auth_config": auth_config}
            )
            assert await load_auth_config(services, tool["id"]) is None


async def test_the_same_key_creates_one_tool(developer: Client) -> None:
    headers = {"idempotency-key": "a"}
    first = await developer.post(PATH, WEBHOOK_TOOL, headers=headers)
    second = await developer.post(PATH, WEBHOOK_TOOL, headers=headers)
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    other = await developer.post(PATH, {**WEBHOOK_TOOL, "name": "Other"}, headers=headers)
    refused(other, 422, "idempotency_mismatch")
    assert len(await list_tools(developer)) == 1


# Slugs


_SLUGS: list[tuple[str, str]] = [
    ("Add Numbers", "add-numbers"),
    ("  GET /users/{id}!  ", "get-users-id"),
    ("Ünïcode ok", "n-code-ok"),
    ("日本", "tool"),
    ("--", "tool"),
    ("x" * 100, "x" * 80),
    ("a" * 79 + " b", "a" * 79),
]


async def test_a_slug_is_made_from_the_name(world: World, subtests: pytest.Subtests) -> None:
    for name, slug in _SLUGS:
        with subtests.test(name=name):
            assert (await create_tool(await world.user(), name=name))["slug"] == slug


async def test_the_next_tool_of_a_name_has_a_number(developer: Client) -> None:
    slugs = [(await create_tool(developer))["slug"] for _ in range(3)]
    assert slugs == ["echo", "echo-2", "echo-3"]


async def test_a_number_in_use_is_skipped(developer: Client) -> None:
    await create_tool(developer)
    await create_tool(developer, slug="echo-2")
    assert (await create_tool(developer))["slug"] == "echo-3"


async def test_twenty_tools_of_one_name_at_once_have_twenty_slugs(developer: Client) -> None:
    created = await asyncio.gather(*(create_tool(developer) for _ in range(20)))
    expected = {"echo"} | {f"echo-{number}" for number in range(2, 21)}
    assert {item["slug"] for item in created} == expected


async def test_an_own_slug_that_is_taken_is_refused(developer: Client) -> None:
    await create_tool(developer, slug="mine")
    refused(await developer.post(PATH, {**FUNCTION_TOOL, "slug": "mine"}), 409, "conflict")
    assert len(await list_tools(developer)) == 1


async def test_one_of_ten_concurrent_tools_with_the_same_slug_is_created(developer: Client) -> None:
    body = {**FUNCTION_TOOL, "slug": "mine"}
    answers = await asyncio.gather(*(developer.post(PATH, body) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 9


async def test_another_tenant_may_have_the_same_slug(developer: Client, world: World) -> None:
    await create_tool(developer, slug="mine")
    other = await world.user("agent_developer")
    assert (await create_tool(other, slug="mine"))["slug"] == "mine"
    assert (await create_tool(other))["slug"] == "echo"


async def test_a_slug_is_changed_to_a_free_one_only(developer: Client) -> None:
    await create_tool(developer, slug="taken")
    tool = await create_tool(developer)
    path = f"{PATH}/{tool['id']}"
    refused(await developer.put(path, {"slug": "taken"}), 409, "conflict")
    assert (await update_tool(developer, tool["id"], {"slug": "free"}))["slug"] == "free"
    assert (await update_tool(developer, tool["id"], {"slug": "free"}))["slug"] == "free"


async def test_a_new_name_leaves_the_slug(developer: Client) -> None:
    tool = await create_tool(developer)
    assert (await update_tool(developer, tool["id"], {"name": "New"}))["slug"] == "echo"


# Get


async def test_a_tool_is_returned_with_config_schemas_and_stats(developer: Client) -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    tool = await create_tool(developer, input_schema=schema, output_schema={"type": "array"})
    view = await get_tool(developer, tool["id"])
    assert set(view) == VIEW_KEYS | {"config", "usage_stats", "auth_source", "credential_id"}
    assert {name: view[name] for name in tool} == tool
    assert view["config"] == FUNCTION_CONFIG
    assert list(view["input_schema"]["properties"]) == ["b", "a"]
    assert view["usage_stats"] == {
        "total_executions": 0,
        "successful": 0,
        "failed": 0,
        "success_rate": 0.0,
        "avg_execution_time_ms": 0.0,
    }


async def test_an_unknown_tool_is_not_found(developer: Client) -> None:
    for method in ("GET", "PUT", "DELETE"):
        content: dict[str, Any] = {"json": {}} if method == "PUT" else {}
        answer = await developer(method, f"{PATH}/{NO_TOOL}", **content)
        refused(answer, 404, "tool_not_found")
