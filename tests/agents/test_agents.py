"""/api/v1/agents: list, create, get, change, delete, status and figures."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import Agent
from db.session import ALL_TENANTS
from tests.model_server import Reply
from tests.talk import Talker
from tests.world import Client, World

PATH = "/api/v1/agents"
BODY = {"name": "Shop", "primary_model": "gpt-4o", "system_prompt": "You help."}
SUMMARY_KEYS = {
    "id",
    "name",
    "description",
    "primary_model",
    "status",
    "temperature",
    "created_at",
    "updated_at",
}
AGENT_KEYS = SUMMARY_KEYS | {"system_prompt", "max_tokens", "version"}
FULL_KEYS = AGENT_KEYS | {"tools", "knowledge_base", "sub_agents"}
STATUSES = ["draft", "published", "archived"]
FOREIGN_KEYS = {"tenant_id": "ten_other", "id": "agt_mine", "version": 7, "parent_id": "agt_x"}


async def _create(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _make(
    services: Services, tenant_id: str, *names: str, status: str = "draft"
) -> list[str]:
    """Agents the short way: all at the very same moment, so that lists have ties."""
    now = clock.now()
    rows = [
        Agent(
            id=new_id("agt"),
            tenant_id=tenant_id,
            name=name,
            primary_model="gpt-4o",
            provider="openai",
            system_prompt="You help.",
            status=status,
            created_at=now,
            updated_at=now,
        )
        for name in names
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)
    return [row.id for row in rows]


async def _names(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["data"]]


async def _log(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    """The event log, the oldest first."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    assert answer.status_code == 200, answer.text
    return [(entry["type"], entry["data"]) for entry in reversed(answer.json()["data"])]


async def _row(services: Services, agent_id: str) -> dict[str, Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        found = await (await tx.raw()).fetchrow("SELECT * FROM agents WHERE id = $1", agent_id)
    return dict(found)


async def _count(services: Services, table: str, column: str, value: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = f"SELECT count(*) FROM {table} WHERE {column} = $1"
        return int(await (await tx.raw()).fetchval(sql, value))


# List


async def test_a_tenant_without_agents_has_an_empty_list(developer: Client) -> None:
    answer = await developer.get(PATH)
    assert answer.json() == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_a_list_has_exactly_the_fields_of_a_summary(developer: Client) -> None:
    made = await _create(developer, description="Sells", temperature=0.3, status="published")
    found = (await developer.get(PATH)).json()["data"]
    assert found == [{name: made[name] for name in SUMMARY_KEYS}]


async def test_twenty_are_on_a_page_unless_told_otherwise(
    developer: Client, services: Services
) -> None:
    await _make(services, developer.tenant_id, *["x"] * 21)
    answer = (await developer.get(PATH)).json()
    assert len(answer["data"]) == 20
    assert answer["pagination"] == {"page": 1, "per_page": 20, "total": 21, "total_pages": 2}


async def test_the_last_page_holds_the_rest(developer: Client, services: Services) -> None:
    await _make(services, developer.tenant_id, *"abcde")
    answer = (await developer.get(PATH, params={"page": 3, "per_page": 2})).json()
    assert len(answer["data"]) == 1
    assert answer["pagination"] == {"page": 3, "per_page": 2, "total": 5, "total_pages": 3}


async def test_a_page_past_the_end_is_empty(developer: Client) -> None:
    await _create(developer)
    answer = (await developer.get(PATH, params={"page": 9})).json()
    assert (answer["data"], answer["pagination"]["total"]) == ([], 1)


@pytest.mark.parametrize("per_page", [1, 100])
async def test_a_page_holds_one_to_a_hundred(
    developer: Client, services: Services, per_page: int
) -> None:
    await _make(services, developer.tenant_id, *["x"] * 101)
    answer = (await developer.get(PATH, params={"per_page": per_page})).json()
    assert len(answer["data"]) == per_page
    assert answer["pagination"]["per_page"] == per_page


@pytest.mark.parametrize(
    ("name", "value"),
    [
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
    ],
)
async def test_a_wrong_parameter_is_named(developer: Client, name: str, value: str) -> None:
    answer = await developer.get(PATH, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {name}


@pytest.mark.parametrize(
    ("search", "expected"),
    [
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
    ],
)
async def test_search_takes_text_as_it_is_and_looks_in_names_only(
    developer: Client, services: Services, search: str, expected: list[str]
) -> None:
    names = ["100% off", "snake_case", "a/b", "a\\b", "o'brien", "Über", "plain"]
    await _make(services, developer.tenant_id, *names)
    assert await _names(developer, search=search) == expected


async def test_an_empty_search_finds_everything(developer: Client, services: Services) -> None:
    await _make(services, developer.tenant_id, "one", "two")
    assert sorted(await _names(developer, search="")) == ["one", "two"]


@pytest.mark.parametrize("status", STATUSES)
async def test_a_list_can_be_of_one_status(
    developer: Client, services: Services, status: str
) -> None:
    for each in STATUSES:
        await _make(services, developer.tenant_id, each, status=each)
    assert await _names(developer, status=status) == [status]


async def test_archived_agents_are_listed_unless_told_otherwise(
    developer: Client, services: Services
) -> None:
    for each in STATUSES:
        await _make(services, developer.tenant_id, each, status=each)
    assert sorted(await _names(developer)) == sorted(STATUSES)


async def test_search_status_and_paging_go_together(developer: Client, services: Services) -> None:
    await _make(services, developer.tenant_id, "ax", "ay", "b", status="published")
    await _make(services, developer.tenant_id, "az", status="draft")
    params = {"search": "a", "status": "published", "per_page": 1, "sort": "-name"}
    answer = (await developer.get(PATH, params=params)).json()
    assert [item["name"] for item in answer["data"]] == ["ay"]
    assert answer["pagination"] == {"page": 1, "per_page": 1, "total": 2, "total_pages": 2}


async def test_the_newest_come_first(developer: Client) -> None:
    for name in "abc":
        await _create(developer, name=name)
    assert await _names(developer) == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("name", "abc"),
        ("-name", "cba"),
        ("created_at", "bac"),
        ("-created_at", "cab"),
        ("updated_at", "acb"),
        ("-updated_at", "bca"),
        ("status", "cab"),
        ("-status", "bac"),
    ],
)
async def test_a_list_is_sorted_as_asked(developer: Client, sort: str, expected: str) -> None:
    made = {name: await _create(developer, name=name) for name in "bac"}
    # The one that was made first is changed last.
    for name, status in (("a", "draft"), ("c", "archived"), ("b", "published")):
        change = {"description": "touched", "status": status}
        await developer.put(f"{PATH}/{made[name]['id']}", change)
    assert await _names(developer, sort=sort) == list(expected)


@pytest.mark.parametrize("sort", ["name", "-name", "status", "-created_at", "updated_at"])
async def test_pages_of_equal_rows_neither_repeat_nor_skip(
    developer: Client, services: Services, sort: str
) -> None:
    made = await _make(services, developer.tenant_id, *["same"] * 7)
    found = []
    for page in range(1, 5):
        answer = await developer.get(PATH, params={"sort": sort, "page": page, "per_page": 2})
        found += [item["id"] for item in answer.json()["data"]]
    assert sorted(found) == sorted(made)


async def test_direct_sub_agents_are_in_no_list(developer: Client) -> None:
    parent = await _create(developer, name="Parent")
    body = {**BODY, "name": "Helper"}
    made = await developer.post(f"{PATH}/{parent['id']}/sub-agents/direct", body)
    assert made.status_code == 201
    answer = (await developer.get(PATH)).json()
    assert [item["id"] for item in answer["data"]] == [parent["id"]]
    assert answer["pagination"]["total"] == 1
    assert await _names(developer, search="Helper") == []


async def test_a_list_is_of_ones_own_tenant(developer: Client, world: World) -> None:
    stranger = await world.user()
    await _create(stranger, name="Theirs")
    await _create(developer, name="Ours")
    assert await _names(developer) == ["Ours"]


async def test_super_admin_lists_one_tenant_by_its_header(
    super_admin: Client, developer: Client
) -> None:
    await _create(developer, name="Theirs")
    answer = await super_admin.get(PATH, headers={"x-tenant-id": developer.tenant_id})
    assert [item["name"] for item in answer.json()["data"]] == ["Theirs"]


# Create


async def test_an_agent_is_created_with_just_what_is_required(developer: Client) -> None:
    made = await _create(developer)
    assert set(made) == AGENT_KEYS
    assert made["id"].startswith("agt_")
    assert len(made["id"]) == len("agt_") + 26
    expected = {
        **BODY,
        "description": "",
        "temperature": 0.7,
        "max_tokens": 2048,
        "status": "draft",
        "version": 1,
    }
    assert {name: made[name] for name in expected} == expected


async def test_an_agent_is_created_with_every_field(developer: Client) -> None:
    fields = {
        "name": "Über-Agent",
        "description": "Two\nlines",
        "primary_model": "anthropic/claude-x",
        "system_prompt": "First\nSecond",
        "temperature": 0.25,
        "max_tokens": 77,
        "status": "published",
    }
    made = await _create(developer, **fields)
    assert {name: made[name] for name in fields} == fields


async def test_times_are_told_in_utc(developer: Client) -> None:
    made = await _create(developer)
    assert made["created_at"].endswith("Z")
    assert made["updated_at"].endswith("Z")
    age = clock.now() - datetime.fromisoformat(made["created_at"])
    assert abs(age.total_seconds()) < 60


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "x"),
        ("name", "ü" * 100),
        ("description", ""),
        ("description", "x" * 2000),
        ("primary_model", "m"),
        ("primary_model", "x" * 200),
        ("system_prompt", "x" * 100_000),
        ("temperature", 0),
        ("temperature", 0.0),
        ("temperature", 1),
        ("temperature", 1.0),
        ("max_tokens", 1),
        ("max_tokens", 1_000_000),
        ("status", "draft"),
        ("status", "published"),
    ],
)
async def test_the_bounds_themselves_are_allowed(
    developer: Client, field: str, value: object
) -> None:
    made = await _create(developer, **{field: value})
    assert (await developer.get(f"{PATH}/{made['id']}")).json()[field] == value


WRONG = [
    ("name", ""),
    ("name", "x" * 101),
    ("name", "   "),
    ("name", "two\nlines"),
    ("name", "a\x00b"),
    ("name", None),
    ("name", 5),
    ("description", "x" * 2001),
    ("description", None),
    ("primary_model", ""),
    ("primary_model", " "),
    ("primary_model", "x" * 201),
    ("primary_model", None),
    ("system_prompt", ""),
    ("system_prompt", " \n\t"),
    ("system_prompt", "x" * 100_001),
    ("system_prompt", None),
    ("temperature", -0.01),
    ("temperature", 1.01),
    ("temperature", "0.5"),
    ("temperature", None),
    ("temperature", True),
    ("max_tokens", 0),
    ("max_tokens", -1),
    ("max_tokens", 1_000_001),
    ("max_tokens", 1.5),
    ("max_tokens", "10"),
    ("max_tokens", None),
    ("max_tokens", True),
    ("status", "Published"),
    ("status", ""),
    ("status", None),
]


@pytest.mark.parametrize(("field", "value"), [*WRONG, ("status", "archived")])
async def test_a_wrong_field_of_a_new_agent_is_named(
    developer: Client, field: str, value: object
) -> None:
    answer = await developer.post(PATH, {**BODY, field: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {field}
    assert await _names(developer) == []


@pytest.mark.parametrize("field", ["name", "primary_model"])
async def test_a_line_break_at_the_end_is_no_part_of_one_line(
    developer: Client, field: str
) -> None:
    answer = await developer.post(PATH, {**BODY, field: "Shop\n"})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


async def test_every_missing_field_is_named_at_once(developer: Client) -> None:
    answer = await developer.post(PATH, {"temperature": 5})
    assert answer.status_code == 422
    named = set(answer.json()["error"]["details"])
    assert named == {"name", "primary_model", "system_prompt", "temperature"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe"])
async def test_a_body_that_is_no_object_is_refused(developer: Client, content: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = await developer("POST", PATH, content=content, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"


async def test_unknown_fields_are_ignored(developer: Client) -> None:
    made = await _create(developer, colour="red", tools=[{"id": "x"}], sub_agents=["y"])
    assert set(made) == AGENT_KEYS
    found = (await developer.get(f"{PATH}/{made['id']}")).json()
    assert (found["tools"], found["sub_agents"]) == ([], [])


@pytest.mark.parametrize(("field", "value"), FOREIGN_KEYS.items())
async def test_what_is_not_the_callers_to_say_cannot_be_created(
    developer: Client, services: Services, field: str, value: object
) -> None:
    made = await _create(developer, **{field: value}, provider="anthropic", retention_days=1)
    row = await _row(services, made["id"])
    assert row[field] != value
    assert row["tenant_id"] == developer.tenant_id
    assert row["provider"] == "openai"
    assert row["retention_days"] == 365


async def test_created_at_cannot_be_set(developer: Client) -> None:
    made = await _create(developer, created_at="2000-01-01T00:00:00Z", updated_at="2000-01-01")
    assert not made["created_at"].startswith("2000")
    assert not made["updated_at"].startswith("2000")


async def test_two_agents_may_have_the_same_name(developer: Client) -> None:
    first, second = await _create(developer), await _create(developer)
    assert first["id"] != second["id"]


async def test_super_admin_creates_in_the_tenant_of_the_header(
    super_admin: Client, developer: Client
) -> None:
    headers = {"x-tenant-id": developer.tenant_id}
    made = await super_admin.post(PATH, BODY, headers=headers)
    assert made.status_code == 201
    assert (await developer.get(f"{PATH}/{made.json()['id']}")).status_code == 200


async def test_the_same_idempotency_key_creates_one_agent(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    first = await developer.post(PATH, BODY, headers=headers)
    second = await developer.post(PATH, BODY, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert await _names(developer) == ["Shop"]


async def test_the_same_idempotency_key_at_the_same_time_creates_one_agent(
    developer: Client,
) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    answers = await asyncio.gather(*(developer.post(PATH, BODY, headers=headers) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert await _names(developer) == ["Shop"]


async def test_an_idempotency_key_with_another_body_is_refused(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    await developer.post(PATH, BODY, headers=headers)
    answer = await developer.post(PATH, {**BODY, "name": "Other"}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_mismatch"
    assert await _names(developer) == ["Shop"]


async def test_a_refused_create_does_not_use_up_its_idempotency_key(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    wrong = await developer.post(PATH, {**BODY, "name": ""}, headers=headers)
    right = await developer.post(PATH, BODY, headers=headers)
    assert (wrong.status_code, right.status_code) == (422, 201)


# Get


async def test_a_full_agent_has_every_field(developer: Client) -> None:
    made = await _create(developer, description="Sells", status="published")
    answer = await developer.get(f"{PATH}/{made['id']}")
    assert answer.status_code == 200
    assert set(answer.json()) == FULL_KEYS
    assert answer.json() == {
        **made,
        "tools": [],
        "knowledge_base": {"enabled": False, "document_count": 0, "chunk_count": 0},
        "sub_agents": [],
    }


async def test_a_full_agent_names_its_sub_agents_in_order(developer: Client) -> None:
    parent, other = await _create(developer, name="P"), await _create(developer, name="Other")
    path = f"{PATH}/{parent['id']}"
    attached = await developer.post(f"{path}/sub-agents/attach", {"agent_id": other["id"]})
    direct = await developer.post(f"{path}/sub-agents/direct", {**BODY, "name": "Own"})
    assert (attached.status_code, direct.status_code) == (201, 201)
    assert (await developer.get(path)).json()["sub_agents"] == [
        {"id": other["id"], "name": "Other", "relationship_type": "template"},
        {"id": direct.json()["id"], "name": "Own", "relationship_type": "direct"},
    ]


@pytest.mark.parametrize("bad_id", ["agt_00000000000000000000000000", "x", "x" * 3000, "%25"])
@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("GET", "/status"),
        ("GET", "/stats"),
        ("GET", "/logs"),
        ("GET", "/conversations"),
    ],
)
async def test_a_missing_agent_is_not_found(
    developer: Client, method: str, tail: str, bad_id: str
) -> None:
    content = {"json": {"name": "New"}} if method == "PUT" else {}
    answer = await developer(method, f"{PATH}/{bad_id}{tail}", **content)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "agent_not_found"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_another_tenants_agent_is_not_found(
    developer: Client, world: World, method: str
) -> None:
    owner = await world.user()
    made = await _create(owner)
    content = {"json": {"name": "Mine"}} if method == "PUT" else {}
    answer = await developer(method, f"{PATH}/{made['id']}", **content)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "agent_not_found"
    assert (await owner.get(f"{PATH}/{made['id']}")).json()["name"] == "Shop"


async def test_super_admin_reaches_any_agent_but_not_past_a_narrowing_header(
    super_admin: Client, developer: Client
) -> None:
    made = await _create(developer)
    narrowed = {"x-tenant-id": super_admin.tenant_id}
    assert (await super_admin.get(f"{PATH}/{made['id']}")).status_code == 200
    assert (await super_admin.get(f"{PATH}/{made['id']}", headers=narrowed)).status_code == 404


@pytest.mark.parametrize(
    ("role", "method", "required"),
    [
        ("viewer", "POST", "agents:write"),
        ("viewer", "PUT", "agents:write"),
        ("viewer", "DELETE", "agents:delete"),
        ("agent_user", "POST", "agents:write"),
        ("agent_user", "PUT", "agents:write"),
        ("agent_user", "DELETE", "agents:delete"),
    ],
)
async def test_who_only_reads_changes_nothing(
    world: World, developer: Client, role: str, method: str, required: str
) -> None:
    made = await _create(developer)
    caller = await world.user(role, developer.tenant_id)
    path = PATH if method == "POST" else f"{PATH}/{made['id']}"
    content = {} if method == "DELETE" else {"json": BODY}
    answer = await caller(method, path, **content)
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": required, "your_role": role}
    assert (await caller.get(f"{PATH}/{made['id']}")).status_code == 200


# Change


CHANGES = [
    {"name": "New"},
    {"description": "Told"},
    {"primary_model": "local/smollm2"},
    {"system_prompt": "Other."},
    {"temperature": 0.1},
    {"max_tokens": 5},
    {"status": "archived"},
    {"name": "New", "temperature": 0, "status": "published"},
]


@pytest.mark.parametrize("change", CHANGES)
async def test_what_is_left_out_stays_as_it_was(developer: Client, change: dict[str, Any]) -> None:
    made = await _create(developer, description="Old", temperature=0.5, max_tokens=100)
    answer = await developer.put(f"{PATH}/{made['id']}", change)
    assert answer.status_code == 200
    told = answer.json()
    assert set(told) == AGENT_KEYS
    moved = {"updated_at", "version"}
    assert {**told, **dict.fromkeys(moved)} == {**made, **change, **dict.fromkeys(moved)}
    found = (await developer.get(f"{PATH}/{made['id']}")).json()
    assert {name: found[name] for name in AGENT_KEYS} == told


async def test_all_fields_can_change_at_once(developer: Client) -> None:
    made = await _create(developer)
    change = {
        "name": "New",
        "description": "Told",
        "primary_model": "local/smollm2",
        "system_prompt": "Other.",
        "temperature": 0.1,
        "max_tokens": 5,
        "status": "published",
    }
    told = (await developer.put(f"{PATH}/{made['id']}", change)).json()
    assert {name: told[name] for name in change} == change
    assert told["version"] == 2


async def test_a_description_can_be_emptied(developer: Client) -> None:
    made = await _create(developer, description="Old")
    answer = await developer.put(f"{PATH}/{made['id']}", {"description": ""})
    assert answer.json()["description"] == ""


@pytest.mark.parametrize("change", [{}, {"name": "Shop"}, {"temperature": 0.7, "status": "draft"}])
async def test_a_change_of_nothing_leaves_no_trace(
    developer: Client, change: dict[str, Any]
) -> None:
    made = await _create(developer)
    answer = await developer.put(f"{PATH}/{made['id']}", change)
    assert (answer.status_code, answer.json()) == (200, made)
    assert [kind for kind, _ in await _log(developer)] == ["agent.created"]


async def test_updated_at_moves_and_created_at_stays(developer: Client) -> None:
    made = await _create(developer)
    told = (await developer.put(f"{PATH}/{made['id']}", {"name": "New"})).json()
    assert told["created_at"] == made["created_at"]
    assert datetime.fromisoformat(told["updated_at"]) > datetime.fromisoformat(made["updated_at"])


@pytest.mark.parametrize(("field", "value"), WRONG)
async def test_a_wrong_field_of_a_change_is_named(
    developer: Client, field: str, value: object
) -> None:
    made = await _create(developer)
    change = {"description": "Changed", "temperature": 0.1, field: value}
    answer = await developer.put(f"{PATH}/{made['id']}", change)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}
    found = (await developer.get(f"{PATH}/{made['id']}")).json()
    assert {name: found[name] for name in AGENT_KEYS} == made


@pytest.mark.parametrize(("field", "value"), FOREIGN_KEYS.items())
async def test_what_is_not_the_callers_to_say_cannot_be_changed(
    developer: Client, services: Services, field: str, value: object
) -> None:
    made = await _create(developer)
    before = await _row(services, made["id"])
    change = {field: value, "log_messages": False, "retention_days": 1, "provider": "x"}
    answer = await developer.put(f"{PATH}/{made['id']}", change)
    assert (answer.status_code, answer.json()) == (200, made)
    assert await _row(services, made["id"]) == before


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
async def test_any_status_follows_any_other(developer: Client, before: str, after: str) -> None:
    made = await _create(developer)
    await developer.put(f"{PATH}/{made['id']}", {"status": before})
    answer = await developer.put(f"{PATH}/{made['id']}", {"status": after})
    assert (answer.status_code, answer.json()["status"]) == (200, after)
    assert (await developer.get(f"{PATH}/{made['id']}")).json()["status"] == after


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
async def test_publishing_is_told_exactly_when_an_agent_becomes_published(
    developer: Client, before: str, after: str
) -> None:
    made = await _create(developer)
    await developer.put(f"{PATH}/{made['id']}", {"status": before})
    known = len(await _log(developer))
    await developer.put(f"{PATH}/{made['id']}", {"status": after})
    told = [kind for kind, _ in (await _log(developer))[known:]]
    expected = [] if before == after else ["agent.updated"]
    if after == "published" and before != after:
        expected.append("agent.published")
    assert told == expected


async def test_an_archived_agent_does_not_chat_until_it_is_back(talk: Talker) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    refused = await talk.client.post(f"{talk.path}/chat", {"message": "Hello"})
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "agent_archived"
    await talk.client.put(talk.path, {"status": "draft"})
    await talk.say("Hello")


async def test_a_change_holds_in_the_next_turn(talk: Talker) -> None:
    change = {"system_prompt": "Be brief.", "temperature": 0.125, "max_tokens": 33}
    await talk.client.put(talk.path, change)
    await talk.say("Hello")
    asked = talk.asked[-1]
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (asked["temperature"], asked["max_tokens"]) == (0.125, 33)


async def test_another_model_brings_its_own_provider_along(
    talk: Talker, services: Services
) -> None:
    await talk.client.put(talk.path, {"primary_model": "claude-x"})
    assert (await _row(services, talk.agent_id))["provider"] == "anthropic"
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


# Events


async def test_creating_a_draft_is_told(developer: Client) -> None:
    made = await _create(developer)
    assert await _log(developer) == [
        (
            "agent.created",
            {
                "agent_id": made["id"],
                "name": "Shop",
                "status": "draft",
                "primary_model": "gpt-4o",
            },
        )
    ]


async def test_creating_a_published_agent_tells_of_both(developer: Client) -> None:
    made = await _create(developer, status="published")
    log = await _log(developer)
    assert [kind for kind, _ in log] == ["agent.created", "agent.published"]
    assert log[0][1]["status"] == "published"
    assert log[1][1] == {"agent_id": made["id"], "name": "Shop"}


async def test_a_change_tells_what_changed(developer: Client) -> None:
    made = await _create(developer)
    change = {"name": "New", "temperature": 0.1, "max_tokens": 2048, "status": "published"}
    await developer.put(f"{PATH}/{made['id']}", change)
    log = (await _log(developer))[1:]
    assert log == [
        (
            "agent.updated",
            {
                "agent_id": made["id"],
                "name": "New",
                "status": "published",
                "version": 2,
                "changed": ["name", "temperature", "status"],
            },
        ),
        ("agent.published", {"agent_id": made["id"], "name": "New"}),
    ]


async def test_deleting_is_told(developer: Client) -> None:
    made = await _create(developer)
    await developer.delete(f"{PATH}/{made['id']}")
    assert (await _log(developer))[-1] == (
        "agent.deleted",
        {"agent_id": made["id"], "name": "Shop"},
    )


async def test_an_event_carries_the_callers_correlation_id(developer: Client) -> None:
    await developer.post(PATH, BODY, headers={"x-correlation-id": "cor_of_mine"})
    entry = (await developer.get("/api/v1/event-log")).json()["data"][0]
    assert set(entry) == {"id", "type", "correlation_id", "parent_id", "data", "created_at"}
    assert (entry["correlation_id"], entry["parent_id"]) == ("cor_of_mine", None)


async def test_a_refused_create_is_not_told(developer: Client) -> None:
    await developer.post(PATH, {**BODY, "status": "archived"})
    assert await _log(developer) == []


async def test_what_super_admin_does_is_told_in_the_agents_own_tenant(
    super_admin: Client, developer: Client
) -> None:
    made = await _create(developer)
    await super_admin.put(f"{PATH}/{made['id']}", {"name": "New"})
    await super_admin.delete(f"{PATH}/{made['id']}")
    told = [kind for kind, _ in await _log(developer)]
    assert told == ["agent.created", "agent.updated", "agent.deleted"]


# Delete


@pytest.fixture
async def in_use(talk: Talker, services: Services) -> AsyncIterator[Talker]:
    """An agent with a conversation, an embed key, a job and two versions."""
    caller = talk.client
    await talk.say("Hello")
    key = {"agent_id": talk.agent_id, "name": "Site"}
    assert (await caller.post("/api/v1/embed/api-keys", key)).status_code == 201
    job = await caller.post(f"{talk.path}/chat/async", {"message": "Later"})
    assert job.status_code == 202
    await caller.put(talk.path, {"temperature": 0.1})
    yield talk
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM work WHERE tenant_id = $1", caller.tenant_id)


async def test_a_deleted_agent_is_gone(developer: Client) -> None:
    made = await _create(developer)
    answer = await developer.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await developer.get(f"{PATH}/{made['id']}")).status_code == 404
    assert (await developer.delete(f"{PATH}/{made['id']}")).status_code == 404
    assert await _names(developer) == []


OWNED = ["conversations", "conversation_entries", "embed_keys", "chat_jobs", "agent_versions"]


@pytest.mark.parametrize("table", OWNED)
async def test_what_an_agent_owned_goes_with_it(
    in_use: Talker, services: Services, table: str
) -> None:
    assert await _count(services, table, "agent_id", in_use.agent_id) > 0
    assert (await in_use.client.delete(in_use.path)).status_code == 204
    assert await _count(services, table, "agent_id", in_use.agent_id) == 0


async def test_direct_sub_agents_go_with_their_parent_at_any_depth(
    developer: Client, services: Services
) -> None:
    parent = await _create(developer)
    ids = [parent["id"]]
    for _ in range(3):
        answer = await developer.post(f"{PATH}/{ids[-1]}/sub-agents/direct", BODY)
        assert answer.status_code == 201
        ids.append(answer.json()["id"])
    assert await _count(services, "agents", "tenant_id", developer.tenant_id) == 4
    await developer.delete(f"{PATH}/{parent['id']}")
    assert await _count(services, "agents", "tenant_id", developer.tenant_id) == 0
    assert await _count(services, "sub_agents", "tenant_id", developer.tenant_id) == 0


async def test_the_end_of_every_direct_sub_agent_is_told(developer: Client) -> None:
    """Whoever counted agents by their events would count on for ever."""
    parent = await _create(developer)
    child = (await developer.post(f"{PATH}/{parent['id']}/sub-agents/direct", BODY)).json()
    await developer.delete(f"{PATH}/{parent['id']}")
    gone = [data["agent_id"] for kind, data in await _log(developer) if kind == "agent.deleted"]
    assert sorted(gone) == sorted([parent["id"], child["id"]])


async def test_attached_agents_outlive_their_parent(developer: Client, services: Services) -> None:
    parent, other = await _create(developer), await _create(developer, name="Other")
    path = f"{PATH}/{parent['id']}"
    await developer.post(f"{path}/sub-agents/attach", {"agent_id": other["id"]})
    await developer.delete(path)
    assert await _names(developer) == ["Other"]
    assert await _count(services, "sub_agents", "tenant_id", developer.tenant_id) == 0


async def test_an_attached_agent_that_is_deleted_leaves_its_parents(developer: Client) -> None:
    parent, other = await _create(developer), await _create(developer, name="Other")
    path = f"{PATH}/{parent['id']}"
    await developer.post(f"{path}/sub-agents/attach", {"agent_id": other["id"]})
    await developer.delete(f"{PATH}/{other['id']}")
    assert (await developer.get(path)).json()["sub_agents"] == []
    assert (await developer.get(f"{path}/sub-agents")).json() == {"data": []}


async def test_other_agents_keep_what_is_theirs(in_use: Talker) -> None:
    other = await in_use.agent("Other")
    said = await other.say("Hello")
    await in_use.client.delete(in_use.path)
    path = f"/api/v1/conversations/{said['conversation_id']}/messages"
    assert (await in_use.client.get(path)).json()["pagination"]["total"] == 2


async def test_an_embed_key_stops_with_its_agent(talk: Talker) -> None:
    body = {"agent_id": talk.agent_id, "name": "Site"}
    key = (await talk.client.post("/api/v1/embed/api-keys", body)).json()["api_key"]
    visitor, headers = talk.world.anonymous(), {"x-api-key": key}
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    said = {"session_id": "s1", "message": "Hello"}
    assert (await visitor.post(path, said, headers=headers)).status_code == 200
    await talk.client.delete(talk.path)
    assert (await visitor.post(path, said, headers=headers)).status_code == 401


async def test_of_two_deletes_at_once_one_finds_nothing(developer: Client) -> None:
    made = await _create(developer)
    answers = await asyncio.gather(*(developer.delete(f"{PATH}/{made['id']}") for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404, 404]
    told = [kind for kind, _ in await _log(developer)]
    assert told == ["agent.created", "agent.deleted"]


async def test_an_agent_can_be_deleted_while_it_answers(talk: Talker) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    asking = asyncio.create_task(talk.client.post(f"{talk.path}/chat", {"message": "Hello"}))
    async with asyncio.timeout(10):
        while not talk.asked:  # noqa: ASYNC110  # the model server has no signal for it
            await asyncio.sleep(0.01)
    assert (await talk.client.delete(talk.path)).status_code == 204
    hold.set()
    answer = await asking
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "conversation_not_found"


# Status and figures


async def test_the_status_of_a_fresh_agent(talk: Talker) -> None:
    answer = await talk.client.get(f"{talk.path}/status")
    assert answer.json() == {
        "agent_id": talk.agent_id,
        "status": "published",
        "is_online": True,
        "active_conversations": 0,
        "training": {"status": "idle", "documents_total": 0, "documents_done": 0},
    }


async def test_an_agent_without_a_key_for_its_model_is_offline(developer: Client) -> None:
    made = await _create(developer)
    status = (await developer.get(f"{PATH}/{made['id']}/status")).json()
    assert (status["status"], status["is_online"]) == ("draft", False)


async def test_an_archived_agent_is_offline(talk: Talker) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert (status["status"], status["is_online"]) == ("archived", False)


async def test_status_counts_conversations_until_they_end(talk: Talker) -> None:
    first = await talk.say("Hello")
    await talk.say("Hello again")
    await talk.client.post(f"/api/v1/conversations/{first['conversation_id']}/end")
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 1


async def test_the_figures_of_a_fresh_agent(developer: Client) -> None:
    made = await _create(developer)
    answer = await developer.get(f"{PATH}/{made['id']}/stats")
    assert answer.json() == {
        "agent_id": made["id"],
        "total_conversations": 0,
        "total_messages": 0,
        "total_tokens_used": 0,
        "avg_response_time_ms": 0,
        "period": "all_time",
    }


@pytest.mark.parametrize("period", ["24h", "7d", "30d", "all_time"])
async def test_figures_count_what_was_said_in_their_period(talk: Talker, period: str) -> None:
    talk.script(Reply(usage=(10, 5)))
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    await talk.say("Three")
    told = (await talk.client.get(f"{talk.path}/stats", params={"period": period})).json()
    assert told.pop("avg_response_time_ms") > 0
    assert told == {
        "agent_id": talk.agent_id,
        "total_conversations": 2,
        "total_messages": 6,
        "total_tokens_used": 45,
        "period": period,
    }


async def test_an_unknown_period_is_named(developer: Client) -> None:
    made = await _create(developer)
    answer = await developer.get(f"{PATH}/{made['id']}/stats", params={"period": "1y"})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"period"}
