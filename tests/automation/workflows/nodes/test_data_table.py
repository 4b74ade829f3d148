"""Nodes that change and read rows of a data table."""

import asyncio
from typing import Any

import pytest

from app.domain.data.tables import rows
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import PATH, create_workflow, run
from tests.automation.workflows.nodes.single_node import build_node, fail_single, run_single
from tests.data.tables.api import TABLES, add_rows, create_table, list_values
from tests.database import fetch_rows, run_sql
from tests.world import Client
from workers.main import WorkerProcess

_ROWS = [{"email": f"{name}@example.com", "visits": n} for n, name in enumerate("abcde")]
_RUN_AGAIN = """
UPDATE work SET state = 'pending', finished_at = NULL, dispatched_at = NULL, attempt = 0,
       lease_token = NULL, lease_until = NULL
WHERE tenant_id = $1 AND kind = 'workflows.node' RETURNING id
"""


@pytest.fixture
async def table(developer: Client, worker: WorkerProcess) -> dict[str, Any]:
    table = await create_table(developer)
    await add_rows(developer, table, *_ROWS)
    return table


async def _run(
    client: Client, table: dict[str, Any], given: dict[str, Any], **config: Any
) -> dict[str, Any]:
    node = await run_single(client, "data_table", {"table_id": table["id"], **config}, given)
    assert node["status"] == "completed", node["error"]
    output: dict[str, Any] = node["output"]
    return output


async def test_a_row_is_inserted_with_the_types_of_its_columns(
    developer: Client, table: dict[str, Any]
) -> None:
    values = {"email": "{{ input.email }}", "visits": "{{ input.n }}", "extra": "{{ input.tags }}"}
    given = {"email": "z@example.com", "n": 9, "tags": ["x", {"y": 1}]}
    row = (await _run(developer, table, given, operation="insert", values=values))["row"]
    assert row["values"]["visits"] == 9
    assert row["values"]["extra"] == ["x", {"y": 1}]
    assert row["values"]["status"] == "new"
    read = await developer.get(f"{TABLES}/{table['id']}/rows/{row['id']}")
    assert read.json()["data"]["values"] == row["values"]


async def test_rows_are_updated_and_deleted_by_their_id_and_by_a_filter(
    developer: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    rows = (await _run(developer, table, {}, operation="query", sort="visits"))["rows"]
    by_id = {"row_id": "{{ input.id }}"}
    with subtests.test("update by id"):
        output = await _run(
            developer,
            table,
            {"id": rows[0]["id"]},
            operation="update",
            values={"visits": 50},
            **by_id,
        )
        assert (output["count"], output["row"]["values"]["visits"]) == (1, 50)
        assert output["row"]["values"]["email"] == "a@example.com"
    with subtests.test("update by filter"):
        filters = {"visits": {"gte": "{{ input.least }}", "lt": 10}}
        changed = {"operation": "update", "filter": filters, "values": {"status": "won"}}
        assert await _run(developer, table, {"least": 3}, **changed) == {"count": 2}
        won = await list_values(developer, table, "email", **{"filter[status][eq]": "won"})
        assert sorted(won) == ["d@example.com", "e@example.com"]
    with subtests.test("delete by id"):
        given = {"id": rows[1]["id"]}
        assert await _run(developer, table, given, operation="delete", **by_id) == {"count": 1}
    with subtests.test("delete by filter"):
        removed = {"operation": "delete", "filter": {"status": "won"}}
        assert await _run(developer, table, {}, **removed) == {"count": 2}
    left = await list_values(developer, table, "email", sort="visits")
    assert left == ["c@example.com", "a@example.com"]


async def test_rows_are_queried_by_filter_sort_and_limit(
    developer: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"filter": {"visits": {"gt": 1}}, "sort": "-visits", "limit": 2}, [4, 3]),
        ({"filter": {"email": "{{ input.email }}"}}, [2]),
        ({"filter": {"visits": {"in": [0, 4]}}, "sort": "visits"}, [0, 4]),
        ({"sort": "visits", "limit": "{{ input.limit }}"}, [0]),
        ({"row_id": "{{ input.id }}"}, [1]),
    ]
    rows = (await _run(developer, table, {}, operation="query", sort="visits"))["rows"]
    values = {"email": "c@example.com", "limit": 1, "id": rows[1]["id"]}
    for config, expected in cases:
        with subtests.test(str(config)):
            output = await _run(developer, table, values, operation="query", **config)
            assert [row["values"]["visits"] for row in output["rows"]] == expected
            assert output["count"] == len(expected)


async def test_what_the_table_refuses_fails_the_node(
    developer: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    email = {"email": "{{ input.email }}"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"operation": "insert", "values": email}, "conflict"),
        ({"operation": "insert", "values": {**email, "visits": "many"}}, "validation_error"),
        ({"operation": "insert", "values": "{{ input.unknown }}"}, "validation_error"),
        ({"operation": "query", "filter": "{{ input.unknown }}"}, "validation_error"),
        ({"operation": "query", "sort": "{{ input.email }}"}, "validation_error"),
        ({"operation": "query", "limit": "{{ input.email }}"}, "invalid_config"),
        ({"operation": "update", "values": {"visits": 1}, "row_id": "row_x"}, "row_not_found"),
        ({"operation": "delete", "row_id": "row_x"}, "row_not_found"),
    ]
    for config, code in cases:
        with subtests.test(str(config)):
            full = {"table_id": table["id"], **config}
            given = {"email": "a@example.com", "unknown": {"unknown": 1}}
            found = await fail_single(developer, "data_table", full, given)
            assert found == code
    assert len(await list_values(developer, table, "email")) == len(_ROWS)


async def test_a_query_of_rows_that_are_too_large_together_fails_the_node(
    developer: Client, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await create_table(developer, [{"name": "text", "type": "text"}])
    await add_rows(developer, table, *({"text": "x" * 60_000} for _ in range(3)))
    query = {"table_id": table["id"], "operation": "query"}
    monkeypatch.setattr(rows, "MAX_QUERY_BYTES", 130_000)
    assert await fail_single(developer, "data_table", query) == "output_too_large"
    assert (await _run(developer, table, {}, operation="query", limit=2))["count"] == 2


async def test_input_cannot_change_what_a_filter_compares(
    developer: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    """Input may come from anybody who knows the address of a webhook."""
    by_column = {"filter": {"email": "{{ input.value }}"}}
    by_operator = {"filter": {"email": {"eq": "{{ input.value }}"}}}
    as_a_whole = {"filter": "{{ input.value }}"}
    delete = {"table_id": table["id"], "operation": "delete"}
    for config, value in (
        (by_column, {"ne": "nobody"}),
        (by_column, {}),
        (by_operator, {"ne": "nobody"}),
        (as_a_whole, {}),
    ):
        with subtests.test(f"{config} {value}"):
            given = {"value": value}
            code = await fail_single(developer, "data_table", {**delete, **config}, given)
            assert code == "validation_error"
    assert len(await list_values(developer, table, "email")) == len(_ROWS)
    given = {"value": {"email": "a@example.com"}}
    assert await _run(developer, table, given, operation="delete", **as_a_whole) == {"count": 1}
    assert await _run(developer, table, {}, operation="delete", filter={}) == {"count": 4}


async def test_input_without_a_value_does_not_change_the_rows_without_one(
    developer: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    """A template yields null for a field that the input does not have."""
    delete = {"operation": "delete"}
    update = {"operation": "update", "values": {"visits": 0}}
    filters: list[Any] = [
        {"score": "{{ input.score }}"},
        {"score": {"eq": "{{ input.score }}"}},
        {"score": {"ne": "{{ input.score }}"}},
        "{{ input.filter }}",
    ]
    values = {"filter": {"score": None}}
    for config in (delete, update):
        for filter_ in filters:
            with subtests.test(operation=config["operation"], filter=filter_):
                full = {"table_id": table["id"], **config, "filter": filter_}
                code = await fail_single(developer, "data_table", full, values)
                assert code == "validation_error"
    with subtests.test("a query"):
        output = await _run(developer, table, {}, operation="query", filter=filters[0])
        assert output["count"] == len(_ROWS)
    with subtests.test("null of the author"):
        updated = await _run(developer, table, {}, **update, filter={"score": None})
        assert updated == {"count": len(_ROWS)}
        deleted = await _run(developer, table, {}, **delete, filter={"score": {"is_null": True}})
        assert deleted == {"count": len(_ROWS)}


async def test_a_table_of_nobody_or_of_another_tenant_is_refused(
    developer: Client, admin: Client, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    foreign, own = await create_table(admin), await create_table(developer)
    config = {"operation": "insert", "values": {"email": "x@example.com"}}
    with subtests.test("when it is saved"):
        nodes = [build_node("data_table", {"table_id": foreign["id"], **config})]
        error = refused(
            await developer.post(PATH, {"name": "Orders", "nodes": nodes}), 422, "validation_error"
        )
        assert error["details"] == {"nodes.0.config.table_id": "this data table does not exist"}
    with subtests.test("when it runs"):
        nodes = [build_node("data_table", {"table_id": own["id"], **config})]
        workflow = await create_workflow(developer, nodes)
        assert (await developer.delete(f"{TABLES}/{own['id']}")).status_code == 204
        record = await run(developer, workflow["id"])
        assert record["error"]["code"] == "data_table_not_found"
    assert await list_values(admin, foreign, "email") == []


async def test_a_workflow_that_names_a_column_its_table_does_not_have_is_not_saved(
    developer: Client, subtests: pytest.Subtests
) -> None:
    columns = [{"name": "a", "type": "text"}, {"name": "b", "type": "integer"}]
    table_id = (await create_table(developer, columns))["id"]
    message = "the table has no column 'x'; its columns are a, b"
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"operation": "insert", "values": {"a": "1", "x": "{{ input.x }}"}}, "values.x"),
        ({"operation": "query", "filter": {"x": {"gt": 1}}}, "filter.x"),
        ({"operation": "query", "sort": "-x"}, "sort"),
        ({"operation": "insert", "values": "{{ input.values }}"}, None),
        ({"operation": "query", "filter": "{{ input.filter }}"}, None),
        ({"operation": "query", "sort": "{{ input.sort }}"}, None),
        ({"operation": "query", "sort": "-b", "filter": {"a": "1"}}, None),
        ({"operation": "query", "sort": "updated_at", "filter": {"created_at": "x"}}, None),
    ]
    for config, path in cases:
        with subtests.test(config=config):
            nodes = [build_node("data_table", {"table_id": table_id, **config})]
            answer = await developer.post(PATH, {"name": "Orders", "nodes": nodes})
            if path is None:
                assert answer.status_code == 201, answer.text
            else:
                error = refused(answer, 422, "validation_error")
                assert error["details"] == {f"nodes.0.config.{path}": message}


async def test_a_node_takes_effect_once_when_its_work_is_delivered_twice(
    developer: Client, table: dict[str, Any], worker: WorkerProcess, services: Services
) -> None:
    values = {"email": "{{ input.email }}"}
    output = await _run(
        developer, table, {"email": "z@example.com"}, operation="insert", values=values
    )
    ids = [row["id"] for row in await run_sql(services, _RUN_AGAIN, developer.tenant_id)]
    assert len(ids) == 1
    await asyncio.gather(*(worker.runner.run(ids[0]) for _ in range(3)))
    sql = "SELECT state FROM work WHERE id = $1"
    assert await fetch_rows(services, sql, ids[0]) == [{"state": "done"}]
    stored = await list_values(developer, table, "email", **{"filter[email][eq]": "z@example.com"})
    assert stored == [output["row"]["values"]["email"]]
