"""Workflows: fields, lists, versions, publication and deletion."""

import asyncio
from typing import Any

import jsonschema_rs
import pytest

from app.areas import AREAS
from app.domain.automation.workflows.nodes.registry import NODE_TYPES
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.assertions import refused, wait_until
from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    chain,
    create_published,
    create_workflow,
    publish,
    read,
    start,
    transform,
)
from tests.database import fetch_rows, run_sql
from tests.world import Client
from workers.main import WorkerProcess

FIELDS = {
    "id",
    "name",
    "description",
    "status",
    "version",
    "published_version",
    "trigger",
    "next_run_at",
    "nodes",
    "edges",
    "created_by",
    "created_at",
    "updated_at",
}
A, B = transform("a", 1), transform("b", 2)


async def _get(client: Client, path: str, **params: Any) -> Any:
    answer = await client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _update(client: Client, workflow_id: str, **fields: Any) -> dict[str, Any]:
    answer = await client.put(f"{PATH}/{workflow_id}", fields)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


# Create, read and list


async def test_a_new_workflow_is_a_draft_with_its_fields(developer: Client) -> None:
    called = await create_workflow(developer, [A])
    node = {
        "id": "a",
        "type": "workflow",
        "config": {"workflow_id": called["id"]},
        "name": "First",
        "retry": {"max_attempts": 2},
        "timeout_seconds": 5,
    }
    workflow = await create_workflow(developer, [node, B], chain("a", "b"), description="Text")
    assert set(workflow) == FIELDS
    assert workflow["id"].startswith("wfl_")
    assert (workflow["name"], workflow["description"]) == ("Orders", "Text")
    assert (workflow["status"], workflow["version"]) == ("draft", 1)
    assert (workflow["published_version"], workflow["trigger"]) == (None, None)
    assert workflow["nodes"] == [{**node, "retry": {**workflow["nodes"][0]["retry"]}}, B]
    assert workflow["nodes"][0]["retry"]["max_attempts"] == 2
    assert workflow["edges"] == [{"from": "a", "to": "b"}]
    assert workflow["created_by"] == developer.user_id
    assert (await _get(developer, f"{PATH}/{workflow['id']}"))["data"] == workflow


async def test_a_list_is_searched_filtered_sorted_and_paged(developer: Client) -> None:
    names = ["Refunds", "Orders", "Returns"]
    ids = [
        (await create_workflow(developer, [A], name=name, description=f"Of {name}"))["id"]
        for name in names
    ]
    await publish(developer, ids[1])

    async def list_ids(**params: Any) -> list[str]:
        return [item["id"] for item in (await _get(developer, PATH, **params))["data"]]

    assert await list_ids() == ids[::-1]
    assert await list_ids(search="re") == [ids[2], ids[0]]
    assert await list_ids(search="of ord") == [ids[1]]
    assert await list_ids(status="published") == [ids[1]]
    assert await list_ids(sort="name") == [ids[1], ids[0], ids[2]]
    assert await list_ids(sort="-name") == [ids[2], ids[0], ids[1]]
    assert await list_ids(per_page=2, page=2) == [ids[0]]
    listed = await _get(developer, PATH, per_page=1)
    assert listed["pagination"] == {"page": 1, "per_page": 1, "total": 3, "total_pages": 3}
    assert set(listed["data"][0]) == FIELDS - {"nodes", "edges"}
    for params in ({"sort": "nodes"}, {"status": "archived"}):
        refused(await developer.get(PATH, params=params), 422, "validation_error")


async def test_a_workflow_of_another_tenant_is_not_found(
    developer: Client, admin: Client, subtests: pytest.Subtests
) -> None:
    workflow_id = await create_published(developer, [A])
    execution_id = await start(developer, workflow_id)
    path = f"{PATH}/{workflow_id}"
    for method, name in (
        ("GET", path),
        ("PUT", path),
        ("DELETE", path),
        ("POST", f"{path}/publish"),
        ("POST", f"{path}/unpublish"),
        ("POST", f"{path}/execute"),
        ("GET", f"{path}/executions"),
        ("GET", f"{path}/versions"),
        ("GET", f"{path}/versions/1"),
        ("GET", f"{path}/versions/1/diff/1"),
        ("POST", f"{path}/versions/1/restore"),
    ):
        with subtests.test(method=method, name=name):
            refused(await admin(method, name, json={}), 404, "workflow_not_found")
    for method, name in (("GET", ""), ("POST", "/cancel"), ("POST", "/retry")):
        with subtests.test(method=method, name=name):
            answer = await admin(method, f"{EXECUTIONS}/{execution_id}{name}")
            refused(answer, 404, "workflow_execution_not_found")


# Versions


async def test_a_change_of_the_definition_makes_a_version_and_of_other_fields_none(
    developer: Client,
) -> None:
    workflow_id = (await create_workflow(developer, [A, B]))["id"]
    renamed = await _update(developer, workflow_id, name="Returns", description="New")
    assert (renamed["version"], renamed["name"], renamed["description"]) == (1, "Returns", "New")
    assert (await _update(developer, workflow_id, edges=chain("a", "b")))["version"] == 2
    assert (await _update(developer, workflow_id, nodes=[A, transform("b", 3)]))["version"] == 3
    same = await _update(
        developer, workflow_id, nodes=[A, transform("b", 3)], edges=chain("a", "b")
    )
    assert same["version"] == 3
    versions = (await _get(developer, f"{PATH}/{workflow_id}/versions"))["data"]
    assert [item["version"] for item in versions] == [3, 2, 1]
    assert set(versions[0]) == {"version", "created_by", "created_at"}
    assert versions[0]["created_by"] == developer.user_id
    first = (await _get(developer, f"{PATH}/{workflow_id}/versions/1"))["data"]
    assert first == {"workflow_id": workflow_id, "version": 1, "nodes": [A, B], "edges": []}
    page = await _get(developer, f"{PATH}/{workflow_id}/versions", page=9)
    assert page["data"] == []


async def test_a_version_that_does_not_exist_is_not_found(
    developer: Client, subtests: pytest.Subtests
) -> None:
    path = f"{PATH}/{(await create_workflow(developer, [A]))['id']}/versions"
    for version in ("0", "2", "-1", "x", "1.0", "99999999999999999999"):
        with subtests.test(version=version):
            for answer in (
                await developer.get(f"{path}/{version}"),
                await developer.get(f"{path}/1/diff/{version}"),
                await developer.post(f"{path}/{version}/restore"),
            ):
                refused(answer, 404, "workflow_version_not_found")


async def test_a_diff_compares_nodes_by_their_ids_and_hides_secrets(developer: Client) -> None:
    secret = {"api_key": "hunter-one", "city": "Kiel"}
    workflow_id = (await create_workflow(developer, [A, transform("b", secret)]))["id"]
    nodes = [transform("b", {"api_key": "hunter-two", "city": "Bonn"}), transform("c", 1)]
    await _update(developer, workflow_id, nodes=nodes)
    answer = await developer.get(f"{PATH}/{workflow_id}/versions/1/diff/2")
    assert answer.status_code == 200, answer.text
    assert "hunter" not in answer.text
    diff = answer.json()["data"]
    assert (diff["from"], diff["to"], diff["truncated"]) == (1, 2, False)
    changes = {item["path"]: item for item in diff["changes"]}
    assert {path: item["op"] for path, item in changes.items()} == {
        "nodes.a": "removed",
        "nodes.b.config.output.api_key": "changed",
        "nodes.b.config.output.city": "changed",
        "nodes.c": "added",
    }
    city = changes["nodes.b.config.output.city"]
    assert (city["before"], city["after"]) == ("Kiel", "Bonn")
    same = await _get(developer, f"{PATH}/{workflow_id}/versions/2/diff/2")
    assert same["data"]["changes"] == []


async def test_a_restored_version_is_a_new_one(developer: Client) -> None:
    workflow_id = await create_published(developer, [A, B], chain("a", "b"))
    await _update(developer, workflow_id, nodes=[A], edges=[])
    answer = await developer.post(f"{PATH}/{workflow_id}/versions/1/restore")
    assert answer.status_code == 200, answer.text
    restored = answer.json()["data"]
    assert (restored["version"], restored["published_version"]) == (3, 1)
    assert (restored["nodes"], len(restored["edges"])) == ([A, B], 1)


async def test_an_execution_keeps_the_version_that_it_started_with(
    developer: Client, worker: WorkerProcess
) -> None:
    delay = {"id": "wait", "type": "delay", "config": {"seconds": 0.5}}
    nodes = [delay, transform("b", "old")]
    workflow_id = await create_published(developer, nodes, chain("wait", "b"))
    execution_id = await start(developer, workflow_id)
    await _update(developer, workflow_id, nodes=[delay, transform("b", "new")])
    await publish(developer, workflow_id)
    record = await read(developer, execution_id, wait=10)
    assert (record["version"], record["output"]) == (1, "old")


async def test_two_changes_at_once_make_two_versions_or_one_conflict(developer: Client) -> None:
    workflow_id = (await create_workflow(developer, [A, B]))["id"]
    bodies: list[dict[str, Any]] = [{"nodes": [A]}, {"nodes": [A, B, transform("c", 3)]}]
    path = f"{PATH}/{workflow_id}"
    answers = await asyncio.gather(*(developer.put(path, body) for body in bodies))
    kept = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    versions = (await _get(developer, f"{path}/versions"))["data"]
    assert len(versions) == 1 + len(kept)


# Publication


async def test_publication_has_two_states(developer: Client) -> None:
    workflow_id = (await create_workflow(developer, [A]))["id"]
    path = f"{PATH}/{workflow_id}"
    refused(await developer.post(f"{path}/unpublish"), 409, "invalid_state")
    published = await publish(developer, workflow_id)
    assert (published["status"], published["published_version"]) == ("published", 1)
    refused(await developer.post(f"{path}/publish"), 409, "invalid_state")
    changed = await _update(developer, workflow_id, nodes=[B])
    assert (changed["status"], changed["published_version"]) == ("published", 1)
    assert (await publish(developer, workflow_id))["published_version"] == 2
    answer = await developer.post(f"{path}/unpublish")
    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "draft")
    assert answer.json()["data"]["published_version"] is None


async def test_a_start_by_hand_runs_the_published_version_or_the_newest_of_a_draft(
    developer: Client,
) -> None:
    workflow_id = (await create_workflow(developer, [A]))["id"]
    await _update(developer, workflow_id, nodes=[B])

    async def find_version(**body: Any) -> int:
        return int((await read(developer, await start(developer, workflow_id, **body)))["version"])

    assert await find_version() == 2
    await publish(developer, workflow_id)
    await _update(developer, workflow_id, nodes=[A, B])
    assert await find_version() == 2
    assert await find_version(version=3) == 3
    assert await find_version(version=1) == 1
    answer = await developer.post(f"{PATH}/{workflow_id}/execute", {"version": 4})
    refused(answer, 404, "workflow_version_not_found")


# Deletion


async def test_a_deleted_workflow_is_hidden_at_once_and_removed_later(
    developer: Client, services: Services, worker: WorkerProcess
) -> None:
    delay = {"id": "wait", "type": "delay", "config": {"seconds": 3600}}
    workflow_id = await create_published(developer, [delay])
    execution_id = await start(developer, workflow_id)
    path = f"{PATH}/{workflow_id}"
    answer = await developer.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    for method, name in (
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/execute"),
        ("GET", "/executions"),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
    ):
        refused(await developer(method, path + name, json={}), 404, "workflow_not_found")
    answer = await developer.get(f"{EXECUTIONS}/{execution_id}")
    refused(answer, 404, "workflow_execution_not_found")
    assert (await _get(developer, EXECUTIONS))["data"] == []

    async def is_cancelled() -> bool:
        sql = "SELECT status FROM workflow_executions WHERE id = $1"
        return bool((await fetch_rows(services, sql, execution_id))[0]["status"] == "cancelled")

    await wait_until(is_cancelled)
    sql = "UPDATE workflows SET deleted_at = now() - interval '2 hours' WHERE id = $1"
    await run_sql(services, sql, workflow_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)
        await retention.delete_expired(await tx.raw(), AREAS.retention)
    for table, column in (
        ("workflows", "id"),
        ("workflow_versions", "workflow_id"),
        ("workflow_executions", "workflow_id"),
    ):
        sql = f"SELECT 1 FROM {table} WHERE {column} = $1"
        assert await fetch_rows(services, sql, workflow_id) == []


# Node types


async def test_each_node_type_has_a_schema_that_its_example_meets(
    developer: Client, subtests: pytest.Subtests
) -> None:
    listed = (await _get(developer, "/api/v1/workflow-node-types"))["data"]
    assert [item["type"] for item in listed] == list(NODE_TYPES)
    for item in listed:
        with subtests.test(type=item["type"]):
            node_type = NODE_TYPES[item["type"]]
            assert item["has_branches"] == node_type.has_branches
            assert item["has_timeout"] == node_type.has_timeout
            assert item["has_retry"] == node_type.has_retry
            schema, example = item["config_schema"], item["config_example"]
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
            assert set(item["literal"]) <= set(schema["properties"])
            jsonschema_rs.validator_for(schema).validate(example)


async def test_examples_without_references_can_be_saved(
    developer: Client, subtests: pytest.Subtests
) -> None:
    listed = (await _get(developer, "/api/v1/workflow-node-types"))["data"]
    examples = {item["type"]: item["config_example"] for item in listed}
    for name in ("condition", "transform", "delay", "approval"):
        with subtests.test(type=name):
            await create_workflow(developer, [{"id": "a", "type": name, "config": examples[name]}])
