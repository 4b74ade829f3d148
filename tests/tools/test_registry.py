"""The registry of tools: made, listed, shown, changed and deleted, and whose they are."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.tools.registry import seal_context
from app.kit import logs
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused, until
from tests.server import Server
from tests.tools.factories import Bench
from tests.tools.site import Site, open_site
from tests.world import Client, World
from workers.main import WorkerProcess

PATH = "/v1/tools"
SUMMARY_KEYS = {
    "id",
    "name",
    "slug",
    "description",
    "category",
    "tool_type",
    "auth_type",
    "is_enabled",
    "usage_count",
    "last_used_at",
    "created_at",
}
VIEW_KEYS = SUMMARY_KEYS | {"input_schema", "output_schema", "updated_at"}
CODE = "def main(input):\n    return input\n"
CONFIG = {"runtime": "python", "code": CODE}
BODY: dict[str, Any] = {
    "name": "Echo",
    "category": "automation",
    "tool_type": "function",
    "config": CONFIG,
    "auth_type": "none",
}
HOOK: dict[str, Any] = {
    "name": "Hook",
    "category": "webhook",
    "tool_type": "webhook",
    "config": {"url": "https://hooks.example.com/in"},
    "auth_type": "bearer",
    "auth_config": {"token": "planted-token-0123456789"},
}
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
NO_TOOL = "tool_00000000000000000000000000"


async def _create(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) == {"data"}
    made: dict[str, Any] = answer.json()["data"]
    return made


async def _get(caller: Client, tool_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{tool_id}")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: dict[str, Any] = answer.json()["data"]
    return found


async def _put(caller: Client, tool_id: str, change: dict[str, Any]) -> dict[str, Any]:
    answer = await caller.put(f"{PATH}/{tool_id}", change)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: dict[str, Any] = answer.json()["data"]
    return found


async def _list(caller: Client, **params: Any) -> list[dict[str, Any]]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "pagination"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _events(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    found = [(entry["type"], entry["data"]) for entry in reversed(answer.json()["data"])]
    return [(kind, data) for kind, data in found if kind.startswith("system.tool.")]


async def _auth(services: Services, tool_id: str) -> bytes | None:
    """What is stored of a tool's auth, opened."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT tenant_id, auth_config FROM tools WHERE id = $1"
        row = await (await tx.raw()).fetchrow(sql, tool_id)
    if row["auth_config"] is None:
        return None
    opened = services.keyring.open(row["auth_config"], seal_context(row["tenant_id"], tool_id))
    return msgspec.json.encode(msgspec.json.decode(opened)["auth"])


# Create


async def test_a_tool_is_made_with_just_what_is_required(developer: Client) -> None:
    made = await _create(developer)
    assert set(made) == VIEW_KEYS
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
    assert {name: made[name] for name in expected} == expected
    assert made["id"].startswith("tool_")
    assert made["created_at"].endswith("Z")
    assert made["updated_at"].endswith("Z")


async def test_a_tool_is_made_with_every_field(developer: Client) -> None:
    schema = {"type": "object", "required": ["a"]}
    fields: dict[str, Any] = {
        **HOOK,
        "name": "N" * 100,
        "slug": "my-own-1",
        "description": "Two\nlines",
        "input_schema": schema,
        "output_schema": {"type": "object"},
        "is_enabled": False,
    }
    made = await _create(developer, **fields)
    shown = fields.keys() - {"config", "auth_config"}
    assert {name: made[name] for name in shown} == {name: fields[name] for name in shown}


async def test_every_required_field_is_named_at_once(developer: Client) -> None:
    error = refused(await developer.post(PATH, {}), 422, "validation_error")
    assert set(error["details"]) == {"name", "category", "tool_type", "config", "auth_type"}


WRONG: list[tuple[str, object]] = [
    ("name", ""),
    ("name", " "),
    ("name", "x" * 101),
    ("name", "two\nlines"),
    ("name", None),
    ("slug", ""),
    ("slug", "Upper"),
    ("slug", "two--dashes"),
    ("slug", "-leading"),
    ("slug", "trailing-"),
    ("slug", "a b"),
    ("slug", "ä"),
    ("slug", "line\n"),
    ("slug", "x" * 101),
    ("description", "x" * 2001),
    ("description", None),
    ("category", "other"),
    ("category", None),
    ("tool_type", "python"),
    ("tool_type", None),
    ("auth_type", "digest"),
    ("auth_type", None),
    ("config", []),
    ("config", "x"),
    ("auth_config", "x"),
    ("input_schema", "x"),
    ("input_schema", True),
    ("output_schema", []),
    ("is_enabled", "yes"),
    ("is_enabled", None),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
async def test_a_wrong_field_is_named(developer: Client, field: str, value: object) -> None:
    error = refused(await developer.post(PATH, {**BODY, field: value}), 422, "validation_error")
    assert set(error["details"]) == {field}
    assert await _list(developer) == []


async def test_a_tool_without_config_is_refused(developer: Client) -> None:
    body = {name: value for name, value in BODY.items() if name != "config"}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {"config"}


async def test_what_is_not_the_callers_to_say_cannot_be_made(
    developer: Client, world: World
) -> None:
    fields = {
        "id": "tool_mine",
        "tenant_id": await world.tenant(),
        "usage_count": 99,
        "last_used_at": "2020-01-01T00:00:00Z",
        "created_at": "2020-01-01T00:00:00Z",
        "nonsense": {"deep": [1]},
    }
    made = await _create(developer, **fields)
    assert made["id"] != "tool_mine"
    assert (made["usage_count"], made["last_used_at"]) == (0, None)
    assert made["created_at"] > "2025"
    assert [item["id"] for item in await _list(developer)] == [made["id"]]


@pytest.mark.parametrize("auth_config", [None, {}, {"token": "x"}])
async def test_a_tool_without_auth_stores_none(
    developer: Client, services: Services, auth_config: Any
) -> None:
    made = await _create(developer, **{**HOOK, "auth_type": "none", "auth_config": auth_config})
    assert await _auth(services, made["id"]) is None


async def test_the_same_key_makes_one_tool(developer: Client) -> None:
    headers = {"idempotency-key": "a"}
    first = await developer.post(PATH, HOOK, headers=headers)
    second = await developer.post(PATH, HOOK, headers=headers)
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    other = await developer.post(PATH, {**HOOK, "name": "Other"}, headers=headers)
    refused(other, 422, "idempotency_mismatch")
    assert len(await _list(developer)) == 1


# Slugs


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Add Numbers", "add-numbers"),
        ("  GET /users/{id}!  ", "get-users-id"),
        ("Ünïcode ok", "n-code-ok"),
        ("日本", "tool"),
        ("--", "tool"),
        ("x" * 100, "x" * 80),
        ("a" * 79 + " b", "a" * 79),
    ],
)
async def test_a_slug_is_made_from_the_name(developer: Client, name: str, slug: str) -> None:
    assert (await _create(developer, name=name))["slug"] == slug


async def test_the_next_tool_of_a_name_has_a_number(developer: Client) -> None:
    slugs = [(await _create(developer))["slug"] for _ in range(3)]
    assert slugs == ["echo", "echo-2", "echo-3"]


async def test_a_number_that_somebody_took_is_left_out(developer: Client) -> None:
    await _create(developer)
    await _create(developer, slug="echo-2")
    assert (await _create(developer))["slug"] == "echo-3"


async def test_twenty_tools_of_one_name_at_once_have_twenty_slugs(developer: Client) -> None:
    made = await asyncio.gather(*(_create(developer) for _ in range(20)))
    expected = {"echo"} | {f"echo-{number}" for number in range(2, 21)}
    assert {item["slug"] for item in made} == expected


async def test_an_own_slug_that_is_taken_is_refused(developer: Client) -> None:
    await _create(developer, slug="mine")
    refused(await developer.post(PATH, {**BODY, "slug": "mine"}), 409, "conflict")
    assert len(await _list(developer)) == 1


async def test_of_ten_tools_with_one_own_slug_one_is_made(developer: Client) -> None:
    body = {**BODY, "slug": "mine"}
    answers = await asyncio.gather(*(developer.post(PATH, body) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 9


async def test_another_tenant_may_have_the_same_slug(developer: Client, world: World) -> None:
    await _create(developer, slug="mine")
    other = await world.user("agent_developer")
    assert (await _create(other, slug="mine"))["slug"] == "mine"
    assert (await _create(other))["slug"] == "echo"


async def test_a_slug_is_changed_to_a_free_one_only(developer: Client) -> None:
    await _create(developer, slug="taken")
    made = await _create(developer)
    path = f"{PATH}/{made['id']}"
    refused(await developer.put(path, {"slug": "taken"}), 409, "conflict")
    assert (await _put(developer, made["id"], {"slug": "free"}))["slug"] == "free"
    assert (await _put(developer, made["id"], {"slug": "free"}))["slug"] == "free"


async def test_a_new_name_leaves_the_slug(developer: Client) -> None:
    made = await _create(developer)
    assert (await _put(developer, made["id"], {"name": "New"}))["slug"] == "echo"


# Get


async def test_a_tool_is_shown_with_config_schemas_and_figures(developer: Client) -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    made = await _create(developer, input_schema=schema, output_schema={"type": "array"})
    shown = await _get(developer, made["id"])
    assert set(shown) == VIEW_KEYS | {"config", "usage_stats"}
    assert {name: shown[name] for name in made} == made
    assert shown["config"] == CONFIG
    assert list(shown["input_schema"]["properties"]) == ["b", "a"]
    assert shown["usage_stats"] == {
        "total_executions": 0,
        "successful": 0,
        "failed": 0,
        "success_rate": 0.0,
        "avg_execution_time_ms": 0.0,
    }


async def test_a_tool_that_is_not_there_is_not_found(developer: Client) -> None:
    for method in ("GET", "PUT", "DELETE"):
        content: dict[str, Any] = {"json": {}} if method == "PUT" else {}
        answer = await developer(method, f"{PATH}/{NO_TOOL}", **content)
        refused(answer, 404, "tool_not_found")


# List


@pytest.fixture(scope="module")
async def shelf(world: World) -> Client:
    """Somebody with five tools, made in this order."""
    owner = await world.user("agent_developer")
    for name, category, tool_type, said in [
        ("Delta", "crm", "function", "50% off"),
        ("alpha", "crm", "webhook", "sends a_b"),
        ("Charlie", "email", "function", "finds CASES"),
        ("Bravo", "custom", "webhook", ""),
        ("echo", "email", "webhook", "aXb"),
    ]:
        base = BODY if tool_type == "function" else HOOK
        await _create(owner, **{**base, "name": name, "category": category, "description": said})
    return owner


async def _names(caller: Client, **params: Any) -> list[str]:
    return [item["name"] for item in await _list(caller, **params)]


async def test_a_list_shows_summaries_the_newest_first(shelf: Client) -> None:
    found = await _list(shelf)
    assert [item["name"] for item in found] == ["echo", "Bravo", "Charlie", "alpha", "Delta"]
    assert all(set(item) == SUMMARY_KEYS for item in found)


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"category": "crm"}, ["alpha", "Delta"]),
        ({"category": "payment"}, []),
        ({"tool_type": "function"}, ["Charlie", "Delta"]),
        ({"tool_type": "webhook", "category": "email"}, ["echo"]),
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
    ],
)
async def test_a_list_is_filtered_searched_sorted_and_paged(
    shelf: Client, params: dict[str, Any], names: list[str]
) -> None:
    assert await _names(shelf, **params) == names


@pytest.mark.parametrize(
    "field",
    [
        "name",
        "slug",
        "category",
        "tool_type",
        "usage_count",
        "last_used_at",
        "created_at",
        "updated_at",
    ],
)
async def test_every_sort_is_stable_over_pages(shelf: Client, field: str) -> None:
    for sort in (field, f"-{field}"):
        pages = [
            name
            for page in range(1, 6)
            for name in await _names(shelf, sort=sort, per_page=1, page=page)
        ]
        assert pages == await _names(shelf, sort=sort)
        assert len(set(pages)) == 5


async def test_a_page_tells_where_it_is(shelf: Client) -> None:
    answer = await shelf.get(PATH, params={"per_page": 2, "page": 2, "tool_type": "webhook"})
    expected = {"page": 2, "per_page": 2, "total": 3, "total_pages": 2}
    assert answer.json()["pagination"] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
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
    ],
)
async def test_a_wrong_parameter_of_a_list_is_named(shelf: Client, name: str, value: Any) -> None:
    answer = await shelf.get(PATH, params={name: value})
    assert name in refused(answer, 422, "validation_error")["details"]


# Categories


async def test_categories_tell_how_many_tools_the_tenant_has_in_each(
    shelf: Client, developer: Client
) -> None:
    await _create(developer, category="payment")
    answer = await shelf.get(f"{PATH}/categories")
    assert set(answer.json()) == {"data"}
    found = answer.json()["data"]
    assert [item["slug"] for item in found] == CATEGORIES
    assert all(
        set(item) == {"slug", "name", "description", "icon", "tool_count"}
        and item["name"]
        and item["description"]
        and item["icon"]
        for item in found
    )
    counts = {item["slug"]: item["tool_count"] for item in found if item["tool_count"]}
    assert counts == {"crm": 2, "email": 2, "custom": 1}


# Update


@pytest.mark.parametrize(
    "change",
    [
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
    ],
)
async def test_what_is_left_out_of_an_update_stays(
    developer: Client, change: dict[str, Any]
) -> None:
    schema = {"type": "object", "required": ["a"]}
    made = await _create(developer, description="D", input_schema=schema, output_schema=schema)
    before = await _get(developer, made["id"])
    told = await _put(developer, made["id"], change)
    assert {**told, "updated_at": None} == {**before, **change, "updated_at": None}
    after = await _get(developer, made["id"])
    assert {**after, "updated_at": None} == {**before, **change, "updated_at": None}


@pytest.mark.parametrize(("field", "value"), [*WRONG, ("config", None), ("slug", None)])
async def test_a_wrong_field_of_an_update_is_named_and_changes_nothing(
    developer: Client, field: str, value: object
) -> None:
    made = await _create(developer)
    before = await _get(developer, made["id"])
    answer = await developer.put(f"{PATH}/{made['id']}", {"description": "Changed", field: value})
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert await _get(developer, made["id"]) == before


async def test_read_only_fields_cannot_be_changed(developer: Client, world: World) -> None:
    made = await _create(developer)
    change = {
        "id": "tool_x",
        "tenant_id": await world.tenant(),
        "usage_count": 7,
        "last_used_at": "2020-01-01T00:00:00Z",
        "created_at": "2020-01-01T00:00:00Z",
        "usage_stats": {"failed": 1},
    }
    before = await _get(developer, made["id"])
    assert await _put(developer, made["id"], change) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"timeout_ms": 5}, {**CONFIG, "timeout_ms": 5}),
        ({"code": "x = 1"}, {**CONFIG, "code": "x = 1"}),
        ({}, CONFIG),
        ({"nonsense": 1}, CONFIG),
        ({"url": "https://example.com"}, CONFIG),
    ],
)
async def test_a_config_is_merged_by_key(
    developer: Client, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = await _create(developer)
    await _put(developer, made["id"], {"config": change})
    assert (await _get(developer, made["id"]))["config"] == expected


async def test_null_takes_a_key_out_of_a_config(developer: Client) -> None:
    made = await _create(developer, config={**CONFIG, "timeout_ms": 7})
    await _put(developer, made["id"], {"config": {"timeout_ms": None}})
    assert (await _get(developer, made["id"]))["config"] == CONFIG


async def test_a_required_key_cannot_be_taken_out_of_a_config(developer: Client) -> None:
    made = await _create(developer)
    answer = await developer.put(f"{PATH}/{made['id']}", {"config": {"code": None}})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config.code"}
    assert (await _get(developer, made["id"]))["config"] == CONFIG


async def test_a_map_within_a_config_is_replaced_as_a_whole(developer: Client) -> None:
    config = {**HOOK["config"], "headers": {"X-A": "1", "X-B": "2"}}
    made = await _create(developer, **{**HOOK, "config": config})
    await _put(developer, made["id"], {"config": {"headers": {"X-C": "3"}}})
    assert (await _get(developer, made["id"]))["config"]["headers"] == {"X-C": "3"}


async def test_twenty_changes_at_once_of_one_config_are_all_kept(developer: Client) -> None:
    keys = ["timeout_ms", "code", "packages", "runtime"]
    values: list[Any] = [77, "def main(input): return 1", [], "javascript"]
    made = await _create(developer)
    await asyncio.gather(
        *(
            _put(developer, made["id"], {"config": {key: value}})
            for key, value in zip(keys * 5, values * 5, strict=True)
        )
    )
    assert (await _get(developer, made["id"]))["config"] == dict(zip(keys, values, strict=True))


async def test_another_type_needs_a_whole_config(developer: Client) -> None:
    made = await _create(developer)
    path = f"{PATH}/{made['id']}"
    error = refused(await developer.put(path, {"tool_type": "webhook"}), 422, "validation_error")
    assert set(error["details"]) == {"config"}
    part = {"tool_type": "webhook", "config": {"method": "GET"}}
    error = refused(await developer.put(path, part), 422, "validation_error")
    assert set(error["details"]) == {"config.url"}
    assert (await _get(developer, made["id"]))["tool_type"] == "function"


async def test_another_type_keeps_nothing_of_the_config_before(developer: Client) -> None:
    made = await _create(developer, config={**CONFIG, "timeout_ms": 7})
    change = {"tool_type": "webhook", "config": {"url": "https://example.com/x"}}
    assert (await _put(developer, made["id"], change))["tool_type"] == "webhook"
    assert (await _get(developer, made["id"]))["config"] == {"url": "https://example.com/x"}


# Auth


@pytest.fixture
async def hook(developer: Client) -> str:
    made: str = (await _create(developer, **HOOK))["id"]
    return made


async def test_what_is_sealed_opens_to_what_was_given(services: Services, hook: str) -> None:
    assert await _auth(services, hook) == b'{"token":"planted-token-0123456789"}'


async def test_an_update_without_auth_config_keeps_it(
    developer: Client, services: Services, hook: str
) -> None:
    await _put(developer, hook, {"name": "New", "config": {"timeout_ms": 9}})
    assert await _auth(services, hook) == b'{"token":"planted-token-0123456789"}'


async def test_an_auth_config_replaces_the_one_before(
    developer: Client, services: Services, hook: str
) -> None:
    await _put(developer, hook, {"auth_config": {"token": "other"}})
    assert await _auth(services, hook) == b'{"token":"other"}'


@pytest.mark.parametrize("nothing", [None, {}])
async def test_an_empty_auth_config_takes_it_away(
    developer: Client, services: Services, hook: str, nothing: Any
) -> None:
    await _put(developer, hook, {"auth_config": nothing})
    assert await _auth(services, hook) is None


@pytest.mark.parametrize("auth_type", ["none", "basic", "api_key", "oauth2", "custom"])
async def test_another_auth_type_drops_the_stored_auth(
    developer: Client, services: Services, hook: str, auth_type: str
) -> None:
    assert (await _put(developer, hook, {"auth_type": auth_type}))["auth_type"] == auth_type
    assert await _auth(services, hook) is None


async def test_another_auth_type_takes_its_auth_along(
    developer: Client, services: Services, hook: str
) -> None:
    auth = {"username": "u", "password": "p"}
    await _put(developer, hook, {"auth_type": "basic", "auth_config": auth})
    assert await _auth(services, hook) == b'{"username":"u","password":"p"}'


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.com/in",
        "https://hooks.example.com:8443/in",
        "https://hooks.example.com./in",
        "https://hooks.example.com.evil.example/in",
    ],
)
async def test_a_tool_that_leads_elsewhere_needs_its_auth_again(
    developer: Client, services: Services, hook: str, url: str
) -> None:
    answer = await developer.put(f"{PATH}/{hook}", {"config": {"url": url}})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"auth_config"}
    assert (await _get(developer, hook))["config"] == HOOK["config"]
    await _put(developer, hook, {"config": {"url": url}, "auth_config": {"token": "again"}})
    assert await _auth(services, hook) == b'{"token":"again"}'


async def test_another_path_of_the_same_host_keeps_the_auth(
    developer: Client, services: Services, hook: str
) -> None:
    await _put(developer, hook, {"config": {"url": "https://hooks.example.com:443/other"}})
    assert await _auth(services, hook) is not None


async def test_another_type_with_another_host_needs_its_auth_again(
    developer: Client, hook: str
) -> None:
    config = {"kind": "mcp", "url": "https://evil.example.com"}
    change = {"tool_type": "custom", "config": config}
    answer = await developer.put(f"{PATH}/{hook}", change)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"auth_config"}


async def test_a_tool_may_lead_elsewhere_without_any_auth(
    developer: Client, services: Services, hook: str
) -> None:
    change = {"config": {"url": "https://evil.example.com"}, "auth_config": None}
    await _put(developer, hook, change)
    assert await _auth(services, hook) is None


AUTHS: dict[str, dict[str, Any]] = {
    "api_key": {
        "api_key_value": "v",
        "api_key_header": "X-Key",
        "api_key_location": "query",
    },
    "oauth2": {
        "token_url": "https://login.example.com/token",
        "client_id": "c",
        "client_secret": "s",
        "scope": "a b",
    },
    "basic": {"username": "u", "password": ""},
    "bearer": {"token": "t"},
    "custom": {"headers": {"X-One": "1", "X-Two": "2"}},
}


@pytest.mark.parametrize("auth_type", AUTHS)
async def test_every_kind_of_auth_is_taken_with_every_key(
    developer: Client, services: Services, auth_type: str
) -> None:
    fields = {**HOOK, "auth_type": auth_type, "auth_config": AUTHS[auth_type]}
    made = await _create(developer, **fields)
    assert await _auth(services, made["id"]) is not None


@pytest.mark.parametrize(
    ("auth_type", "key"),
    [
        ("api_key", "api_key_value"),
        ("oauth2", "token_url"),
        ("oauth2", "client_id"),
        ("oauth2", "client_secret"),
        ("basic", "username"),
        ("basic", "password"),
        ("bearer", "token"),
        ("custom", "headers"),
    ],
)
async def test_a_missing_key_of_an_auth_config_is_named(
    developer: Client, auth_type: str, key: str
) -> None:
    auth = {name: value for name, value in AUTHS[auth_type].items() if name != key}
    body = {**BODY, **HOOK, "auth_type": auth_type, "auth_config": auth or {"x": 1}}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert f"auth_config.{key}" in error["details"]


@pytest.mark.parametrize(
    ("auth_type", "key", "value"),
    [
        ("api_key", "api_key_location", "cookie"),
        ("api_key", "api_key_header", "two words"),
        ("api_key", "api_key_header", "X\r\nY"),
        ("oauth2", "token_url", "http://169.254.169.254/token"),
        ("oauth2", "token_url", "http://login.example.com/token"),
        ("oauth2", "token_url", "ftp://login.example.com"),
        ("bearer", "token", ""),
        ("bearer", "token", 5),
        ("bearer", "unknown", "x"),
        ("basic", "username", "x" * 256),
        ("custom", "headers", ["x"]),
    ],
)
async def test_a_wrong_key_of_an_auth_config_is_named_and_not_repeated(
    developer: Client, auth_type: str, key: str, value: Any
) -> None:
    auth = {**AUTHS[auth_type], key: value}
    body = {**BODY, **HOOK, "auth_type": auth_type, "auth_config": auth}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert {name.split(".")[1] for name in error["details"]} == {key}


@pytest.mark.parametrize("tool_type", ["function", "script"])
async def test_what_never_leaves_takes_no_auth(developer: Client, tool_type: str) -> None:
    config: dict[str, Any] = CONFIG
    if tool_type == "script":
        config = {"runtime": "bash", "entrypoint": "a.sh", "files": {"a.sh": "true"}}
    body = {**BODY, "tool_type": tool_type, "config": config, "auth_type": "bearer"}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {"auth_type"}


# Credentials of the vault


async def _credential(caller: Client, type_: str = "bearer_token") -> str:
    secrets = {"token": "t-0123"} if type_ == "bearer_token" else {"api_key": "k-0123"}
    body = {"name": "C", "type": type_, "secrets": secrets}
    answer = await caller.post("/v1/credentials", body)
    assert answer.status_code == 201, answer.text
    made: str = answer.json()["id"]
    return made


async def test_a_tool_may_name_a_credential_of_the_vault(
    developer: Client, services: Services
) -> None:
    credential_id = await _credential(developer)
    made = await _create(developer, **{**HOOK, "auth_config": {"credential_id": credential_id}})
    assert await _auth(services, made["id"]) == f'{{"credential_id":"{credential_id}"}}'.encode()


@pytest.mark.parametrize("which", ["unknown", "foreign", "another type"])
async def test_a_credential_that_does_not_fit_is_refused(
    developer: Client, world: World, which: str
) -> None:
    ids = {"unknown": "crd_none"}
    if which == "foreign":
        ids[which] = await _credential(await world.user("agent_developer"))
    if which == "another type":
        ids[which] = await _credential(developer, "api_key")
    body = {**BODY, **HOOK, "auth_config": {"credential_id": ids[which]}}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {"auth_config.credential_id"}


@pytest.fixture
async def careless(world: World, services: Services, super_admin: Client) -> AsyncIterator[str]:
    """A role that may write tools and no credentials; as before when the test ends."""
    path = "/roles/agent_user/permissions"
    before = (await super_admin.get(path)).json()["permissions"]
    granted = [one["key"] if isinstance(one, dict) else one for one in before]
    more = ["tools:write", "agents:write"]
    answer = await super_admin.put(path, {"permissions": sorted({*granted, *more})})
    assert answer.status_code == 200, answer.text
    yield "agent_user"
    answer = await super_admin.put(path, {"permissions": granted})
    assert answer.status_code == 200, answer.text


async def test_a_tool_that_a_rule_names_is_led_elsewhere_only_by_who_may_write_credentials(
    developer: Client, world: World, careless: str
) -> None:
    credential_id = await _credential(developer)
    auth = {"credential_id": credential_id}
    made = await _create(developer, **{**HOOK, "auth_config": auth})
    rule = {"integration_type": "tool", "integration_id": made["id"]}
    granted = await developer.post(f"/v1/credentials/{credential_id}/access", rule)
    assert granted.status_code == 201, granted.text
    caller = await world.user(careless, developer.tenant_id)
    change = {"config": {"url": "https://evil.example.com"}, "auth_config": auth}
    answer = await caller.put(f"{PATH}/{made['id']}", change)
    assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:write"
    assert (await _get(developer, made["id"]))["config"] == HOOK["config"]
    await _put(caller, made["id"], {"name": "Harmless"})
    await _put(developer, made["id"], change)


async def test_a_tool_that_no_rule_names_is_led_elsewhere_by_who_writes_tools(
    developer: Client, world: World, careless: str, hook: str
) -> None:
    caller = await world.user(careless, developer.tenant_id)
    change = {"config": {"url": "https://example.com"}, "auth_config": {"token": "x"}}
    assert (await caller.put(f"{PATH}/{hook}", change)).status_code == 200


# Where a secret is not


def _spellings(secret: str) -> list[str]:
    raw = secret.encode()
    return [secret, raw.hex(), base64.b64encode(raw).decode()]


async def _columns_with(services: Services, secret: str) -> list[str]:
    """Tables with a row in which the secret can be read."""
    found = []
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        tables = await raw.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for table in [row["tablename"] for row in tables]:
            sql = f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE ANY($1)'
            if await raw.fetchval(sql, [f"%{text}%" for text in _spellings(secret)]):
                found.append(table)
    assert len(tables) > 20
    return found


async def _keys_with(services: Services, secret: str) -> list[bytes]:
    found = []
    async for key in services.redis.scan_iter(count=1000):
        dumped = await services.redis.dump(key) or b""
        if any(text.encode() in dumped + key for text in _spellings(secret)):
            found.append(key)
    return found


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """All that is logged while the test runs, down to the least line."""
    logs.configure("debug", "json")
    yield capsys
    with capsys.disabled():
        logs.configure("warning", "json")


async def test_a_secret_is_in_no_answer_no_row_no_key_and_no_line_of_the_log(
    world: World,
    services: Services,
    worker: WorkerProcess,
    site: Site,
    log: pytest.CaptureFixture[str],
) -> None:
    """Made, failed, shown, listed, run, changed and deleted; over it all, nobody reads it."""
    secret = "planted-secret-7f3a9c51e2"
    admin = await world.user("tenant_admin")
    bench, texts = Bench(admin), []

    async def asked(method: str, path: str, **more: Any) -> httpx.Response:
        answer = await admin(method, path, **more)
        texts.append(answer.text)
        return answer

    body = {**HOOK, "config": {"url": site.url}, "auth_config": {"token": secret}}
    headers = {"idempotency-key": "sealed"}
    tool_id = (await asked("POST", PATH, json=body, headers=headers)).json()["data"]["id"]
    await asked("POST", PATH, json=body, headers=headers)
    await asked("POST", PATH, json={**body, "auth_config": {"token": 1, secret: secret}})
    await asked("POST", PATH, json={**body, "auth_type": "basic"})
    for path in (f"{PATH}/{tool_id}", PATH, f"{PATH}/categories", "/api/v1/event-log"):
        await asked("GET", path)
    agent = f"/v1/agents/{await bench.agent()}/tools"
    override = {"auth_config": {"token": secret}}
    await asked("POST", agent, json={"tool_id": tool_id, "config_override": override})
    await asked("GET", agent)
    await asked("PATCH", f"{agent}/{tool_id}", json={"config_override": override})
    await asked("POST", f"{PATH}/{tool_id}/execute", json={"input": {"a": 1}})
    assert site.last.headers["Authorization"] == f"Bearer {secret}"
    await asked("GET", f"{PATH}/{tool_id}/executions")
    await asked("PUT", f"{PATH}/{tool_id}", json={"auth_config": {"token": secret}})
    assert await _columns_with(services, secret) == []
    assert await _keys_with(services, secret) == []
    await asked("DELETE", f"{PATH}/{tool_id}")
    await asked("GET", "/api/v1/event-log")
    # Only the name of a key that nobody knows is told back: it was no value.
    told = [text for text in texts if secret in text]
    assert len(told) <= 1
    assert all("auth_config." in text for text in told)
    heard: list[str] = []

    def was_logged() -> bool:
        heard.append(log.readouterr().err)
        return "tools.run" in "".join(heard)

    # The worker writes its line after the outcome, which is all that the caller waits for.
    await until(was_logged)
    lines = "".join(heard)
    assert secret not in lines


async def test_the_api_document_shows_no_auth_config_in_answers(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    telling = [name for name, one in schemas.items() if "auth_config" in one.get("properties", {})]
    assert telling
    assert all(name.startswith(("Create", "Update")) for name in telling), telling


# Delete


async def test_a_deleted_tool_is_gone_with_all_that_hung_on_it(
    developer: Client, services: Services, worker: WorkerProcess
) -> None:
    bench, credential_id = Bench(developer), await _credential(developer)
    made = await _create(developer)
    agent_id = await bench.agent()
    await developer.post(f"/v1/agents/{agent_id}/tools", {"tool_id": made["id"]})
    await bench.grant(credential_id, made["id"])
    await bench.run(made["id"], {"a": 1})
    answer = await developer.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    refused(await developer.get(f"{PATH}/{made['id']}"), 404, "tool_not_found")
    refused(await developer.delete(f"{PATH}/{made['id']}"), 404, "tool_not_found")
    assert (await developer.get(f"/v1/agents/{agent_id}/tools")).json() == {"data": []}
    assert (await developer.get(f"/api/v1/agents/{agent_id}")).json()["tools"] == []
    rules = await developer.get(f"/v1/credentials/{credential_id}/access")
    assert rules.json() == {"data": []}
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        counted = "SELECT count(*) FROM tool_executions WHERE tool_id = $1"
        assert await (await tx.raw()).fetchval(counted, made["id"]) == 0


async def test_of_two_deletes_at_once_one_finds_nothing(developer: Client) -> None:
    made = await _create(developer)
    answers = await asyncio.gather(*(developer.delete(f"{PATH}/{made['id']}") for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404]


async def test_a_deleted_tools_slug_is_free_again(developer: Client) -> None:
    made = await _create(developer)
    await developer.delete(f"{PATH}/{made['id']}")
    assert (await _create(developer))["slug"] == "echo"


# Events


async def test_what_happens_to_a_tool_is_told(developer: Client) -> None:
    made = await _create(developer)
    change = {"name": "New", "config": {"timeout_ms": 5}, "category": "automation"}
    await _put(developer, made["id"], change)
    await developer.delete(f"{PATH}/{made['id']}")
    common = {"tool_id": made["id"], "tool_type": "function"}
    created, updated, deleted = await _events(developer)
    assert created == ("system.tool.created", {**common, "name": "Echo"})
    assert updated[0] == "system.tool.updated"
    assert sorted(updated[1].pop("changed")) == ["config", "name"]
    assert updated[1] == {**common, "name": "New"}
    assert deleted == ("system.tool.deleted", {**common, "name": "New"})


async def test_a_new_auth_config_is_told_by_its_name_alone(developer: Client, hook: str) -> None:
    await _put(developer, hook, {"auth_config": {"token": "other"}})
    kind, data = (await _events(developer))[-1]
    assert (kind, data["changed"]) == ("system.tool.updated", ["auth_config"])
    assert "other" not in str(data)


@pytest.mark.parametrize("change", [{}, {"name": "Echo"}, {"config": dict(CONFIG)}])
async def test_a_change_of_nothing_is_not_told(developer: Client, change: dict[str, Any]) -> None:
    made = await _create(developer)
    before = await _get(developer, made["id"])
    told = await _put(developer, made["id"], change)
    assert told == before
    assert [kind for kind, _ in await _events(developer)] == ["system.tool.created"]


async def test_a_refused_tool_is_not_told(developer: Client) -> None:
    await developer.post(PATH, {**BODY, "config": {}})
    assert await _events(developer) == []


# Whose they are


@pytest.mark.parametrize("role", ["agent_developer", "tenant_admin"])
async def test_another_tenants_tool_is_not_there(
    developer: Client, world: World, role: str
) -> None:
    made = await _create(developer)
    stranger = await world.user(role)
    asked: list[tuple[str, str, object]] = [
        ("GET", "", None),
        ("PUT", "", {"name": "Mine"}),
        ("DELETE", "", None),
        ("POST", "/execute", {"input": {}}),
        ("GET", "/executions", None),
        ("GET", "/stats", None),
        ("POST", "/discover", None),
    ]
    for method, tail, body in asked:
        content = {} if body is None else {"json": body}
        answer = await stranger(method, f"{PATH}/{made['id']}{tail}", **content)
        refused(answer, 404, "tool_not_found")
    assert await _list(stranger) == []
    assert (await _get(developer, made["id"]))["name"] == "Echo"


async def test_super_admin_sees_and_changes_every_tenants_tools(
    developer: Client, super_admin: Client, services: Services, hook: str
) -> None:
    assert (await _get(super_admin, hook))["id"] == hook
    await _put(super_admin, hook, {"auth_config": {"token": "from above"}})
    assert await _auth(services, hook) == b'{"token":"from above"}'
    narrowed = await super_admin.get(PATH, headers={"x-tenant-id": developer.tenant_id})
    assert [item["id"] for item in narrowed.json()["data"]] == [hook]


async def test_super_admin_makes_a_tool_where_the_header_says(
    developer: Client, super_admin: Client
) -> None:
    headers = {"x-tenant-id": developer.tenant_id}
    answer = await super_admin.post(PATH, BODY, headers=headers)
    assert answer.status_code == 201
    assert (await _get(developer, answer.json()["data"]["id"]))["name"] == "Echo"


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
@pytest.mark.parametrize(
    ("method", "tail", "needed"),
    [
        ("POST", "", "tools:write"),
        ("PUT", "/{}", "tools:write"),
        ("DELETE", "/{}", "tools:delete"),
        ("POST", "/{}/execute", "tools:execute"),
        ("POST", "/{}/discover", "tools:execute"),
    ],
)
async def test_who_only_reads_sees_tools_and_changes_none(
    developer: Client, world: World, role: str, method: str, tail: str, needed: str
) -> None:
    made = await _create(developer)
    caller = await world.user(role, developer.tenant_id)
    content = {} if method == "DELETE" else {"json": BODY}
    answer = await caller(method, PATH + tail.format(made["id"]), **content)
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": needed, "your_role": role}
    assert [item["id"] for item in await _list(caller)] == [made["id"]]
    assert (await _get(caller, made["id"]))["config"] == CONFIG


async def test_without_a_login_there_are_no_tools(anonymous: Client) -> None:
    for path in (PATH, f"{PATH}/categories", f"{PATH}/{NO_TOOL}"):
        refused(await anonymous.get(path), 401, "unauthorized")
