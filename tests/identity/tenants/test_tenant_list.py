"""GET /api/v1/tenants: pages, filters and order."""

from typing import Any

import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import Tenant
from db.session import ALL_TENANTS
from tests.identity.tenants.factories import KEYS, PATH, create_tenant
from tests.world import Client, World


async def _insert_tenants(services: Services, *names: str, plan: str = "free") -> list[str]:
    """Inserts tenants with equal times, so that sorting has ties; returns their ids."""
    now = clock.now()
    rows = [
        Tenant(id=new_id("ten"), name=name, plan=plan, limits={}, created_at=now) for name in names
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)
    return [row.id for row in rows]


async def _list_names(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["data"]]


@pytest.fixture
def marker() -> str:
    """Returns a word that only the tenants of this test have in their names."""
    return new_id("mark")


async def test_a_list_has_data_and_pagination(
    super_admin: Client, services: Services, marker: str
) -> None:
    await _insert_tenants(services, marker)
    answer = await super_admin.get(PATH, params={"search": marker})
    assert set(answer.json()) == {"data", "pagination"}
    assert set(answer.json()["data"][0]) == KEYS
    assert answer.json()["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}


async def test_an_empty_list_has_no_pages(super_admin: Client, marker: str) -> None:
    answer = await super_admin.get(PATH, params={"search": marker})
    assert answer.json() == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_the_last_page_has_the_remaining_tenants(
    super_admin: Client, services: Services, marker: str
) -> None:
    await _insert_tenants(services, *(f"{marker} {number}" for number in range(5)))
    answer = await super_admin.get(PATH, params={"search": marker, "page": 3, "per_page": 2})
    assert len(answer.json()["data"]) == 1
    assert answer.json()["pagination"] == {"page": 3, "per_page": 2, "total": 5, "total_pages": 3}


async def test_a_page_past_the_end_is_empty(
    super_admin: Client, services: Services, marker: str
) -> None:
    await _insert_tenants(services, marker)
    answer = await super_admin.get(PATH, params={"search": marker, "page": 10_000_000})
    assert answer.json()["data"] == []
    assert answer.json()["pagination"]["total"] == 1


async def test_a_page_may_have_one_to_a_hundred_tenants(
    world: World, subtests: pytest.Subtests
) -> None:
    for per_page in (1, 100):
        super_admin = await world.user("super_admin")
        with subtests.test(per_page=per_page):
            answer = await super_admin.get(PATH, params={"per_page": per_page})
            assert answer.json()["pagination"]["per_page"] == per_page


async def test_a_page_out_of_bounds_is_refused(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for name in ("page", "per_page"):
        for value in ("0", "-1", "abc", "", "1.5", "99999999999999999999"):
            with subtests.test(name=name, value=value):
                answer = await super_admin.get(PATH, params={name: value})
                assert answer.status_code == 422
                assert answer.json()["error"]["code"] == "validation_error"
                assert set(answer.json()["error"]["details"]) == {name}


async def test_more_than_a_hundred_on_a_page_is_refused(super_admin: Client) -> None:
    answer = await super_admin.get(PATH, params={"per_page": 101})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"per_page"}


async def test_the_newest_come_first(super_admin: Client, marker: str) -> None:
    for number in range(3):
        await create_tenant(super_admin, name=f"{marker} {number}")
    assert await _list_names(super_admin, search=marker) == [f"{marker} {n}" for n in (2, 1, 0)]


async def test_a_list_is_sorted_by_the_requested_field(
    super_admin: Client, marker: str, subtests: pytest.Subtests
) -> None:
    for number in range(3):
        await create_tenant(super_admin, name=f"{marker} {number}")
    for sort, order in (("created_at", "012"), ("-created_at", "210"), ("name", "012")):
        with subtests.test(sort):
            assert await _list_names(super_admin, search=marker, sort=sort) == [
                f"{marker} {n}" for n in order
            ]


async def test_a_minus_reverses_the_order(
    super_admin: Client, services: Services, marker: str
) -> None:
    await _insert_tenants(services, f"{marker} b", f"{marker} c", f"{marker} a")
    assert await _list_names(super_admin, search=marker, sort="-name") == [
        f"{marker} {x}" for x in "cba"
    ]


async def test_a_list_is_sorted_by_plan(super_admin: Client, marker: str) -> None:
    for plan in ("team", "free", "pro"):
        await create_tenant(super_admin, name=f"{marker} {plan}", plan=plan)
    names = await _list_names(super_admin, search=marker, sort="plan")
    assert names == [f"{marker} {plan}" for plan in ("free", "pro", "team")]


async def test_an_unknown_sort_field_is_refused(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for sort in ("limits", "id; drop", "-", "--name", "+name", "Name", "name,plan"):
        with subtests.test(sort=sort):
            answer = await super_admin.get(PATH, params={"sort": sort})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"sort"}


async def test_pages_of_equal_rows_neither_repeat_nor_skip(
    super_admin: Client, services: Services, marker: str, subtests: pytest.Subtests
) -> None:
    tenant_ids = await _insert_tenants(services, *[marker] * 7)
    for sort in ("name", "-name", "plan", "-plan", "created_at", "-created_at"):
        with subtests.test(sort):
            listed_ids = []
            for page in range(1, 5):
                params = {"search": marker, "sort": sort, "page": page, "per_page": 2}
                answer = await super_admin.get(PATH, params=params)
                listed_ids += [item["id"] for item in answer.json()["data"]]
            assert sorted(listed_ids) == sorted(tenant_ids)


_CASES: list[tuple[str, list[str]]] = [
    ("0% off", ["100% off"]),
    ("%", ["100% off"]),
    ("_", ["snake_case"]),
    ("e_c", ["snake_case"]),
    ("a/b", ["a/b"]),
    ("a\\b", ["a\\b"]),
    ("SNAKE", ["snake_case"]),
    ("'", ["o'brien"]),
    ("1_0%", []),
    ("snake%case", []),
]


async def test_a_search_takes_text_literally(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for search, expected in _CASES:
        super_admin = await world.user("super_admin")
        with subtests.test(search=search, expected=expected):
            names = ["100% off", "snake_case", "a/b", "a\\b", "o'brien", "plain"]
            tenant_ids = set(await _insert_tenants(services, *names))
            answer = await super_admin.get(PATH, params={"search": search, "per_page": 100})
            matches = [item["name"] for item in answer.json()["data"] if item["id"] in tenant_ids]
            assert matches == expected


async def test_an_empty_search_finds_everything(super_admin: Client, services: Services) -> None:
    await _insert_tenants(services, "one", "two")
    answers = [await super_admin.get(PATH, params=params) for params in ({}, {"search": ""})]
    total, total_of_search = [answer.json()["pagination"]["total"] for answer in answers]
    assert total_of_search == total >= 2


async def test_a_search_that_is_too_long_is_refused(super_admin: Client) -> None:
    answer = await super_admin.get(PATH, params={"search": "x" * 201})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"search"}


async def test_a_list_can_be_filtered_by_plan(
    super_admin: Client, services: Services, marker: str
) -> None:
    await _insert_tenants(services, f"{marker} a", plan="team")
    await _insert_tenants(services, f"{marker} b", plan="pro")
    assert await _list_names(super_admin, search=marker, plan="team") == [f"{marker} a"]


async def test_an_unknown_plan_is_refused(super_admin: Client) -> None:
    answer = await super_admin.get(PATH, params={"plan": "gold"})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"plan"}
