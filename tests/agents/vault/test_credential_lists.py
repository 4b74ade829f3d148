"""/v1/credentials: get, list, search, sort and page."""

from typing import Any

import pytest

from app.services import Services
from tests.agents.vault.api import (
    LIST_FIELDS,
    PATH,
    get_credential,
    list_credentials,
    read_invalid_fields,
)
from tests.agents.vault.factories import create_credential
from tests.database import run_sql
from tests.world import Client, World


async def _list_names(caller: Client, **query: Any) -> list[str]:
    return [item["name"] for item in await list_credentials(caller, **query)]


async def test_a_credential_is_shown_as_it_was_created(admin: Client) -> None:
    credential = await create_credential(admin, metadata={"owner": "support"})
    assert await get_credential(admin, credential["id"]) == credential


async def test_a_list_has_the_list_fields_and_a_page(admin: Client) -> None:
    credential = await create_credential(admin)
    answer = await admin.get(PATH)
    assert answer.json() == {
        "data": [{name: credential[name] for name in LIST_FIELDS}],
        "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1},
    }


async def test_the_newest_comes_first(admin: Client) -> None:
    for name in "abc":
        await create_credential(admin, name=name)
    assert await _list_names(admin) == ["c", "b", "a"]


async def test_pages_neither_overlap_nor_leave_anything_out(admin: Client) -> None:
    for name in "abcde":
        await create_credential(admin, name=name)
    pages = [await _list_names(admin, page=page, per_page=2, sort="type") for page in (1, 2, 3, 4)]
    assert pages == [["a", "b"], ["c", "d"], ["e"], []]
    answer = await admin.get(PATH, params={"page": 2, "per_page": 2})
    assert answer.json()["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}


async def test_the_type_parameter_filters_the_list(admin: Client) -> None:
    for type_ in ("api_key", "custom", "api_key"):
        await create_credential(admin, type_, name=type_)
    assert await _list_names(admin, type="api_key") == ["api_key", "api_key"]
    assert await _list_names(admin, type="ssh") == []


async def test_search_looks_for_the_literal_text_in_names(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, list[str]]] = [
        ("TICKET", ["Tickets 100%"]),
        ("%", ["Tickets 100%"]),
        ("_", ["my_mail"]),
        ("planted", []),
        ("m", ["my_mail"]),
        ("\\", []),
    ]
    for search, expected in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(search=search, expected=expected):
            await create_credential(admin, name="Tickets 100%", description="planted")
            await create_credential(admin, name="my_mail")
            assert await _list_names(admin, search=search) == expected


_CASES: list[tuple[str, list[str]]] = [
    ("name", ["a", "b", "c"]),
    ("-name", ["c", "b", "a"]),
    ("type", ["c", "a", "b"]),
    ("-type", ["b", "a", "c"]),
    ("created_at", ["b", "c", "a"]),
    ("-created_at", ["a", "c", "b"]),
    ("updated_at", ["c", "a", "b"]),
    ("-updated_at", ["b", "a", "c"]),
    ("last_used_at", ["c", "b", "a"]),
    ("-last_used_at", ["c", "a", "b"]),
    ("last_tested_at", ["a", "b", "c"]),
    ("-last_tested_at", ["a", "c", "b"]),
]


async def test_a_list_is_sorted_by_the_sort_parameter(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for sort, expected in _CASES:
        admin = await world.user("tenant_admin")
        with subtests.test(sort=sort, expected=expected):
            credentials = {
                name: await create_credential(admin, type_, name=name)
                for name, type_ in (("b", "ssh"), ("c", "api_key"), ("a", "smtp"))
            }
            await admin.put(f"{PATH}/{credentials['b']['id']}", {"description": "changed"})
            for column, name in (("last_used_at", "c"), ("last_tested_at", "a")):
                await run_sql(
                    services,
                    f"UPDATE credentials SET {column} = now() WHERE id = $1",
                    credentials[name]["id"],
                )
            assert await _list_names(admin, sort=sort) == expected


_INVALID_QUERIES: list[tuple[dict[str, Any], str]] = [
    ({"page": 0}, "page"),
    ({"page": "x"}, "page"),
    ({"per_page": 0}, "per_page"),
    ({"per_page": 101}, "per_page"),
    ({"sort": "secrets"}, "sort"),
    ({"sort": "--name"}, "sort"),
    ({"sort": "tenant_id"}, "sort"),
    ({"type": "password"}, "type"),
    ({"search": "x" * 201}, "search"),
]


async def test_a_bad_query_is_named(admin: Client, subtests: pytest.Subtests) -> None:
    for query, field in _INVALID_QUERIES:
        with subtests.test(query=query, field=field):
            assert set(read_invalid_fields(await admin.get(PATH, params=query))) == {field}


async def test_a_hundred_fit_on_a_page(admin: Client) -> None:
    assert (await admin.get(PATH, params={"per_page": 100})).status_code == 200
