"""/api/v1/tenants: super_admin's alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from app import bootstrap
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import InstanceState, Tenant, User
from db.session import ALL_TENANTS
from tests.world import Client, World

PATH = "/api/v1/tenants"
KEYS = {"id", "name", "plan", "limits", "created_at"}


async def _create(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, {"name": "Acme", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _make(services: Services, *names: str, plan: str = "free") -> list[str]:
    """Tenants the short way: all at the very same moment, so that lists have ties."""
    now = clock.now()
    rows = [
        Tenant(id=new_id("ten"), name=name, plan=plan, limits={}, created_at=now) for name in names
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)
    return [row.id for row in rows]


async def _names(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["data"]]


@pytest.fixture
def mark() -> str:
    """A word that only this test's tenants have in their names."""
    return new_id("mark")


# Create


async def test_a_tenant_is_created_with_just_a_name(super_admin: Client) -> None:
    made = await _create(super_admin, name="Acme")
    assert set(made) == KEYS
    assert (made["name"], made["plan"], made["limits"]) == ("Acme", "free", {})
    assert made["id"].startswith("ten_")


async def test_times_are_told_in_utc(super_admin: Client) -> None:
    made = await _create(super_admin)
    assert made["created_at"].endswith("Z")
    age = clock.now() - datetime.fromisoformat(made["created_at"])
    assert abs(age.total_seconds()) < 60


@pytest.mark.parametrize("plan", ["free", "pro", "team", "enterprise"])
async def test_a_tenant_is_created_on_any_plan(super_admin: Client, plan: str) -> None:
    assert (await _create(super_admin, plan=plan))["plan"] == plan


async def test_an_enterprise_tenant_has_limits_of_its_own(super_admin: Client) -> None:
    limits = {
        "requests_per_minute": 2400,
        "requests_per_hour": 100_000,
        "requests_per_day": 1_000_000,
        "workflow_executions_per_minute": 600,
        "concurrent_executions": 100,
        "burst_multiplier": 3,
        "burst_seconds": 30,
    }
    assert (await _create(super_admin, plan="enterprise", limits=limits))["limits"] == limits


async def test_fields_that_cannot_be_set_have_no_effect(super_admin: Client) -> None:
    made = await _create(super_admin, id="ten_mine", created_at="2000-01-01T00:00:00Z")
    assert made["id"] != "ten_mine"
    assert not made["created_at"].startswith("2000")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": " \t"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"name": "a", "plan": "gold"}, "plan"),
        ({"name": "a", "plan": None}, "plan"),
        ({"name": "a", "limits": []}, "limits"),
        ({"name": "a", "plan": "pro", "limits": {"burst_seconds": 5}}, "limits"),
        ({"name": "a", "limits": {"requests_per_minute": 0}}, "limits.requests_per_minute"),
        ({"name": "a", "limits": {"requests_per_minute": "5"}}, "limits.requests_per_minute"),
        ({"name": "a", "limits": {"requests_per_day": 10**12}}, "limits.requests_per_day"),
        ({"name": "a", "limits": {"burst_multiplier": 101}}, "limits.burst_multiplier"),
        ({"name": "a", "limits": {"burst_seconds": 3601}}, "limits.burst_seconds"),
        ({"name": "a", "limits": {"concurrent_executions": 1.5}}, "limits.concurrent_executions"),
    ],
)
async def test_a_wrong_field_is_named(
    super_admin: Client, body: dict[str, Any], field: str
) -> None:
    answer = await super_admin.post(PATH, body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {field}


async def test_a_name_may_have_a_hundred_characters(super_admin: Client) -> None:
    assert (await _create(super_admin, name="ü" * 100))["name"] == "ü" * 100


async def test_creating_is_told_in_the_new_tenants_log(super_admin: Client) -> None:
    made = await _create(super_admin, name="Acme", plan="team")
    narrowed = {"x-tenant-id": made["id"]}
    log = (await super_admin.get("/api/v1/event-log", headers=narrowed)).json()["data"]
    assert [(entry["type"], entry["data"]) for entry in log] == [
        ("system.tenant.created", {"tenant_id": made["id"], "name": "Acme", "plan": "team"})
    ]


# Get


async def test_a_tenant_is_shown_as_it_was_created(super_admin: Client) -> None:
    made = await _create(super_admin, plan="enterprise", limits={"burst_seconds": 9})
    assert (await super_admin.get(f"{PATH}/{made['id']}")).json() == made


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_tenant_that_does_not_exist_is_404(super_admin: Client, method: str) -> None:
    content = {"json": {"name": "New"}} if method == "PUT" else {}
    answer = await super_admin(method, f"{PATH}/ten_nothing", **content)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "tenant_not_found"


# List


async def test_a_list_is_data_and_pagination(
    super_admin: Client, services: Services, mark: str
) -> None:
    await _make(services, mark)
    answer = await super_admin.get(PATH, params={"search": mark})
    assert set(answer.json()) == {"data", "pagination"}
    assert set(answer.json()["data"][0]) == KEYS
    assert answer.json()["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}


async def test_a_list_with_nothing_in_it_has_no_pages(super_admin: Client, mark: str) -> None:
    answer = await super_admin.get(PATH, params={"search": mark})
    assert answer.json() == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_the_last_page_holds_the_rest(
    super_admin: Client, services: Services, mark: str
) -> None:
    await _make(services, *(f"{mark} {number}" for number in range(5)))
    answer = await super_admin.get(PATH, params={"search": mark, "page": 3, "per_page": 2})
    assert len(answer.json()["data"]) == 1
    assert answer.json()["pagination"] == {"page": 3, "per_page": 2, "total": 5, "total_pages": 3}


async def test_a_page_past_the_end_is_empty(
    super_admin: Client, services: Services, mark: str
) -> None:
    await _make(services, mark)
    answer = await super_admin.get(PATH, params={"search": mark, "page": 10_000_000})
    assert answer.json()["data"] == []
    assert answer.json()["pagination"]["total"] == 1


@pytest.mark.parametrize("per_page", [1, 100])
async def test_a_page_holds_one_to_a_hundred(super_admin: Client, per_page: int) -> None:
    answer = await super_admin.get(PATH, params={"per_page": per_page})
    assert answer.json()["pagination"]["per_page"] == per_page


@pytest.mark.parametrize("name", ["page", "per_page"])
@pytest.mark.parametrize("value", ["0", "-1", "abc", "", "1.5", "99999999999999999999"])
async def test_a_page_out_of_bounds_is_named(super_admin: Client, name: str, value: str) -> None:
    answer = await super_admin.get(PATH, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {name}


async def test_more_than_a_hundred_on_a_page_is_refused(super_admin: Client) -> None:
    answer = await super_admin.get(PATH, params={"per_page": 101})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"per_page"}


async def test_the_newest_come_first(super_admin: Client, mark: str) -> None:
    for number in range(3):
        await _create(super_admin, name=f"{mark} {number}")
    assert await _names(super_admin, search=mark) == [f"{mark} {n}" for n in (2, 1, 0)]


@pytest.mark.parametrize(
    ("sort", "order"), [("created_at", "012"), ("-created_at", "210"), ("name", "012")]
)
async def test_a_list_is_sorted_as_asked(
    super_admin: Client, mark: str, sort: str, order: str
) -> None:
    for number in range(3):
        await _create(super_admin, name=f"{mark} {number}")
    assert await _names(super_admin, search=mark, sort=sort) == [f"{mark} {n}" for n in order]


async def test_a_minus_sorts_the_other_way_round(
    super_admin: Client, services: Services, mark: str
) -> None:
    await _make(services, f"{mark} b", f"{mark} c", f"{mark} a")
    assert await _names(super_admin, search=mark, sort="-name") == [f"{mark} {x}" for x in "cba"]


async def test_a_list_is_sorted_by_plan(super_admin: Client, mark: str) -> None:
    for plan in ("team", "free", "pro"):
        await _create(super_admin, name=f"{mark} {plan}", plan=plan)
    found = await _names(super_admin, search=mark, sort="plan")
    assert found == [f"{mark} {plan}" for plan in ("free", "pro", "team")]


@pytest.mark.parametrize(
    "sort", ["limits", "id; drop", "-", "--name", "+name", "Name", "name,plan"]
)
async def test_an_unknown_sort_field_is_named(super_admin: Client, sort: str) -> None:
    answer = await super_admin.get(PATH, params={"sort": sort})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"sort"}


@pytest.mark.parametrize("sort", ["name", "-name", "plan", "-plan", "created_at", "-created_at"])
async def test_pages_of_equal_rows_neither_repeat_nor_skip(
    super_admin: Client, services: Services, mark: str, sort: str
) -> None:
    made = await _make(services, *[mark] * 7)
    found = []
    for page in range(1, 5):
        params = {"search": mark, "sort": sort, "page": page, "per_page": 2}
        answer = await super_admin.get(PATH, params=params)
        found += [item["id"] for item in answer.json()["data"]]
    assert sorted(found) == sorted(made)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
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
    ],
)
async def test_search_takes_text_as_it_is(
    super_admin: Client, services: Services, search: str, expected: list[str]
) -> None:
    names = ["100% off", "snake_case", "a/b", "a\\b", "o'brien", "plain"]
    ours = set(await _make(services, *names))
    answer = await super_admin.get(PATH, params={"search": search, "per_page": 100})
    found = [item["name"] for item in answer.json()["data"] if item["id"] in ours]
    assert found == expected


async def test_an_empty_search_finds_everything(super_admin: Client, services: Services) -> None:
    await _make(services, "one", "two")
    answer = await super_admin.get(PATH, params={"search": ""})
    assert answer.json()["pagination"]["total"] >= 2


async def test_a_search_that_is_too_long_is_named(super_admin: Client) -> None:
    answer = await super_admin.get(PATH, params={"search": "x" * 201})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"search"}


async def test_a_list_can_be_of_one_plan(
    super_admin: Client, services: Services, mark: str
) -> None:
    await _make(services, f"{mark} a", plan="team")
    await _make(services, f"{mark} b", plan="pro")
    assert await _names(super_admin, search=mark, plan="team") == [f"{mark} a"]


async def test_an_unknown_plan_is_named(super_admin: Client) -> None:
    answer = await super_admin.get(PATH, params={"plan": "gold"})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"plan"}


@contextmanager
def _statements(services: Services) -> Iterator[list[str]]:
    """What SQLAlchemy sends while this is open."""
    sent: list[str] = []
    engine = services.db.engine.sync_engine

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_fifty_on_a_page_take_as_many_statements_as_five(
    super_admin: Client, services: Services, mark: str
) -> None:
    await _make(services, *[mark] * 50)
    counts = []
    for per_page in (5, 50):
        with _statements(services) as sent:
            assert len(await _names(super_admin, search=mark, per_page=per_page)) == per_page
        counts.append(len(sent))
    assert counts == [2, 2]


# Change


@pytest.mark.parametrize(
    "change", [{"name": "New"}, {"plan": "pro"}, {"limits": {"burst_seconds": 7}}, {}]
)
async def test_what_is_left_out_stays_as_it_was(
    super_admin: Client, change: dict[str, Any]
) -> None:
    fields = {"name": "Old", "plan": "enterprise", "limits": {}}
    made = await _create(super_admin, **fields)
    answer = await super_admin.put(f"{PATH}/{made['id']}", change)
    assert answer.status_code == 200
    assert answer.json() == {**made, **change}


async def test_a_change_is_there_when_it_is_read_again(super_admin: Client) -> None:
    made = await _create(super_admin)
    changed = await super_admin.put(f"{PATH}/{made['id']}", {"name": "New", "plan": "team"})
    assert (await super_admin.get(f"{PATH}/{made['id']}")).json() == changed.json()


async def test_new_limits_take_the_place_of_all_old_ones(super_admin: Client) -> None:
    made = await _create(super_admin, plan="enterprise", limits={"burst_seconds": 7})
    answer = await super_admin.put(
        f"{PATH}/{made['id']}", {"limits": {"requests_per_minute": 5000}}
    )
    assert answer.json()["limits"] == {"requests_per_minute": 5000}


@pytest.mark.parametrize("plan", ["free", "pro", "team"])
async def test_limits_are_for_the_enterprise_plan_only(super_admin: Client, plan: str) -> None:
    made = await _create(super_admin, plan=plan)
    answer = await super_admin.put(f"{PATH}/{made['id']}", {"limits": {"burst_seconds": 7}})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"limits"}


async def test_plan_and_limits_can_change_together(super_admin: Client) -> None:
    made = await _create(super_admin, plan="free")
    change = {"plan": "enterprise", "limits": {"requests_per_minute": 5000}}
    answer = await super_admin.put(f"{PATH}/{made['id']}", change)
    assert answer.json() == {**made, **change}


async def test_a_refused_change_changes_nothing(super_admin: Client) -> None:
    made = await _create(super_admin, name="Old", plan="pro")
    change = {"name": "New", "limits": {"burst_seconds": 7}}
    await super_admin.put(f"{PATH}/{made['id']}", change)
    assert (await super_admin.get(f"{PATH}/{made['id']}")).json() == made


@pytest.mark.parametrize(
    ("change", "field"), [({"name": ""}, "name"), ({"plan": "x"}, "plan"), ({"name": None}, "name")]
)
async def test_a_wrong_field_of_a_change_is_named(
    super_admin: Client, change: dict[str, Any], field: str
) -> None:
    made = await _create(super_admin)
    answer = await super_admin.put(f"{PATH}/{made['id']}", change)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


async def test_the_id_of_a_tenant_cannot_be_changed(super_admin: Client) -> None:
    made = await _create(super_admin)
    answer = await super_admin.put(f"{PATH}/{made['id']}", {"id": "ten_other"})
    assert answer.json()["id"] == made["id"]


async def test_a_change_is_told_in_the_tenants_log(super_admin: Client, admin: Client) -> None:
    await super_admin.put(f"{PATH}/{admin.tenant_id}", {"name": "New"})
    log = (await admin.get("/api/v1/event-log")).json()["data"]
    assert [(entry["type"], entry["data"]) for entry in log] == [
        ("system.tenant.updated", {"tenant_id": admin.tenant_id, "changed": ["name"]})
    ]


# Limits in force


async def _limit(caller: Client) -> int:
    return int((await caller.get("/auth/me")).headers["x-ratelimit-limit"])


async def test_changed_limits_hold_on_the_tenants_next_request(
    super_admin: Client, developer: Client
) -> None:
    before = await _limit(developer)
    change = {"limits": {"requests_per_minute": 77}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    assert (before, await _limit(developer)) == (1_000_000, 77)


async def test_a_lowered_limit_refuses_at_once(super_admin: Client, developer: Client) -> None:
    for _ in range(3):
        await developer.get("/auth/me")
    change = {"limits": {"requests_per_minute": 3, "burst_multiplier": 1}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    answer: httpx.Response = await developer.get("/auth/me")
    assert answer.status_code == 429
    assert answer.json()["error"]["details"]["limit"] == 3


@pytest.mark.parametrize(
    ("plan", "limit"), [("free", 60), ("pro", 300), ("team", 600), ("enterprise", 1_000_000)]
)
async def test_a_changed_plan_holds_on_the_tenants_next_request(
    super_admin: Client, developer: Client, plan: str, limit: int
) -> None:
    """The tenant's own limits count on the enterprise plan only."""
    await developer.get("/auth/me")
    await super_admin.put(f"{PATH}/{developer.tenant_id}", {"plan": plan})
    assert await _limit(developer) == limit


async def test_changed_limits_hold_when_redis_has_forgotten_them(
    super_admin: Client, developer: Client, services: Services
) -> None:
    change = {"limits": {"requests_per_minute": 77}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    await services.redis.flushall()
    assert await _limit(developer) == 77


async def test_a_refused_change_leaves_the_limits_in_force(
    super_admin: Client, developer: Client
) -> None:
    change = {"plan": "pro", "limits": {"requests_per_minute": 77}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    assert await _limit(developer) == 1_000_000


# Delete


async def test_an_empty_tenant_is_deleted(super_admin: Client) -> None:
    made = await _create(super_admin)
    answer = await super_admin.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_deleted_tenant_is_gone(super_admin: Client) -> None:
    made = await _create(super_admin)
    await super_admin.delete(f"{PATH}/{made['id']}")
    assert (await super_admin.get(f"{PATH}/{made['id']}")).status_code == 404


async def test_a_tenant_with_users_is_not_deleted(super_admin: Client, developer: Client) -> None:
    answer = await super_admin.delete(f"{PATH}/{developer.tenant_id}")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "tenant_not_empty"


async def test_a_tenant_whose_users_are_all_inactive_is_not_deleted(
    super_admin: Client, developer: Client, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(User, developer.user_id)).status = "inactive"
    answer = await super_admin.delete(f"{PATH}/{developer.tenant_id}")
    assert answer.status_code == 409


async def test_a_tenant_with_users_is_not_deleted_from_within_another(
    super_admin: Client, developer: Client, services: Services
) -> None:
    """X-Tenant-ID must not hide the users that stand in the way."""
    narrowed = {"x-tenant-id": super_admin.tenant_id}
    await super_admin.delete(f"{PATH}/{developer.tenant_id}", headers=narrowed)
    async with services.db.tx(ALL_TENANTS) as tx:
        assert await (await tx.session()).get(User, developer.user_id) is not None


async def test_there_is_always_a_tenant_for_people_without_an_invitation(
    super_admin: Client, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        default = await bootstrap.default_tenant(tx, "free")
    try:
        await super_admin.delete(f"{PATH}/{default}")
        async with services.db.tx(ALL_TENANTS) as tx:
            named = await bootstrap.default_tenant(tx, "free")
            assert await (await tx.session()).get(Tenant, named) is not None
    finally:
        await _restore_default(services, default)


async def _restore_default(services: Services, tenant_id: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        if await session.get(Tenant, tenant_id) is None:
            session.add(Tenant(id=tenant_id, name="Default", plan="enterprise", limits={}))
        (await session.get_one(InstanceState, "default_tenant")).value = tenant_id


# Who may


@pytest.mark.parametrize("role", ["tenant_admin", "agent_developer", "agent_user", "viewer"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_nobody_else_reaches_even_their_own_tenant(
    world: World, role: str, method: str
) -> None:
    caller = await world.user(role)
    content = {"json": {"plan": "enterprise"}} if method == "PUT" else {}
    answer = await caller(method, f"{PATH}/{caller.tenant_id}", **content)
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "admin:tenants", "your_role": role}
