"""Changes of tools and of their configs."""

import asyncio
from typing import Any

import pytest

from tests.agents.tools.tool_requests import (
    FUNCTION_CONFIG,
    INVALID_FIELDS,
    PATH,
    WEBHOOK_TOOL,
    create_tool,
    get_tool,
    update_tool,
)
from tests.assertions import refused
from tests.world import Client

_UPDATES: list[dict[str, Any]] = [
    {"name": "New"},
    {"slug": "new"},
    {"description": ""},
    {"category": "crm"},
    {"input_schema": {"type": "object"}},
    {"input_schema": None},
    {"output_schema": None},
    {"is_enabled": False},
    {"name": "New", "is_enabled": False, "category": "custom"},
    {},
]


async def test_fields_left_out_of_an_update_stay_unchanged(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for change in _UPDATES:
        with subtests.test(change=change):
            schema = {"type": "object", "required": ["a"]}
            tool = await create_tool(
                developer, description="D", input_schema=schema, output_schema=schema
            )
            before = await get_tool(developer, tool["id"])
            updated = await update_tool(developer, tool["id"], change)
            assert {**updated, "updated_at": None} == {**before, **change, "updated_at": None}
            after = await get_tool(developer, tool["id"])
            assert {**after, "updated_at": None} == {**before, **change, "updated_at": None}


async def test_a_wrong_field_of_an_update_is_named_and_changes_nothing(
    developer: Client, subtests: pytest.Subtests
) -> None:
    tool = await create_tool(developer)
    before = await get_tool(developer, tool["id"])
    for field, value in (*INVALID_FIELDS, ("config", None), ("slug", None)):
        with subtests.test(field=field, value=value):
            answer = await developer.put(
                f"{PATH}/{tool['id']}", {"description": "Changed", field: value}
            )
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert await get_tool(developer, tool["id"]) == before


async def test_read_only_fields_cannot_be_changed(developer: Client) -> None:
    tool = await create_tool(developer)
    change = {
        "id": "tool_x",
        "usage_count": 7,
        "last_used_at": "2020-01-01T00:00:00Z",
        "created_at": "2020-01-01T00:00:00Z",
        "usage_stats": {"failed": 1},
    }
    before = await get_tool(developer, tool["id"])
    assert await update_tool(developer, tool["id"], change) == before


async def test_a_config_is_merged_by_key(developer: Client, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"timeout_ms": 5}, {**FUNCTION_CONFIG, "timeout_ms": 5}),
        ({"code": "x = 1"}, {**FUNCTION_CONFIG, "code": "x = 1"}),
        ({}, FUNCTION_CONFIG),
        ({"nonsense": 1}, FUNCTION_CONFIG),
        ({"url": "https://example.com"}, FUNCTION_CONFIG),
    ]
    for change, expected in cases:
        with subtests.test(change=change):
            tool = await create_tool(developer)
            await update_tool(developer, tool["id"], {"config": change})
            assert (await get_tool(developer, tool["id"]))["config"] == expected


async def test_null_removes_a_key_of_a_config(developer: Client) -> None:
    tool = await create_tool(developer, config={**FUNCTION_CONFIG, "timeout_ms": 7})
    await update_tool(developer, tool["id"], {"config": {"timeout_ms": None}})
    assert (await get_tool(developer, tool["id"]))["config"] == FUNCTION_CONFIG


async def test_a_required_key_of_a_config_cannot_be_removed(developer: Client) -> None:
    tool = await create_tool(developer)
    answer = await developer.put(f"{PATH}/{tool['id']}", {"config": {"code": None}})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config.code"}
    assert (await get_tool(developer, tool["id"]))["config"] == FUNCTION_CONFIG


async def test_a_map_within_a_config_is_replaced_as_a_whole(developer: Client) -> None:
    config = {**WEBHOOK_TOOL["config"], "headers": {"X-A": "1", "X-B": "2"}}
    tool = await create_tool(developer, **{**WEBHOOK_TOOL, "config": config})
    await update_tool(developer, tool["id"], {"config": {"headers": {"X-C": "3"}}})
    assert (await get_tool(developer, tool["id"]))["config"]["headers"] == {"X-C": "3"}


async def test_twenty_changes_at_once_of_one_config_are_all_kept(developer: Client) -> None:
    keys = ["timeout_ms", "code", "packages", "runtime"]
    values: list[Any] = [77, "def main(input): return 1", [], "javascript"]
    tool = await create_tool(developer)
    await asyncio.gather(
        *(
            update_tool(developer, tool["id"], {"config": {key: value}})
            for key, value in zip(keys * 5, values * 5, strict=True)
        )
    )
    assert (await get_tool(developer, tool["id"]))["config"] == dict(zip(keys, values, strict=True))


async def test_another_type_needs_a_whole_config(developer: Client) -> None:
    tool = await create_tool(developer)
    path = f"{PATH}/{tool['id']}"
    error = refused(await developer.put(path, {"tool_type": "webhook"}), 422, "validation_error")
    assert set(error["details"]) == {"config"}
    part = {"tool_type": "webhook", "config": {"method": "GET"}}
    error = refused(await developer.put(path, part), 422, "validation_error")
    assert set(error["details"]) == {"config.url"}
    assert (await get_tool(developer, tool["id"]))["tool_type"] == "function"


async def test_another_type_keeps_nothing_of_the_former_config(developer: Client) -> None:
    tool = await create_tool(developer, config={**FUNCTION_CONFIG, "timeout_ms": 7})
    change = {"tool_type": "webhook", "config": {"url": "https://example.com/x"}}
    assert (await update_tool(developer, tool["id"], change))["tool_type"] == "webhook"
    assert (await get_tool(developer, tool["id"]))["config"] == {"url": "https://example.com/x"}
