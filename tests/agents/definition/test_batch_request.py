"""The batch request as a whole: its shape, cost and permissions."""

from typing import Any

import pytest

from app.domain.agents.definition import batch
from app.domain.batch import Operation
from app.kit.ids import new_id
from app.security.principal import Principal
from app.services import Services
from tests.agents.definition.batch_requests import (
    BATCH_PATH,
    build_create,
    build_delete,
    build_update,
    list_sorted_names,
    run_batch,
    send_batch,
)
from tests.agents.definition.factories import BODY, NO_AGENT, create_agent
from tests.world import Client, World


async def test_one_to_a_hundred_operations_fit(world: World, subtests: pytest.Subtests) -> None:
    for count in (1, 100):
        developer = await world.user()
        with subtests.test(count=count):
            results = await run_batch(
                developer, *(build_create(name=f"A{n:03}") for n in range(count))
            )
            assert {result["status"] for result in results} == {201}
            assert [result["data"]["name"] for result in results] == [
                f"A{n:03}" for n in range(count)
            ]
            assert await list_sorted_names(developer) == [f"A{n:03}" for n in range(count)]


_INVALID_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "operations"),
    ({"operations": []}, "operations"),
    ({"operations": None}, "operations"),
    ({"operations": {}}, "operations"),
    ({"operations": [build_create()] * 101}, "operations"),
    ({"operations": ["create"]}, "operations.0"),
    ({"operations": [{"data": BODY}]}, "operations.0.action"),
    ({"operations": [{"action": "explode"}]}, "operations.0.action"),
    ({"operations": [build_create(), {"action": None}]}, "operations.1.action"),
    ({"operations": [{"action": "delete", "id": 5}]}, "operations.0.id"),
    ({"operations": [{"action": "create", "data": []}]}, "operations.0.data"),
]


async def test_a_body_of_another_shape_is_refused_as_a_whole(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            answer = await developer.post(BATCH_PATH, body)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {field}
    assert await list_sorted_names(developer) == []


async def test_a_batch_counts_as_one_request(developer: Client) -> None:
    """A batch costs as much as one write, for any number of operations."""
    remaining = []
    for count in (1, 1, 50):
        answer = await send_batch(developer, *[build_create()] * count)
        remaining.append(int(answer.headers["x-ratelimit-remaining"]))
    assert remaining[0] - remaining[1] == remaining[1] - remaining[2] == 2


async def test_the_same_idempotency_key_runs_a_batch_once(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    operations = [build_create(name="One"), build_create(name=""), build_create(name="Two")]
    first = await send_batch(developer, *operations, headers=headers)
    second = await send_batch(developer, *operations, headers=headers)
    assert first.json() == second.json()
    assert await list_sorted_names(developer) == ["One", "Two"]


async def test_a_batch_needs_the_permission_to_write(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "agent_user"):
        developer = await world.user()
        with subtests.test(role=role):
            caller = await world.user(role, developer.tenant_id)
            answer = await send_batch(caller, build_create())
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": "agents:write",
                "your_role": role,
            }
            assert await list_sorted_names(developer) == []


async def test_a_batch_needs_a_sign_in(anonymous: Client) -> None:
    assert (await send_batch(anonymous, build_create())).status_code == 401


async def test_super_admin_changes_agents_of_several_tenants(
    super_admin: Client, developer: Client, world: World
) -> None:
    other = await world.user()
    agent, other_agent = await create_agent(developer), await create_agent(other)
    results = await run_batch(
        super_admin, build_update(agent["id"], name="A"), build_delete(other_agent["id"])
    )
    assert [result["status"] for result in results] == [200, 204]
    assert (await list_sorted_names(developer), await list_sorted_names(other)) == (["A"], [])


async def test_without_the_permission_to_delete_only_deletes_are_refused(
    developer: Client, services: Services
) -> None:
    """Builds the principal directly, since changed grants would affect the whole instance."""
    agent, changed = (
        await create_agent(developer, name="Kept"),
        await create_agent(developer, name="Old"),
    )
    writer = Principal(
        developer.user_id,
        developer.tenant_id,
        "agent_developer",
        developer.session_id,
        frozenset({"agents:write"}),
    )
    operations = [
        Operation(action="create", data={**BODY, "name": "New"}),
        Operation(action="delete", id=agent["id"]),
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
    assert await list_sorted_names(developer) == ["Kept", "New", "Renamed"]
