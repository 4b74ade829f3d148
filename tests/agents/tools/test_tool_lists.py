"""Lists of tools and of their categories."""

from typing import Any

import pytest

from tests.agents.tools.tool_requests import (
    FUNCTION_TOOL,
    PATH,
    SUMMARY_KEYS,
    WEBHOOK_TOOL,
    create_tool,
    list_tools,
)
from tests.assertions import refused
from tests.world import Client, World

CATEGORIES = [
    "crm",
    "email",
    "database",
    "analytics",
    "automation",
    "payment",
    "storage",
    "social",
    "development",
    "webhook",
    "custom",
]


@pytest.fixture(scope="module")
async def owner_of_five(world: World) -> Client:
    """A user with five tools, created in this order."""
    owner = await world.user("agent_developer")
    for name, category, tool_type, description in [
        ("Delta", "crm", "function", "50% off"),
        ("alpha", "crm", "webhook", "sends a_b"),
        ("Charlie", "email", "function", "finds CASES"),
        ("Bravo", "custom", "webhook", ""),
        ("echo", "email", "webhook", "aXb"),
    ]:
        base = FUNCTION_TOOL if tool_type == "function" else WEBHOOK_TOOL
        await create_tool(
            owner,
            **{**base, "name": name, "category": category, "description": description},
            is_enabled=name != "Bravo",
        )
    return owner


# List


async def _list_names(caller: Client, **params: Any) -> list[str]:
    return [item["name"] for item in await list_tools(caller, **params)]


async def test_a_list_shows_summaries_the_newest_first(owner_of_five: Client) -> None:
    summaries = await list_tools(owner_of_five)
    assert [item["name"] for item in summaries] == ["echo", "Bravo", "Charlie", "alpha", "Delta"]
    assert all(set(item) == SUMMARY_KEYS for item in summaries)


_LISTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"category": "crm"}, ["alpha", "Delta"]),
    ({"category": "payment"}, []),
    ({"tool_type": "function"}, ["Charlie", "Delta"]),
    ({"tool_type": "webhook", "category": "email"}, ["echo"]),
    ({"is_enabled": "false"}, ["Bravo"]),
    ({"is_enabled": "true", "tool_type": "webhook"}, ["echo", "alpha"]),
    ({"search": "ALPH"}, ["alpha"]),
    ({"search": "cases"}, ["Charlie"]),
    ({"search": "50%"}, ["Delta"]),
    ({"search": "a_b"}, ["alpha"]),
    ({"search": "%"}, ["Delta"]),
    ({"search": "nothing"}, []),
    ({"search": "planted"}, []),
    ({"search": "hooks.example"}, []),
    ({"search": "e", "category": "email", "sort": "name"}, ["Charlie", "echo"]),
    ({"sort": "created_at"}, ["Delta", "alpha", "Charlie", "Bravo", "echo"]),
    ({"sort": "-slug"}, ["echo", "Delta", "Charlie", "Bravo", "alpha"]),
    ({"per_page": 2, "sort": "slug"}, ["alpha", "Bravo"]),
    ({"per_page": 2, "page": 3, "sort": "slug"}, ["echo"]),
    ({"page": 9}, []),
]


async def test_a_list_is_filtered_searched_sorted_and_paged(
    owner_of_five: Client, subtests: pytest.Subtests
) -> None:
    for params, names in _LISTS:
        with subtests.test(params=params, names=names):
            assert await _list_names(owner_of_five, **params) == names


_SORTS: list[str] = [
    "name",
    "slug",
    "category",
    "tool_type",
    "usage_count",
    "last_used_at",
    "created_at",
    "updated_at",
]


async def test_every_sort_is_stable_over_pages(
    owner_of_five: Client, subtests: pytest.Subtests
) -> None:
    for field in _SORTS:
        with subtests.test(field=field):
            for sort in (field, f"-{field}"):
                pages = [
                    name
                    for page in range(1, 6)
                    for name in await _list_names(owner_of_five, sort=sort, per_page=1, page=page)
                ]
                assert pages == await _list_names(owner_of_five, sort=sort)
                assert len(set(pages)) == 5


async def test_a_list_has_pagination(owner_of_five: Client) -> None:
    answer = await owner_of_five.get(
        PATH, params={"per_page": 2, "page": 2, "tool_type": "webhook"}
    )
    expected = {"page": 2, "per_page": 2, "total": 3, "total_pages": 2}
    assert answer.json()["pagination"] == expected


_INVALID_PARAMETERS: list[tuple[str, Any]] = [
    ("page", 0),
    ("page", "x"),
    ("per_page", 0),
    ("per_page", 101),
    ("category", "other"),
    ("tool_type", "other"),
    ("sort", "config"),
    ("sort", "auth_config"),
    ("sort", "--name"),
    ("search", "x" * 201),
]


async def test_a_wrong_parameter_of_a_list_is_named(
    owner_of_five: Client, subtests: pytest.Subtests
) -> None:
    for name, value in _INVALID_PARAMETERS:
        with subtests.test(name=name, value=value):
            answer = await owner_of_five.get(PATH, params={name: value})
            assert name in refused(answer, 422, "validation_error")["details"]


# Categories


async def test_categories_count_the_tools_of_the_tenant(
    owner_of_five: Client, developer: Client
) -> None:
    await create_tool(developer, category="payment")
    answer = await owner_of_five.get(f"{PATH}/categories")
    assert set(answer.json()) == {"data"}
    categories = answer.json()["data"]
    assert [item["slug"] for item in categories] == CATEGORIES
    assert all(
        set(item) == {"slug", "name", "description", "icon", "tool_count"}
        and item["name"]
        and item["description"]
        and item["icon"]
        for item in categories
    )
    counts = {item["slug"]: item["tool_count"] for item in categories if item["tool_count"]}
    assert counts == {"crm": 2, "email": 2, "custom": 1}
