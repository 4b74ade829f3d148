"""Sub-agents: attached, made for one parent, changed, removed, and never in a circle."""

import asyncio
import itertools
from typing import Any

import httpx
import pytest

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client, World

PATH = "/api/v1/agents"
BODY = {"name": "Helper", "primary_model": "gpt-4o", "system_prompt": "You help."}
LINK_KEYS = {"id", "name", "relationship_type", "is_enabled", "delegation_prompt"}
DIRECT_KEYS = LINK_KEYS | {
    "description",
    "primary_model",
    "system_prompt",
    "temperature",
    "max_tokens",
    "created_at",
    "updated_at",
}
NO_AGENT = "agt_00000000000000000000000000"


async def _agent(caller: Client, name: str = "Agent", **fields: Any) -> str:
    answer = await caller.post(PATH, {**BODY, "name": name, **fields})
    assert answer.status_code == 201, answer.text
    made: str = answer.json()["id"]
    return made


async def _attach(caller: Client, parent: str, child: str, **more: Any) -> httpx.Response:
    return await caller.post(f"{PATH}/{parent}/sub-agents/attach", {"agent_id": child, **more})


async def _attached(caller: Client, parent: str, child: str, **more: Any) -> dict[str, Any]:
    answer = await _attach(caller, parent, child, **more)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _direct(caller: Client, parent: str, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(f"{PATH}/{parent}/sub-agents/direct", {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _list(caller: Client, parent: str) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}/{parent}/sub-agents")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _events(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    return [(entry["type"], entry["data"]) for entry in reversed(answer.json()["data"])]


async def _links(services: Services, tenant_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT count(*) FROM sub_agents WHERE tenant_id = $1"
        return int(await (await tx.raw()).fetchval(sql, tenant_id))


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.fixture
async def parent(developer: Client) -> str:
    return await _agent(developer, "Parent")


@pytest.fixture
async def child(developer: Client) -> str:
    return await _agent(developer, "Child")


# Attach


async def test_an_agent_is_attached_with_just_its_id(
    developer: Client, parent: str, child: str
) -> None:
    made = await _attached(developer, parent, child)
    assert made == {
        "id": child,
        "name": "Child",
        "relationship_type": "template",
        "is_enabled": True,
        "delegation_prompt": "",
    }
    assert await _list(developer, parent) == [made]


async def test_an_agent_is_attached_with_every_field(
    developer: Client, parent: str, child: str
) -> None:
    fields = {"delegation_prompt": "Looks\nthings up", "is_enabled": False}
    made = await _attached(developer, parent, child, **fields)
    assert {name: made[name] for name in fields} == fields
    assert await _list(developer, parent) == [made]


async def test_sub_agents_are_listed_in_the_order_of_their_coming(
    developer: Client, parent: str
) -> None:
    assert await _list(developer, parent) == []
    names = ["Zoe", "Adam", "Mia"]
    for name in names:
        await _attached(developer, parent, await _agent(developer, name))
    await _direct(developer, parent, name="Ben")
    assert [item["name"] for item in await _list(developer, parent)] == [*names, "Ben"]


async def test_a_renamed_agent_is_listed_by_its_new_name(
    developer: Client, parent: str, child: str
) -> None:
    await _attached(developer, parent, child)
    await developer.put(f"{PATH}/{child}", {"name": "Renamed"})
    assert [item["name"] for item in await _list(developer, parent)] == ["Renamed"]


async def test_one_agent_serves_several_parents(developer: Client, child: str) -> None:
    for name in ("One", "Two"):
        parent = await _agent(developer, name)
        await _attached(developer, parent, child, delegation_prompt=name)
        assert [item["delegation_prompt"] for item in await _list(developer, parent)] == [name]


@pytest.mark.parametrize("status", ["draft", "published", "archived"])
async def test_an_agent_is_attached_in_any_status(
    developer: Client, parent: str, child: str, status: str
) -> None:
    await developer.put(f"{PATH}/{child}", {"status": status})
    await _attached(developer, parent, child)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "agent_id"),
        ({"agent_id": None}, "agent_id"),
        ({"agent_id": 5}, "agent_id"),
        ({"agent_id": "x", "is_enabled": "yes"}, "is_enabled"),
        ({"agent_id": "x", "is_enabled": None}, "is_enabled"),
        ({"agent_id": "x", "is_enabled": 1}, "is_enabled"),
        ({"agent_id": "x", "delegation_prompt": "x" * 4001}, "delegation_prompt"),
        ({"agent_id": "x", "delegation_prompt": None}, "delegation_prompt"),
    ],
)
async def test_a_wrong_field_of_an_attachment_is_named(
    developer: Client, parent: str, body: dict[str, Any], field: str
) -> None:
    answer = await developer.post(f"{PATH}/{parent}/sub-agents/attach", body)
    assert _code(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {field}


async def test_a_delegation_prompt_may_have_four_thousand_characters(
    developer: Client, parent: str, child: str
) -> None:
    made = await _attached(developer, parent, child, delegation_prompt="ü" * 4000)
    assert made["delegation_prompt"] == "ü" * 4000


async def test_what_is_not_the_callers_to_say_cannot_be_attached(
    developer: Client, parent: str, child: str
) -> None:
    fields = {"relationship_type": "direct", "tenant_id": "ten_x", "id": "sag_x", "name": "Mine"}
    made = await _attached(developer, parent, child, **fields)
    assert set(made) == LINK_KEYS
    assert (made["id"], made["name"]) == (child, "Child")
    assert made["relationship_type"] == "template"


@pytest.mark.parametrize("missing", [NO_AGENT, "", "x", "x" * 3000])
async def test_an_agent_that_is_not_there_is_not_attached(
    developer: Client, parent: str, missing: str
) -> None:
    assert _code(await _attach(developer, parent, missing)) == (404, "agent_not_found")
    assert _code(await _attach(developer, NO_AGENT, parent)) == (404, "agent_not_found")


async def test_an_agent_is_attached_once(developer: Client, parent: str, child: str) -> None:
    made = await _attached(developer, parent, child, delegation_prompt="First")
    again = await _attach(developer, parent, child, delegation_prompt="Second")
    assert _code(again) == (409, "conflict")
    assert await _list(developer, parent) == [made]


async def test_of_the_same_attachments_at_once_one_succeeds(
    developer: Client, parent: str, child: str
) -> None:
    answers = await asyncio.gather(*(_attach(developer, parent, child) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert len(await _list(developer, parent)) == 1


async def test_a_detached_agent_can_be_attached_again(
    developer: Client, parent: str, child: str
) -> None:
    await _attached(developer, parent, child)
    await developer.delete(f"{PATH}/{parent}/sub-agents/{child}")
    await _attached(developer, parent, child)


async def test_the_same_idempotency_key_attaches_once(
    developer: Client, parent: str, child: str
) -> None:
    path, headers = f"{PATH}/{parent}/sub-agents/attach", {"Idempotency-Key": new_id("key")}
    first = await developer.post(path, {"agent_id": child}, headers=headers)
    second = await developer.post(path, {"agent_id": child}, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()


async def test_what_was_made_for_another_is_not_attached(developer: Client, parent: str) -> None:
    other = await _agent(developer, "Other")
    made = await _direct(developer, other)
    assert _code(await _attach(developer, parent, made["id"])) == (409, "conflict")
    assert await _list(developer, parent) == []


async def test_ones_own_direct_sub_agent_is_not_attached_as_well(
    developer: Client, parent: str
) -> None:
    made = await _direct(developer, parent)
    assert _code(await _attach(developer, parent, made["id"])) == (409, "conflict")
    assert [item["relationship_type"] for item in await _list(developer, parent)] == ["direct"]


async def test_a_direct_sub_agent_has_sub_agents_itself(
    developer: Client, parent: str, child: str
) -> None:
    made = await _direct(developer, parent)
    await _attached(developer, made["id"], child)
    assert [item["id"] for item in await _list(developer, made["id"])] == [child]


# Tenants


async def test_another_tenants_agent_is_not_attached(
    developer: Client, world: World, parent: str
) -> None:
    theirs = await _agent(await world.user(), "Theirs")
    assert _code(await _attach(developer, parent, theirs)) == (404, "agent_not_found")


async def test_nothing_is_attached_to_another_tenants_agent(
    developer: Client, world: World, child: str
) -> None:
    theirs = await _agent(await world.user(), "Theirs")
    assert _code(await _attach(developer, theirs, child)) == (404, "agent_not_found")


@pytest.mark.parametrize("header", [None, "parent", "child"])
async def test_not_even_super_admin_attaches_across_tenants(
    super_admin: Client, developer: Client, world: World, services: Services, header: str | None
) -> None:
    other = await world.user()
    parent, child = await _agent(developer, "Parent"), await _agent(other, "Child")
    tenants = {"parent": developer.tenant_id, "child": other.tenant_id}
    headers = {"x-tenant-id": tenants[header]} if header else {}
    path = f"{PATH}/{parent}/sub-agents/attach"
    answer = await super_admin.post(path, {"agent_id": child}, headers=headers)
    assert _code(answer) == (404, "agent_not_found")
    assert await _links(services, developer.tenant_id) == 0
    assert await _links(services, other.tenant_id) == 0


async def test_super_admin_attaches_within_a_tenant(
    super_admin: Client, developer: Client, parent: str, child: str
) -> None:
    await _attached(super_admin, parent, child)
    assert [item["id"] for item in await _list(developer, parent)] == [child]


async def test_what_super_admin_makes_for_a_parent_is_in_the_parents_tenant(
    super_admin: Client, developer: Client, parent: str
) -> None:
    made = await _direct(super_admin, parent)
    assert (await developer.get(f"{PATH}/{made['id']}")).status_code == 200
    assert (await developer.get(f"{PATH}/{made['id']}/versions")).json()["pagination"]["total"] == 1


@pytest.mark.parametrize(
    ("method", "tail"), [("GET", ""), ("PATCH", "/{}"), ("DELETE", "/{}"), ("PUT", "/direct/{}")]
)
async def test_another_tenants_sub_agents_are_not_found(
    developer: Client, world: World, method: str, tail: str
) -> None:
    owner = await world.user()
    parent = await _agent(owner)
    made = await _direct(owner, parent)
    content = {"json": {"is_enabled": False}} if method in {"PATCH", "PUT"} else {}
    path = f"{PATH}/{parent}/sub-agents{tail.format(made['id'])}"
    assert _code(await developer(method, path, **content)) == (404, "agent_not_found")
    assert [item["is_enabled"] for item in await _list(owner, parent)] == [True]


# Circles


async def _chain(caller: Client, count: int) -> list[str]:
    """Agents of which each hands tasks to the next."""
    ids = [await _agent(caller, f"Agent {number}") for number in range(count)]
    for parent, child in itertools.pairwise(ids):
        await _attached(caller, parent, child)
    return ids


@pytest.mark.parametrize("length", [1, 2, 3, 7])
async def test_a_circle_is_refused(developer: Client, services: Services, length: int) -> None:
    ids = await _chain(developer, length)
    answer = await _attach(developer, ids[-1], ids[0])
    assert _code(answer) == (409, "sub_agent_cycle")
    assert await _links(services, developer.tenant_id) == length - 1


async def test_a_circle_through_a_disabled_link_is_refused(developer: Client) -> None:
    """It could be enabled again later."""
    first, second = await _chain(developer, 2)
    path = f"{PATH}/{first}/sub-agents/{second}"
    await developer("PATCH", path, json={"is_enabled": False})
    assert _code(await _attach(developer, second, first)) == (409, "sub_agent_cycle")


async def test_a_circle_through_a_direct_sub_agent_is_refused(
    developer: Client, parent: str
) -> None:
    made = await _direct(developer, parent)
    assert _code(await _attach(developer, made["id"], parent)) == (409, "sub_agent_cycle")


async def test_a_diamond_is_no_circle(developer: Client) -> None:
    top, left, right, bottom = [await _agent(developer, name) for name in "abcd"]
    for parent, child in ((top, left), (top, right), (left, bottom), (right, bottom)):
        await _attached(developer, parent, child)
    await _attached(developer, top, bottom)


async def test_a_circle_that_was_opened_again_is_none(developer: Client) -> None:
    first, second = await _chain(developer, 2)
    await developer.delete(f"{PATH}/{first}/sub-agents/{second}")
    await _attached(developer, second, first)


@pytest.mark.parametrize("length", [2, 3, 4])
async def test_of_attachments_at_once_that_close_a_circle_one_fails(
    developer: Client, services: Services, length: int
) -> None:
    for _ in range(5):
        ids = [await _agent(developer, f"Agent {number}") for number in range(length)]
        before = await _links(services, developer.tenant_id)
        pairs = [(ids[number], ids[(number + 1) % length]) for number in range(length)]
        answers = await asyncio.gather(*(_attach(developer, *pair) for pair in pairs))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [201] * (length - 1) + [409]
        (refused,) = (answer for answer in answers if answer.status_code == 409)
        assert refused.json()["error"]["code"] == "sub_agent_cycle"
        assert await _links(services, developer.tenant_id) == before + length - 1


# Direct sub-agents


async def test_a_sub_agent_is_made_with_just_what_is_required(
    developer: Client, parent: str
) -> None:
    made = await _direct(developer, parent)
    assert set(made) == DIRECT_KEYS
    expected = {
        **BODY,
        "relationship_type": "direct",
        "is_enabled": True,
        "delegation_prompt": "",
        "description": "",
        "temperature": 0.7,
        "max_tokens": 2048,
    }
    assert {name: made[name] for name in expected} == expected
    assert made["id"].startswith("agt_")
    assert made["created_at"].endswith("Z")


async def test_a_sub_agent_is_made_with_every_field(developer: Client, parent: str) -> None:
    fields = {
        "name": "Own",
        "primary_model": "local/smollm2",
        "system_prompt": "You count.",
        "delegation_prompt": "Counts things",
        "description": "A counter",
        "temperature": 0.0,
        "max_tokens": 9,
        "is_enabled": False,
    }
    made = await _direct(developer, parent, **fields)
    assert {name: made[name] for name in fields} == fields
    full = (await developer.get(f"{PATH}/{made['id']}")).json()
    agent_fields = fields.keys() - {"delegation_prompt", "is_enabled"}
    assert {name: full[name] for name in agent_fields} == {
        name: fields[name] for name in agent_fields
    }
    assert await _list(developer, parent) == [{name: made[name] for name in LINK_KEYS}]


WRONG = [
    ("name", ""),
    ("name", "x" * 101),
    ("name", None),
    ("primary_model", ""),
    ("primary_model", "x" * 201),
    ("system_prompt", " "),
    ("system_prompt", "x" * 100_001),
    ("delegation_prompt", "x" * 4001),
    ("description", "x" * 2001),
    ("temperature", 1.01),
    ("temperature", -0.01),
    ("temperature", "0"),
    ("max_tokens", 0),
    ("max_tokens", 1_000_001),
    ("is_enabled", "true"),
    ("is_enabled", None),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
async def test_a_wrong_field_of_a_direct_sub_agent_is_named(
    developer: Client, parent: str, field: str, value: object
) -> None:
    answer = await developer.post(f"{PATH}/{parent}/sub-agents/direct", {**BODY, field: value})
    assert _code(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {field}
    assert await _list(developer, parent) == []


async def test_every_missing_field_is_named_at_once(developer: Client, parent: str) -> None:
    answer = await developer.post(f"{PATH}/{parent}/sub-agents/direct", {})
    assert set(answer.json()["error"]["details"]) == {"name", "primary_model", "system_prompt"}


async def test_what_is_not_the_callers_to_say_cannot_be_made(
    developer: Client, parent: str, child: str
) -> None:
    fields = {"relationship_type": "template", "parent_id": child, "status": "archived"}
    made = await _direct(developer, parent, **fields, id="agt_x", tenant_id="ten_x", version=9)
    assert made["relationship_type"] == "direct"
    full = (await developer.get(f"{PATH}/{made['id']}")).json()
    assert (full["status"], full["version"]) == ("published", 1)
    assert await _list(developer, child) == []


async def test_nothing_is_made_for_an_agent_that_is_not_there(developer: Client) -> None:
    answer = await developer.post(f"{PATH}/{NO_AGENT}/sub-agents/direct", BODY)
    assert _code(answer) == (404, "agent_not_found")
    assert await _events(developer) == []


async def test_the_making_of_a_direct_sub_agent_is_told(developer: Client, parent: str) -> None:
    made = await _direct(developer, parent)
    created = [data for kind, data in await _events(developer) if kind == "agent.created"]
    assert created[-1] == {
        "agent_id": made["id"],
        "name": "Helper",
        "status": "published",
        "primary_model": "gpt-4o",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"name": "New"},
        {"primary_model": "claude-x"},
        {"system_prompt": "Other."},
        {"delegation_prompt": "Other tasks"},
        {"delegation_prompt": ""},
        {"description": "Told"},
        {"temperature": 0.1},
        {"max_tokens": 3},
        {"is_enabled": False},
        {"name": "New", "is_enabled": False, "delegation_prompt": "All"},
        {},
    ],
)
async def test_what_is_left_out_of_a_direct_sub_agent_stays(
    developer: Client, parent: str, change: dict[str, Any]
) -> None:
    made = await _direct(developer, parent, delegation_prompt="Tasks")
    path = f"{PATH}/{parent}/sub-agents/direct/{made['id']}"
    answer = await developer.put(path, change)
    assert answer.status_code == 200
    told = answer.json()
    assert {**told, "updated_at": None} == {**made, **change, "updated_at": None}
    assert await _list(developer, parent) == [{name: told[name] for name in LINK_KEYS}]
    full = (await developer.get(f"{PATH}/{made['id']}")).json()
    shared = full.keys() & told.keys()
    assert {name: full[name] for name in shared} == {name: told[name] for name in shared}


@pytest.mark.parametrize(("field", "value"), WRONG)
async def test_a_wrong_field_of_a_changed_sub_agent_is_named(
    developer: Client, parent: str, field: str, value: object
) -> None:
    made = await _direct(developer, parent)
    path = f"{PATH}/{parent}/sub-agents/direct/{made['id']}"
    answer = await developer.put(path, {"description": "Changed", field: value})
    assert _code(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {field}
    assert (await developer.put(path, {})).json() == made


async def test_a_changed_direct_sub_agent_is_told(developer: Client, parent: str) -> None:
    made = await _direct(developer, parent)
    path = f"{PATH}/{parent}/sub-agents/direct/{made['id']}"
    await developer.put(path, {"system_prompt": "Other.", "is_enabled": False})
    kind, data = (await _events(developer))[-1]
    assert kind == "agent.updated"
    assert (data["agent_id"], data["version"]) == (made["id"], 2)
    assert data["changed"] == ["system_prompt"]


async def test_an_attached_agent_is_not_changed_as_a_direct_one(
    developer: Client, parent: str, child: str
) -> None:
    await _attached(developer, parent, child)
    path = f"{PATH}/{parent}/sub-agents/direct/{child}"
    answer = await developer.put(path, {"name": "Mine", "is_enabled": False})
    assert _code(answer) == (409, "conflict")
    (link,) = await _list(developer, parent)
    assert (link["name"], link["is_enabled"]) == ("Child", True)


# Patch


@pytest.fixture(params=["template", "direct"])
async def linked(
    request: pytest.FixtureRequest, developer: Client, parent: str, child: str
) -> dict[str, Any]:
    """A sub-agent of either kind, as lists show it."""
    if request.param == "template":
        await _attached(developer, parent, child, delegation_prompt="Tasks")
    else:
        await _direct(developer, parent, delegation_prompt="Tasks")
    (link,) = await _list(developer, parent)
    return link


@pytest.mark.parametrize(
    "change",
    [
        {"is_enabled": False},
        {"delegation_prompt": "Other"},
        {"delegation_prompt": ""},
        {"delegation_prompt": "x" * 4000, "is_enabled": False},
        {},
    ],
)
async def test_a_delegation_is_changed(
    developer: Client, parent: str, linked: dict[str, Any], change: dict[str, Any]
) -> None:
    path = f"{PATH}/{parent}/sub-agents/{linked['id']}"
    answer = await developer("PATCH", path, json=change)
    assert (answer.status_code, answer.json()) == (200, {**linked, **change})
    assert await _list(developer, parent) == [{**linked, **change}]


async def test_a_delegation_is_enabled_again(
    developer: Client, parent: str, linked: dict[str, Any]
) -> None:
    path = f"{PATH}/{parent}/sub-agents/{linked['id']}"
    for enabled in (False, True):
        answer = await developer("PATCH", path, json={"is_enabled": enabled})
        assert answer.json()["is_enabled"] is enabled


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"is_enabled": None}, "is_enabled"),
        ({"is_enabled": "no"}, "is_enabled"),
        ({"is_enabled": 0}, "is_enabled"),
        ({"delegation_prompt": None}, "delegation_prompt"),
        ({"delegation_prompt": "x" * 4001}, "delegation_prompt"),
    ],
)
async def test_a_wrong_field_of_a_delegation_is_named(
    developer: Client, parent: str, linked: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    path = f"{PATH}/{parent}/sub-agents/{linked['id']}"
    answer = await developer("PATCH", path, json=change)
    assert _code(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {field}
    assert await _list(developer, parent) == [linked]


async def test_a_patch_changes_nothing_of_the_agent_itself(
    developer: Client, parent: str, linked: dict[str, Any]
) -> None:
    before = (await developer.get(f"{PATH}/{linked['id']}")).json()
    path = f"{PATH}/{parent}/sub-agents/{linked['id']}"
    change = {"name": "Mine", "system_prompt": "Obey.", "relationship_type": "direct"}
    answer = await developer("PATCH", path, json={**change, "delegation_prompt": "x"})
    assert answer.json() == {**linked, "delegation_prompt": "x"}
    assert (await developer.get(f"{PATH}/{linked['id']}")).json() == before


async def test_a_patch_holds_for_one_parent_only(developer: Client, child: str) -> None:
    first, second = await _agent(developer, "First"), await _agent(developer, "Second")
    for parent in (first, second):
        await _attached(developer, parent, child)
    await developer("PATCH", f"{PATH}/{first}/sub-agents/{child}", json={"is_enabled": False})
    assert [item["is_enabled"] for item in await _list(developer, second)] == [True]


# Remove


async def test_an_attached_agent_is_only_detached(
    developer: Client, parent: str, child: str
) -> None:
    await _attached(developer, parent, child)
    answer = await developer.delete(f"{PATH}/{parent}/sub-agents/{child}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await _list(developer, parent) == []
    assert (await developer.get(f"{PATH}/{child}")).status_code == 200
    assert "agent.deleted" not in [kind for kind, _ in await _events(developer)]


async def test_a_direct_sub_agent_is_deleted(developer: Client, parent: str) -> None:
    made = await _direct(developer, parent)
    answer = await developer.delete(f"{PATH}/{parent}/sub-agents/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await _list(developer, parent) == []
    assert (await developer.get(f"{PATH}/{made['id']}")).status_code == 404
    deleted, updated = (await _events(developer))[-2:]
    assert deleted == ("agent.deleted", {"agent_id": made["id"], "name": "Helper"})
    assert updated[0] == "agent.updated"
    assert (updated[1]["agent_id"], updated[1]["changed"]) == (parent, ["sub_agents"])


async def test_a_direct_sub_agent_that_is_deleted_as_an_agent_leaves_its_parent(
    developer: Client, parent: str
) -> None:
    made = await _direct(developer, parent)
    assert (await developer.delete(f"{PATH}/{made['id']}")).status_code == 204
    assert await _list(developer, parent) == []


async def test_one_parent_lets_go_and_the_others_keep_it(developer: Client, child: str) -> None:
    first, second = await _agent(developer, "First"), await _agent(developer, "Second")
    for parent in (first, second):
        await _attached(developer, parent, child)
    await developer.delete(f"{PATH}/{first}/sub-agents/{child}")
    assert [item["id"] for item in await _list(developer, second)] == [child]


async def test_of_two_removals_at_once_one_finds_nothing(
    developer: Client, parent: str, linked: dict[str, Any]
) -> None:
    path = f"{PATH}/{parent}/sub-agents/{linked['id']}"
    answers = await asyncio.gather(*(developer.delete(path) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404]


# What is not there, and who may


@pytest.mark.parametrize(("method", "tail"), [("PATCH", ""), ("DELETE", ""), ("PUT", "direct/")])
@pytest.mark.parametrize("whose", ["nobody", "unattached", "another parent", "the parent itself"])
async def test_a_sub_agent_of_somebody_else_is_not_found(
    developer: Client, parent: str, child: str, method: str, tail: str, whose: str
) -> None:
    other = await _agent(developer, "Other")
    theirs = await _direct(developer, other)
    ids = {
        "nobody": NO_AGENT,
        "unattached": child,
        "another parent": theirs["id"],
        "the parent itself": parent,
    }
    content = {} if method == "DELETE" else {"json": {"is_enabled": False}}
    path = f"{PATH}/{parent}/sub-agents/{tail}{ids[whose]}"
    assert _code(await developer(method, path, **content)) == (404, "sub_agent_not_found")
    assert [item["is_enabled"] for item in await _list(developer, other)] == [True]


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("POST", "attach"),
        ("POST", "direct"),
        ("PUT", "direct/{}"),
        ("PATCH", "{}"),
        ("DELETE", "{}"),
    ],
)
async def test_who_only_reads_sees_sub_agents_and_changes_none(
    world: World, developer: Client, parent: str, role: str, method: str, tail: str
) -> None:
    made = await _direct(developer, parent)
    caller = await world.user(role, developer.tenant_id)
    content = {} if method == "DELETE" else {"json": {**BODY, "agent_id": parent}}
    path = f"{PATH}/{parent}/sub-agents/{tail.format(made['id'])}"
    answer = await caller(method, path, **content)
    assert _code(answer) == (403, "forbidden")
    assert answer.json()["error"]["details"] == {"required": "agents:write", "your_role": role}
    assert [item["id"] for item in await _list(caller, parent)] == [made["id"]]


async def test_whoever_listens_learns_whom_an_agent_hands_tasks_to(
    developer: Client, parent: str, child: str
) -> None:
    await _attached(developer, parent, child)
    path = f"{PATH}/{parent}/sub-agents/{child}"
    await developer("PATCH", path, json={"is_enabled": False})
    await developer.delete(path)
    told = [data for kind, data in await _events(developer) if kind == "agent.updated"]
    assert [(data["agent_id"], data["changed"]) for data in told] == [(parent, ["sub_agents"])] * 3


async def test_an_agent_is_not_its_own_sub_agent(developer: Client, parent: str) -> None:
    answer = await developer.post(f"{PATH}/{parent}/sub-agents/attach", {"agent_id": parent})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "sub_agent_cycle"
    assert "itself" in answer.json()["error"]["message"]
