"""Many operations on workflows in one request."""

from typing import Any

from app.kit.ids import new_id
from tests.assertions import refused
from tests.automation.workflows.factories import PATH, create_workflow, transform
from tests.world import Client, World

BATCH = "/v1/workflows/batch"
NEW = {"name": "Orders", "nodes": [transform("a", 1)]}


async def _run(client: Client, *operations: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.post(BATCH, {"operations": list(operations)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    assert [result["index"] for result in results] == list(range(len(operations)))
    return results


async def test_each_operation_is_judged_alone(developer: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    other = await create_workflow(developer, [transform("a", 1)])
    results = await _run(
        developer,
        {"action": "create", "data": NEW},
        {"action": "create", "data": {**NEW, "edges": [{"from": "a", "to": "a"}]}},
        {"action": "update", "id": workflow["id"], "data": {"name": "Returns"}},
        {"action": "update", "id": "wfl_nothing", "data": {"name": "Returns"}},
        {"action": "delete", "id": other["id"]},
        {"action": "delete", "id": other["id"]},
        {"action": "create", "data": {"name": "Orders"}},
    )
    assert [result["status"] for result in results] == [201, 422, 200, 404, 204, 404, 422]
    assert results[0]["data"]["status"] == "draft"
    assert results[1]["error"]["details"] == {"edges": "form a cycle: a -> a"}
    assert results[3]["error"]["code"] == "workflow_not_found"
    listed = (await developer.get(PATH)).json()["data"]
    assert {item["id"] for item in listed} == {workflow["id"], results[0]["data"]["id"]}
    assert "Returns" in {item["name"] for item in listed}


async def test_one_to_a_hundred_operations_are_allowed(developer: Client) -> None:
    for count in (0, 101):
        body = {"operations": [{"action": "create", "data": NEW}] * count}
        error = refused(await developer.post(BATCH, body), 422, "validation_error")
        assert set(error["details"]) == {"operations"}
    results = await _run(developer, *[{"action": "delete", "id": "wfl_nothing"}] * 100)
    assert {result["status"] for result in results} == {404}


async def test_a_role_without_permission_gets_403(world: World) -> None:
    for role in ("agent_user", "viewer"):
        answer = await (await world.user(role)).post(BATCH, {"operations": []})
        refused(answer, 403, "forbidden")


async def test_workflows_of_another_tenant_are_not_found(developer: Client, admin: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    results = await _run(
        admin,
        {"action": "update", "id": workflow["id"], "data": {"name": "Mine"}},
        {"action": "delete", "id": workflow["id"]},
    )
    assert [result["status"] for result in results] == [404, 404]
    assert (await developer.get(f"{PATH}/{workflow['id']}")).json()["data"] == workflow


async def test_the_same_idempotency_key_runs_a_batch_once(developer: Client) -> None:
    body, key = {"operations": [{"action": "create", "data": NEW}]}, new_id("key")
    answers = [
        await developer.post(BATCH, body, headers={"Idempotency-Key": key}) for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert len((await developer.get(PATH)).json()["data"]) == 1
