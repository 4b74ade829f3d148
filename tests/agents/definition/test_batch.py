"""Operations of POST /v1/agents/batch and their results."""

from typing import Any

import pytest

from tests.agents.definition.api_calls import list_events
from tests.agents.definition.batch_requests import (
    build_create,
    build_delete,
    build_update,
    list_sorted_names,
    run_batch,
)
from tests.agents.definition.factories import AGENT_KEYS, BODY, NO_AGENT, PATH, create_agent
from tests.world import Client, World


async def _list_event_names(caller: Client) -> list[tuple[str, str]]:
    """Returns type and agent name of all events, the oldest first."""
    return [(kind, data["name"]) for kind, data in await list_events(caller)]


async def test_an_agent_is_created(developer: Client) -> None:
    (result,) = await run_batch(developer, build_create(temperature=0.25, status="published"))
    assert set(result) == {"index", "status", "data"}
    assert result["status"] == 201
    assert set(result["data"]) == AGENT_KEYS
    assert (result["data"]["temperature"], result["data"]["status"]) == (0.25, "published")
    stored = (await developer.get(f"{PATH}/{result['data']['id']}")).json()
    assert {name: stored[name] for name in AGENT_KEYS} == result["data"]


async def test_an_agent_is_updated(developer: Client) -> None:
    agent = await create_agent(developer)
    (result,) = await run_batch(developer, build_update(agent["id"], name="New", temperature=0.1))
    assert set(result) == {"index", "status", "data"}
    assert result["status"] == 200
    assert result["data"]["version"] == 2
    stored = (await developer.get(f"{PATH}/{agent['id']}")).json()
    assert {name: stored[name] for name in AGENT_KEYS} == result["data"]
    assert stored["name"] == "New"


async def test_an_agent_is_deleted(developer: Client) -> None:
    agent = await create_agent(developer)
    assert await run_batch(developer, build_delete(agent["id"])) == [{"index": 0, "status": 204}]
    assert (await developer.get(f"{PATH}/{agent['id']}")).status_code == 404


async def test_a_batch_emits_the_same_events_as_single_requests(developer: Client) -> None:
    old = await create_agent(developer, name="Old")
    await run_batch(
        developer,
        build_create(name="New", status="published"),
        build_update(old["id"], name="Older"),
        build_delete(old["id"]),
    )
    assert await _list_event_names(developer) == [
        ("agent.created", "Old"),
        ("agent.created", "New"),
        ("agent.published", "New"),
        ("agent.updated", "Older"),
        ("agent.deleted", "Older"),
    ]


async def test_operations_run_in_their_order(developer: Client) -> None:
    agent = await create_agent(developer, name="First")
    results = await run_batch(
        developer,
        build_update(agent["id"], name="Second"),
        build_update(agent["id"], name="Third"),
        build_delete(agent["id"]),
        build_update(agent["id"], name="Fourth"),
        build_delete(agent["id"]),
    )
    assert [result["status"] for result in results] == [200, 200, 204, 404, 404]
    assert [result["data"]["name"] for result in results[:2]] == ["Second", "Third"]


async def test_unknown_fields_are_refused(developer: Client) -> None:
    (result,) = await run_batch(developer, build_create(tenant_id="ten_x"))
    assert result["status"] == 422
    assert list(result["error"]["details"]) == ["tenant_id"]


async def test_read_only_fields_are_ignored(developer: Client) -> None:
    operation = {**build_create(id="agt_mine", version=9), "id": "agt_chosen"}
    (result,) = await run_batch(developer, operation)
    assert result["status"] == 201
    assert result["data"]["id"] not in {"agt_mine", "agt_chosen"}
    assert result["data"]["version"] == 1
    assert await list_sorted_names(developer) == ["Shop"]


async def test_a_direct_sub_agent_is_changed_like_any_agent(developer: Client) -> None:
    parent = await create_agent(developer)
    path = f"{PATH}/{parent['id']}/sub-agents"
    child = (await developer.post(f"{path}/direct", BODY)).json()
    results = await run_batch(
        developer, build_update(child["id"], name="New"), build_delete(child["id"])
    )
    assert [result["status"] for result in results] == [200, 204]
    assert (await developer.get(path)).json() == {"data": []}


async def test_a_refused_operation_does_not_affect_the_others(developer: Client) -> None:
    agent = await create_agent(developer, name="Old")
    results = await run_batch(
        developer,
        build_create(name="One"),
        build_create(name=""),
        build_update(NO_AGENT, name="Two"),
        build_update(agent["id"], name="Newer"),
        build_delete(NO_AGENT),
        build_create(name="Three", status="archived"),
        build_create(name="Four"),
    )
    assert [result["status"] for result in results] == [201, 422, 404, 200, 404, 422, 201]
    assert await list_sorted_names(developer) == ["Four", "Newer", "One"]
    events = await _list_event_names(developer)
    assert [name for _, name in events] == ["Old", "One", "Newer", "Four"]


async def test_a_missing_agent_gives_the_usual_error(developer: Client) -> None:
    results = await run_batch(developer, build_update(NO_AGENT, name="New"), build_delete(NO_AGENT))
    for result in results:
        assert set(result) == {"index", "status", "error"}
        assert result["status"] == 404
        assert set(result["error"]) == {"code", "message"}
        assert result["error"]["code"] == "agent_not_found"


async def test_another_tenants_agent_is_not_found(developer: Client, world: World) -> None:
    owner = await world.user()
    agent = await create_agent(owner)
    results = await run_batch(
        developer, build_update(agent["id"], name="Mine"), build_delete(agent["id"])
    )
    assert [result["status"] for result in results] == [404, 404]
    assert await list_sorted_names(owner) == ["Shop"]


_INVALID_OPERATIONS: list[tuple[dict[str, Any], set[str]]] = [
    ({"action": "create"}, {"data"}),
    ({"action": "create", "data": None}, {"data"}),
    ({"action": "create", "data": {}}, {"name", "primary_model", "system_prompt"}),
    (build_create(name="x" * 101), {"name"}),
    (build_create(name=None), {"name"}),
    (build_create(temperature=1.1), {"temperature"}),
    (build_create(max_tokens=0, system_prompt=" "), {"max_tokens", "system_prompt"}),
    (build_create(status="archived"), {"status"}),
    ({"action": "update", "data": {"name": "x"}}, {"id"}),
    ({"action": "update", "id": "", "data": {"name": "x"}}, {"id"}),
    ({"action": "update", "id": None, "data": {"name": "x"}}, {"id"}),
    ({"action": "update", "id": "x"}, {"data"}),
    ({"action": "update", "id": "x", "data": None}, {"data"}),
    (build_update("x", temperature="hot"), {"temperature"}),
    (build_update("x", status="gone"), {"status"}),
    ({"action": "delete"}, {"id"}),
    ({"action": "delete", "id": ""}, {"id"}),
]


async def test_a_wrong_operation_is_refused_with_its_fields(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for operation, fields in _INVALID_OPERATIONS:
        with subtests.test(operation=operation, fields=fields):
            result, after = await run_batch(developer, operation, build_create(name="After"))
            assert (result["status"], result["error"]["code"]) == (422, "validation_error")
            assert set(result["error"]["details"]) == fields
            assert after["status"] == 201
    assert await list_sorted_names(developer) == ["After"] * len(_INVALID_OPERATIONS)


async def test_an_update_without_fields_succeeds(developer: Client) -> None:
    agent = await create_agent(developer)
    (result,) = await run_batch(developer, build_update(agent["id"]))
    assert (result["status"], result["data"]) == (200, agent)
