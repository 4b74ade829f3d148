"""GET /api/v1/agents: pages, filters and order."""

import pytest

from app.services import Services
from tests.agents.definition.api_calls import list_names
from tests.agents.definition.factories import (
    BODY,
    PATH,
    STATUSES,
    SUMMARY_KEYS,
    create_agent,
    insert_agents,
)
from tests.world import Client, World


async def test_a_tenant_without_agents_has_an_empty_list(developer: Client) -> None:
    answer = await developer.get(PATH)
    assert answer.json() == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_a_list_has_exactly_the_fields_of_a_summary(developer: Client) -> None:
    agent = await create_agent(developer, description="Sells", temperature=0.3, status="published")
    summaries = (await developer.get(PATH)).json()["data"]
    assert summaries == [{name: agent[name] for name in SUMMARY_KEYS}]


async def test_a_page_has_twenty_agents_by_default(developer: Client, services: Services) -> None:
    await insert_agents(services, developer.tenant_id, *["x"] * 21)
    answer = (await developer.get(PATH)).json()
    assert len(answer["data"]) == 20
    assert answer["pagination"] == {"page": 1, "per_page": 20, "total": 21, "total_pages": 2}


async def test_the_last_page_holds_the_rest(developer: Client, services: Services) -> None:
    await insert_agents(services, developer.tenant_id, *"abcde")
    answer = (await developer.get(PATH, params={"page": 3, "per_page": 2})).json()
    assert len(answer["data"]) == 1
    assert answer["pagination"] == {"page": 3, "per_page": 2, "total": 5, "total_pages": 3}


async def test_a_page_past_the_end_is_empty(developer: Client) -> None:
    await create_agent(developer)
    answer = (await developer.get(PATH, params={"page": 9})).json()
    assert (answer["data"], answer["pagination"]["total"]) == ([], 1)


async def test_a_page_holds_one_to_a_hundred(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for per_page in (1, 100):
        developer = await world.user()
        with subtests.test(per_page=per_page):
            await insert_agents(services, developer.tenant_id, *["x"] * 101)
            answer = (await developer.get(PATH, params={"per_page": per_page})).json()
            assert len(answer["data"]) == per_page
            assert answer["pagination"]["per_page"] == per_page


_INVALID_PARAMETERS: list[tuple[str, str]] = [
    ("page", "0"),
    ("page", "-1"),
    ("page", "x"),
    ("page", "1.5"),
    ("page", ""),
    ("page", "99999999999999999999"),
    ("per_page", "0"),
    ("per_page", "-1"),
    ("per_page", "101"),
    ("per_page", "x"),
    ("per_page", ""),
    ("status", "gone"),
    ("status", "Draft"),
    ("sort", "temperature"),
    ("sort", "system_prompt"),
    ("sort", "--name"),
    ("sort", "name; drop table agents"),
    ("search", "x" * 201),
]


async def test_a_wrong_parameter_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for name, value in _INVALID_PARAMETERS:
        with subtests.test(name=name, value=value):
            answer = await developer.get(PATH, params={name: value})
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {name}


_CASES: list[tuple[str, list[str]]] = [
    ("%", ["100% off"]),
    ("0% o", ["100% off"]),
    ("_", ["snake_case"]),
    ("e_c", ["snake_case"]),
    ("1_0%", []),
    ("snake%case", []),
    ("/", ["a/b"]),
    ("\\", ["a\\b"]),
    ("SNAKE", ["snake_case"]),
    ("ÜBER", ["Über"]),
    ("'", ["o'brien"]),
    ("You help", []),
    ("gpt-4o", []),
]


async def test_search_matches_names_literally(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for search, expected in _CASES:
        developer = await world.user()
        with subtests.test(search=search, expected=expected):
            names = ["100% off", "snake_case", "a/b", "a\\b", "o'brien", "Über", "plain"]
            await insert_agents(services, developer.tenant_id, *names)
            assert await list_names(developer, search=search) == expected


async def test_an_empty_search_returns_every_agent(developer: Client, services: Services) -> None:
    await insert_agents(services, developer.tenant_id, "one", "two")
    assert sorted(await list_names(developer, search="")) == ["one", "two"]


async def test_a_list_is_filtered_by_status(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for status in STATUSES:
        developer = await world.user()
        with subtests.test(status=status):
            for other in STATUSES:
                await insert_agents(services, developer.tenant_id, other, status=other)
            assert await list_names(developer, status=status) == [status]


async def test_archived_agents_are_listed_by_default(developer: Client, services: Services) -> None:
    for status in STATUSES:
        await insert_agents(services, developer.tenant_id, status, status=status)
    assert sorted(await list_names(developer)) == sorted(STATUSES)


async def test_search_status_and_pages_can_be_combined(
    developer: Client, services: Services
) -> None:
    await insert_agents(services, developer.tenant_id, "ax", "ay", "b", status="published")
    await insert_agents(services, developer.tenant_id, "az", status="draft")
    params = {"search": "a", "status": "published", "per_page": 1, "sort": "-name"}
    answer = (await developer.get(PATH, params=params)).json()
    assert [item["name"] for item in answer["data"]] == ["ay"]
    assert answer["pagination"] == {"page": 1, "per_page": 1, "total": 2, "total_pages": 2}


async def test_the_newest_come_first(developer: Client) -> None:
    for name in "abc":
        await create_agent(developer, name=name)
    assert await list_names(developer) == ["c", "b", "a"]


async def test_a_list_is_sorted_by_the_requested_field(
    developer: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("name", "abc"),
        ("-name", "cba"),
        ("created_at", "bac"),
        ("-created_at", "cab"),
        ("updated_at", "acb"),
        ("-updated_at", "bca"),
        ("status", "cab"),
        ("-status", "bac"),
    ]
    agents = {name: await create_agent(developer, name=name) for name in "bac"}
    # The agent that was created first is changed last.
    for name, status in (("a", "draft"), ("c", "archived"), ("b", "published")):
        change = {"description": "touched", "status": status}
        await developer.put(f"{PATH}/{agents[name]['id']}", change)
    for sort, expected in cases:
        with subtests.test(sort):
            assert await list_names(developer, sort=sort) == list(expected)


async def test_pages_of_equal_rows_neither_repeat_nor_skip(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    agent_ids = await insert_agents(services, developer.tenant_id, *["same"] * 7)
    for sort in ("name", "-name", "status", "-created_at", "updated_at"):
        with subtests.test(sort):
            listed_ids = []
            for page in range(1, 5):
                answer = await developer.get(
                    PATH, params={"sort": sort, "page": page, "per_page": 2}
                )
                listed_ids += [item["id"] for item in answer.json()["data"]]
            assert sorted(listed_ids) == sorted(agent_ids)


async def test_direct_sub_agents_are_not_listed(developer: Client) -> None:
    parent = await create_agent(developer, name="Parent")
    body = {**BODY, "name": "Helper"}
    created = await developer.post(f"{PATH}/{parent['id']}/sub-agents/direct", body)
    assert created.status_code == 201
    answer = (await developer.get(PATH)).json()
    assert [item["id"] for item in answer["data"]] == [parent["id"]]
    assert answer["pagination"]["total"] == 1
    assert await list_names(developer, search="Helper") == []


async def test_a_list_has_agents_of_the_callers_tenant_only(
    developer: Client, world: World
) -> None:
    stranger = await world.user()
    await create_agent(stranger, name="Theirs")
    await create_agent(developer, name="Ours")
    assert await list_names(developer) == ["Ours"]


async def test_super_admin_lists_one_tenant_by_its_header(
    super_admin: Client, developer: Client
) -> None:
    await create_agent(developer, name="Theirs")
    answer = await super_admin.get(PATH, headers={"x-tenant-id": developer.tenant_id})
    assert [item["name"] for item in answer.json()["data"]] == ["Theirs"]
