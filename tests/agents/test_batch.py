"""POST /v1/agents/batch: many changes in one request, each judged alone."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.domain.agents import batch
from app.domain.agents.schemas import Operation
from app.kit.ids import new_id
from app.security.principal import Principal
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client, World

PATH = "/v1/agents/batch"
AGENTS = "/api/v1/agents"
BODY = {"name": "Shop", "primary_model": "gpt-4o", "system_prompt": "You help."}
AGENT_KEYS = {
    "id",
    "name",
    "description",
    "primary_model",
    "system_prompt",
    "temperature",
    "max_tokens",
    "status",
    "version",
    "created_at",
    "updated_at",
}
NO_AGENT = "agt_00000000000000000000000000"


def _create(**fields: Any) -> dict[str, Any]:
    return {"action": "create", "data": {**BODY, **fields}}


def _update(agent_id: str, **fields: Any) -> dict[str, Any]:
    return {"action": "update", "id": agent_id, "data": fields}


def _delete(agent_id: str) -> dict[str, Any]:
    return {"action": "delete", "id": agent_id}


async def _send(caller: Client, *operations: object, **more: Any) -> httpx.Response:
    return await caller.post(PATH, {"operations": operations}, **more)


async def _run(caller: Client, *operations: object) -> list[dict[str, Any]]:
    answer = await _send(caller, *operations)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"results"}
    results: list[dict[str, Any]] = answer.json()["results"]
    assert [result["index"] for result in results] == list(range(len(operations)))
    return results


async def _agent(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(AGENTS, {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _names(caller: Client) -> list[str]:
    answer = await caller.get(AGENTS, params={"per_page": 100, "sort": "name"})
    return [item["name"] for item in answer.json()["data"]]


async def _events(caller: Client) -> list[tuple[str, str]]:
    """The event log, the oldest first: type and the agent's name."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    entries = reversed(answer.json()["data"])
    return [(entry["type"], entry["data"]["name"]) for entry in entries]


# Each action


async def test_an_agent_is_created(developer: Client) -> None:
    (result,) = await _run(developer, _create(temperature=0.25, status="published"))
    assert set(result) == {"index", "status", "data"}
    assert result["status"] == 201
    assert set(result["data"]) == AGENT_KEYS
    assert (result["data"]["temperature"], result["data"]["status"]) == (0.25, "published")
    found = (await developer.get(f"{AGENTS}/{result['data']['id']}")).json()
    assert {name: found[name] for name in AGENT_KEYS} == result["data"]


async def test_an_agent_is_updated(developer: Client) -> None:
    made = await _agent(developer)
    (result,) = await _run(developer, _update(made["id"], name="New", temperature=0.1))
    assert set(result) == {"index", "status", "data"}
    assert result["status"] == 200
    assert result["data"]["version"] == 2
    found = (await developer.get(f"{AGENTS}/{made['id']}")).json()
    assert {name: found[name] for name in AGENT_KEYS} == result["data"]
    assert found["name"] == "New"


async def test_an_agent_is_deleted(developer: Client) -> None:
    made = await _agent(developer)
    assert await _run(developer, _delete(made["id"])) == [{"index": 0, "status": 204}]
    assert (await developer.get(f"{AGENTS}/{made['id']}")).status_code == 404


async def test_what_a_batch_does_is_told_as_if_done_one_by_one(developer: Client) -> None:
    old = await _agent(developer, name="Old")
    await _run(
        developer,
        _create(name="New", status="published"),
        _update(old["id"], name="Older"),
        _delete(old["id"]),
    )
    assert await _events(developer) == [
        ("agent.created", "Old"),
        ("agent.created", "New"),
        ("agent.published", "New"),
        ("agent.updated", "Older"),
        ("agent.deleted", "Older"),
    ]


async def test_operations_run_in_their_order(developer: Client) -> None:
    made = await _agent(developer, name="First")
    results = await _run(
        developer,
        _update(made["id"], name="Second"),
        _update(made["id"], name="Third"),
        _delete(made["id"]),
        _update(made["id"], name="Fourth"),
        _delete(made["id"]),
    )
    assert [result["status"] for result in results] == [200, 200, 204, 404, 404]
    assert [result["data"]["name"] for result in results[:2]] == ["Second", "Third"]


async def test_unknown_fields_and_foreign_keys_are_ignored(developer: Client) -> None:
    odd = {"id": "agt_mine", "tenant_id": "ten_x", "version": 9, "parent_id": "agt_x", "x": 1}
    operation = {**_create(**odd), "id": "agt_chosen", "comment": "ignored"}
    (result,) = await _run(developer, operation)
    assert result["status"] == 201
    assert result["data"]["id"] not in {"agt_mine", "agt_chosen"}
    assert result["data"]["version"] == 1
    assert await _names(developer) == ["Shop"]


async def test_a_direct_sub_agent_is_changed_like_any_agent(developer: Client) -> None:
    parent = await _agent(developer)
    path = f"{AGENTS}/{parent['id']}/sub-agents"
    child = (await developer.post(f"{path}/direct", BODY)).json()
    results = await _run(developer, _update(child["id"], name="New"), _delete(child["id"]))
    assert [result["status"] for result in results] == [200, 204]
    assert (await developer.get(path)).json() == {"data": []}


# Judged alone


async def test_one_operation_is_refused_and_the_others_stand(developer: Client) -> None:
    made = await _agent(developer, name="Old")
    results = await _run(
        developer,
        _create(name="One"),
        _create(name=""),
        _update(NO_AGENT, name="Two"),
        _update(made["id"], name="Newer"),
        _delete(NO_AGENT),
        _create(name="Three", status="archived"),
        _create(name="Four"),
    )
    assert [result["status"] for result in results] == [201, 422, 404, 200, 404, 422, 201]
    assert await _names(developer) == ["Four", "Newer", "One"]
    assert [name for kind, name in await _events(developer) if kind != "agent.published"] == [
        "Old",
        "One",
        "Newer",
        "Four",
    ]


async def test_a_missing_agent_is_told_with_the_usual_error(developer: Client) -> None:
    results = await _run(developer, _update(NO_AGENT, name="New"), _delete(NO_AGENT))
    for result in results:
        assert set(result) == {"index", "status", "error"}
        assert result["status"] == 404
        assert set(result["error"]) == {"code", "message"}
        assert result["error"]["code"] == "agent_not_found"


async def test_another_tenants_agent_is_not_found(developer: Client, world: World) -> None:
    owner = await world.user()
    made = await _agent(owner)
    results = await _run(developer, _update(made["id"], name="Mine"), _delete(made["id"]))
    assert [result["status"] for result in results] == [404, 404]
    assert await _names(owner) == ["Shop"]


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ({"action": "create"}, {"data"}),
        ({"action": "create", "data": None}, {"data"}),
        ({"action": "create", "data": {}}, {"name", "primary_model", "system_prompt"}),
        (_create(name="x" * 101), {"name"}),
        (_create(name=None), {"name"}),
        (_create(temperature=1.1), {"temperature"}),
        (_create(max_tokens=0, system_prompt=" "), {"max_tokens", "system_prompt"}),
        (_create(status="archived"), {"status"}),
        ({"action": "update", "data": {"name": "x"}}, {"id"}),
        ({"action": "update", "id": "", "data": {"name": "x"}}, {"id"}),
        ({"action": "update", "id": None, "data": {"name": "x"}}, {"id"}),
        ({"action": "update", "id": "x"}, {"data"}),
        ({"action": "update", "id": "x", "data": None}, {"data"}),
        (_update("x", temperature="hot"), {"temperature"}),
        (_update("x", status="gone"), {"status"}),
        ({"action": "delete"}, {"id"}),
        ({"action": "delete", "id": ""}, {"id"}),
    ],
)
async def test_a_wrong_operation_names_its_fields(
    developer: Client, operation: dict[str, Any], fields: set[str]
) -> None:
    result, after = await _run(developer, operation, _create(name="After"))
    assert (result["status"], result["error"]["code"]) == (422, "validation_error")
    assert set(result["error"]["details"]) == fields
    assert after["status"] == 201
    assert await _names(developer) == ["After"]


async def test_an_update_of_nothing_is_an_update(developer: Client) -> None:
    made = await _agent(developer)
    (result,) = await _run(developer, _update(made["id"]))
    assert (result["status"], result["data"]) == (200, made)


# Nothing of a refused operation stays


@pytest.fixture
async def refused_name(services: Services) -> AsyncIterator[str]:
    """A name whose event the database refuses: an operation that fails after its first writes."""
    name = new_id("refused")
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(
            """
            CREATE FUNCTION refuse_event() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation'; END $$
            """
        )
        await raw.execute(
            f"""
            CREATE TRIGGER refuse_event BEFORE INSERT ON event_log
            FOR EACH ROW WHEN (NEW.data->>'name' = '{name}') EXECUTE FUNCTION refuse_event()
            """
        )
    yield name
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("DROP TRIGGER refuse_event ON event_log")
        await raw.execute("DROP FUNCTION refuse_event")


async def _versions(caller: Client, agent_id: str) -> int:
    answer = await caller.get(f"{AGENTS}/{agent_id}/versions")
    total: int = answer.json()["pagination"]["total"]
    return total


async def test_a_create_that_fails_halfway_leaves_no_trace(
    developer: Client, services: Services, refused_name: str
) -> None:
    results = await _run(
        developer, _create(name="Before"), _create(name=refused_name), _create(name="After")
    )
    assert [result["status"] for result in results] == [201, 409, 201]
    assert results[1]["error"]["code"] == "conflict"
    assert await _names(developer) == ["After", "Before"]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT count(*) FROM agent_versions WHERE tenant_id = $1"
        assert await (await tx.raw()).fetchval(sql, developer.tenant_id) == 2


async def test_an_update_that_fails_halfway_leaves_no_trace(
    developer: Client, refused_name: str
) -> None:
    made = await _agent(developer)
    results = await _run(
        developer,
        _update(made["id"], description="Before"),
        _update(made["id"], name=refused_name, temperature=0.1),
        _update(made["id"], max_tokens=5),
    )
    assert [result["status"] for result in results] == [200, 409, 200]
    found = (await developer.get(f"{AGENTS}/{made['id']}")).json()
    assert (found["name"], found["temperature"]) == ("Shop", 0.7)
    assert (found["description"], found["max_tokens"]) == ("Before", 5)
    assert found["version"] == results[2]["data"]["version"] == 2
    assert await _versions(developer, made["id"]) == 2


async def test_a_delete_that_fails_halfway_leaves_the_agent(
    developer: Client, services: Services, refused_name: str
) -> None:
    made = await _agent(developer)
    async with services.db.tx(ALL_TENANTS) as tx:
        sql = "UPDATE agents SET name = $1 WHERE id = $2"
        await (await tx.raw()).execute(sql, refused_name, made["id"])
    results = await _run(developer, _delete(made["id"]), _create(name="After"))
    assert [result["status"] for result in results] == [409, 201]
    assert (await developer.get(f"{AGENTS}/{made['id']}")).status_code == 200


# The request as a whole


@pytest.mark.parametrize("count", [1, 100])
async def test_one_to_a_hundred_operations_fit(developer: Client, count: int) -> None:
    results = await _run(developer, *(_create(name=f"A{n:03}") for n in range(count)))
    assert {result["status"] for result in results} == {201}
    assert [result["data"]["name"] for result in results] == [f"A{n:03}" for n in range(count)]
    assert await _names(developer) == [f"A{n:03}" for n in range(count)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "operations"),
        ({"operations": []}, "operations"),
        ({"operations": None}, "operations"),
        ({"operations": {}}, "operations"),
        ({"operations": [_create()] * 101}, "operations"),
        ({"operations": ["create"]}, "operations.0"),
        ({"operations": [{"data": BODY}]}, "operations.0.action"),
        ({"operations": [{"action": "explode"}]}, "operations.0.action"),
        ({"operations": [_create(), {"action": None}]}, "operations.1.action"),
        ({"operations": [{"action": "delete", "id": 5}]}, "operations.0.id"),
        ({"operations": [{"action": "create", "data": []}]}, "operations.0.data"),
    ],
)
async def test_a_body_of_another_shape_is_refused_as_a_whole(
    developer: Client, body: dict[str, Any], field: str
) -> None:
    answer = await developer.post(PATH, body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {field}
    assert await _names(developer) == []


async def test_a_batch_counts_as_one_request(developer: Client) -> None:
    """The cost of one write, however many there are inside."""
    seen = []
    for count in (1, 1, 50):
        answer = await _send(developer, *[_create()] * count)
        seen.append(int(answer.headers["x-ratelimit-remaining"]))
    assert seen[0] - seen[1] == seen[1] - seen[2] == 2


async def test_the_same_idempotency_key_runs_a_batch_once(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    operations = [_create(name="One"), _create(name=""), _create(name="Two")]
    first = await _send(developer, *operations, headers=headers)
    second = await _send(developer, *operations, headers=headers)
    assert first.json() == second.json()
    assert await _names(developer) == ["One", "Two"]


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
async def test_who_may_not_write_sends_no_batch(world: World, developer: Client, role: str) -> None:
    caller = await world.user(role, developer.tenant_id)
    answer = await _send(caller, _create())
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "agents:write", "your_role": role}
    assert await _names(developer) == []


async def test_a_batch_needs_a_sign_in(anonymous: Client) -> None:
    assert (await _send(anonymous, _create())).status_code == 401


async def test_super_admin_changes_agents_of_several_tenants(
    super_admin: Client, developer: Client, world: World
) -> None:
    other = await world.user()
    ours, theirs = await _agent(developer), await _agent(other)
    results = await _run(super_admin, _update(ours["id"], name="A"), _delete(theirs["id"]))
    assert [result["status"] for result in results] == [200, 204]
    assert (await _names(developer), await _names(other)) == (["A"], [])


async def test_who_may_write_but_not_delete_is_told_so_for_deletes_alone(
    developer: Client, services: Services
) -> None:
    """Role grants are the whole instance's, so the caller is made here instead of signed in."""
    kept, changed = await _agent(developer, name="Kept"), await _agent(developer, name="Old")
    writer = Principal(
        developer.user_id,
        developer.tenant_id,
        "agent_developer",
        developer.session_id,
        frozenset({"agents:write"}),
    )
    operations = [
        Operation(action="create", data={**BODY, "name": "New"}),
        Operation(action="delete", id=kept["id"]),
        Operation(action="delete", id=NO_AGENT),
        Operation(action="update", id=changed["id"], data={"name": "Renamed"}),
    ]
    async with services.db.tx(developer.tenant_id) as tx:
        results = await batch.run(tx, services, writer, operations)
    assert [result.status for result in results] == [201, 403, 403, 200]
    refused = results[1].error
    assert refused is not None
    assert refused.code == "forbidden"
    assert refused.details == {"required": "agents:delete", "your_role": "agent_developer"}
    assert await _names(developer) == ["Kept", "New", "Renamed"]
