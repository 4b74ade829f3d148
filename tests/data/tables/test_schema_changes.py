"""Tables, and changes of their columns with rows in them."""

from typing import Any

import pytest

from app.domain.data.tables import queries, schema_changes
from app.domain.data.tables.area import AREA
from app.services import Services
from db import fast, retention
from db.session import Tx
from tests.assertions import refused
from tests.data.tables.api import TABLES, add_rows, create_table, list_values, rows_path
from tests.database import fetch_rows, run_sql
from tests.platform.files.api import upload
from tests.world import Client, World

TEXT: dict[str, Any] = {"name": "a", "type": "text"}


async def _change(client: Client, table: dict[str, Any], *columns: dict[str, Any]) -> Any:
    return await client.put(f"{TABLES}/{table['id']}", {"columns": list(columns)})


async def test_wrong_columns_are_refused(developer: Client, subtests: pytest.Subtests) -> None:
    wrong: list[tuple[list[dict[str, Any]], str]] = [
        ([], "columns"),
        ([TEXT, {"name": "A", "type": "text"}], "columns.1.name"),
        ([{"name": "a[b", "type": "text"}], "columns.0.name"),
        ([{"name": "created_at", "type": "text"}], "columns.0.name"),
        ([{"name": "a", "type": "list"}], "columns.0.type"),
        ([{"name": "a", "type": "select"}], "columns.0.options"),
        ([{**TEXT, "options": ["x"]}], "columns.0.options"),
        ([{"name": "a", "type": "integer", "default": "x"}], "columns.0.default"),
        ([{"name": "a", "type": "json", "unique": True}], "columns.0.unique"),
        ([{"name": "a", "type": "json", "indexed": True}], "columns.0.indexed"),
        (
            [{"name": f"a{n}", "type": "text", "indexed": True} for n in range(7)],
            "columns.6.indexed",
        ),
        ([{"name": f"a{n}", "type": "text", "unique": True} for n in range(5)], "columns.4.unique"),
        ([{"name": f"a{n}", "type": "text"} for n in range(51)], "columns"),
    ]
    for columns, field in wrong:
        with subtests.test(field=field):
            answer = await developer.post(TABLES, {"name": "T", "columns": columns})
            assert field in refused(answer, 422, "validation_error")["details"]


async def test_columns_with_large_defaults_or_options_are_refused(developer: Client) -> None:
    default = {"name": "a", "type": "text", "default": "x" * 66_000}
    small = {"name": "a", "type": "text", "default": "x" * 20_000}
    options = [f"{number:04}" + "x" * 96 for number in range(200)]
    select = {"type": "select", "options": options}
    for columns in (
        [default],
        [{**small, "name": f"a{n}"} for n in range(4)],
        [{"name": f"a{n}", **select} for n in range(4)],
    ):
        answer = await developer.post(TABLES, {"name": "T", "columns": columns})
        assert "columns" in refused(answer, 422, "validation_error")["details"]
    table = await create_table(developer, [small])
    answer = await _change(developer, table, {"id": "c1", "default": "x" * 66_000})
    assert "columns" in refused(answer, 422, "validation_error")["details"]
    assert (await developer.post(rows_path(table), {"values": {}})).status_code == 201


async def test_a_seventh_text_column_has_no_index(developer: Client) -> None:
    table = await create_table(developer, [{"name": f"a{n}", "type": "text"} for n in range(7)])
    assert [column["indexed"] for column in table["columns"]] == [True] * 6 + [False]


async def test_a_renamed_column_keeps_its_values(developer: Client) -> None:
    table = await create_table(developer, [TEXT])
    await add_rows(developer, table, {"a": "x"})
    answer = await _change(developer, table, {"id": "c1", "name": "b"})
    assert answer.json()["data"]["columns"][0] == {**table["columns"][0], "name": "b"}
    assert await list_values(developer, table, "b", **{"filter[b]": "x"}) == ["x"]


async def test_one_change_renames_a_column_and_adds_another_with_its_name(
    developer: Client,
) -> None:
    for columns in (({"id": "c1", "name": "b"}, TEXT), (TEXT, {"id": "c1", "name": "b"})):
        table = await create_table(developer, [TEXT])
        await add_rows(developer, table, {"a": "x"})
        answer = await _change(developer, table, *columns)
        assert answer.status_code == 200, answer.text
        assert {item["name"]: item["id"] for item in answer.json()["data"]["columns"]} == {
            "b": "c1",
            "a": "c2",
        }
        assert await list_values(developer, table, "b") == ["x"]
        assert await list_values(developer, table, "a") == [None]
    answer = await _change(developer, table, {"id": "c1"}, {"name": "b", "type": "text"})
    assert "columns.1.name" in refused(answer, 422, "validation_error")["details"]


async def test_a_dropped_column_does_not_come_back(developer: Client, services: Services) -> None:
    table = await create_table(developer, [TEXT, {"name": "b", "type": "text", "unique": True}])
    await add_rows(developer, table, {"a": "x", "b": "secret"}, {"a": "y", "b": "other"})
    assert (await _change(developer, table, {"id": "c1"})).status_code == 200
    stored = await fetch_rows(
        services, "SELECT values, u1 FROM data_rows WHERE table_id = $1", table["id"]
    )
    assert [list(row["values"]) for row in stored] == [["c1"], ["c1"]]
    again = {"name": "b", "type": "text", "unique": True}
    answer = await _change(developer, table, {"id": "c1"}, again)
    assert [item["id"] for item in answer.json()["data"]["columns"]] == ["c1", "c3"]
    assert await list_values(developer, table, "b") == [None, None]
    await add_rows(developer, table, {"b": "secret"})


async def test_a_new_column_is_filtered_by_its_index(developer: Client) -> None:
    table = await create_table(developer, [TEXT])
    await add_rows(developer, table, {"a": "x"}, {"a": "y"})
    column = {"name": "n", "type": "integer", "required": True, "default": 5}
    refusal = await _change(developer, table, TEXT, {**column, "default": None})
    assert "columns.1.required" in refused(refusal, 422, "validation_error")["details"]
    assert (await _change(developer, table, TEXT, column)).status_code == 200
    await add_rows(developer, table, {"a": "z", "n": 6})
    assert await list_values(developer, table, "a", **{"filter[n]": "5"}) == ["y", "x"]
    added = {"name": "m", "type": "integer"}
    assert (await _change(developer, table, {"id": "c1"}, {"id": "c2"}, added)).status_code == 200
    assert await list_values(developer, table, "a", **{"filter[m][is_null]": "true"}) == [
        *("z", "y", "x")
    ]


async def test_a_column_that_becomes_required_is_filled_and_found_by_its_default(
    developer: Client, subtests: pytest.Subtests
) -> None:
    columns: list[dict[str, Any]] = [TEXT, {"name": "n", "type": "integer"}]
    for indexed in (True, False):
        with subtests.test(indexed=indexed):
            table = await create_table(
                developer, [{**item, "indexed": indexed} for item in columns]
            )
            await add_rows(developer, table, {"a": "", "n": 1}, {"a": "y"}, {"n": 3})
            text = {"id": "c1", "required": True, "default": "x"}
            assert (await _change(developer, table, text, {"id": "c2"})).status_code == 200
            assert await list_values(developer, table, "a") == ["x", "y", "x"]
            assert await list_values(developer, table, "n", **{"filter[a]": "x"}) == [3, 1]
            number = {"id": "c2", "required": True, "default": 7}
            assert (await _change(developer, table, {"id": "c1"}, number)).status_code == 200
            assert await list_values(developer, table, "n", sort="n") == [1, 3, 7]
            assert await list_values(developer, table, "a", **{"filter[n]": "7"}) == ["y"]


async def test_a_type_is_changed_when_every_value_can_be_converted(
    developer: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, Any, str, Any]] = [
        ("text", "12", "integer", 12),
        ("text", "1.5", "number", 1.5),
        ("integer", 7, "text", "7"),
        ("boolean", True, "integer", 1),
        ("text", "no", "boolean", False),
        ("text", "2026-01-02", "date", "2026-01-02"),
        ("datetime", "2026-01-02T10:00:00Z", "date", "2026-01-02"),
        ("date", "2026-01-02", "datetime", "2026-01-02T00:00:00Z"),
        ("json", {"a": 1}, "text", '{"a":1}'),
        ("number", 2, "json", 2),
    ]
    for old, value, new, expected in cases:
        with subtests.test(old=old, new=new):
            table = await create_table(developer, [{"name": "v", "type": old}])
            await add_rows(developer, table, {"v": value}, {"v": None})
            answer = await _change(developer, table, {"id": "c1", "type": new})
            assert answer.status_code == 200, answer.text
            assert await list_values(developer, table, "v") == [None, expected]
            if new != "json":
                assert await list_values(developer, table, "v", sort="v") == [expected, None]


async def test_a_change_that_rows_contradict_names_examples(developer: Client) -> None:
    table = await create_table(developer, [TEXT])
    first, second, third = await add_rows(developer, table, {"a": "1"}, {"a": "x"}, {"a": "1"})
    [empty] = await add_rows(developer, table, {})
    for change, field, row in (
        ({"type": "integer"}, "type", second),
        ({"unique": True}, "unique", third),
        ({"required": True}, "required", empty),
        ({"type": "select", "options": ["1"]}, "type", second),
    ):
        answer = await _change(developer, table, {"id": "c1", **change})
        details = refused(answer, 422, "validation_error")["details"]
        assert row["id"] in details[f"columns.0.{field}"]
    for row in (second, first, empty):
        await developer.delete(f"{rows_path(table)}/{row['id']}")
    strict = {"id": "c1", "type": "integer", "unique": True, "required": True}
    assert (await _change(developer, table, strict)).status_code == 200
    refused(await developer.post(rows_path(table), {"values": {"a": 1}}), 409, "conflict")


async def test_a_change_writes_every_row_once_in_batches(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_changes, "_BATCH", 2)
    execute, counts = fast.execute, list[int]()

    async def count(tx: Tx, tenant: str | None, sql: str, *args: object) -> int:
        changed = await execute(tx, tenant, sql, *args)
        if "UPDATE data_rows" in sql:
            counts.append(changed)
        return changed

    table = await create_table(developer, [TEXT, {"name": "b", "type": "text"}])
    await add_rows(developer, table, *({"a": str(n), "b": f"0{n}"} for n in range(5)))
    monkeypatch.setattr(fast, "execute", count)
    changes = (
        {"id": "c1", "type": "integer", "unique": True},
        {"id": "c2", "type": "number"},
        {"name": "n", "type": "integer", "required": True, "default": 7},
    )
    assert (await _change(developer, table, *changes)).status_code == 200
    assert [number for number in counts if number] == [2, 2, 1]
    for name in ("a", "b"):
        assert await list_values(developer, table, name, sort=name) == [0, 1, 2, 3, 4]
        assert await list_values(developer, table, name, **{f"filter[{name}]": "3"}) == [3]
    assert await list_values(developer, table, "n", **{"filter[n]": "7"}) == [7] * 5
    refused(await developer.post(rows_path(table), {"values": {"a": 3, "n": 1}}), 409, "conflict")


async def test_values_that_are_equal_after_a_conversion_are_no_unique_ones(
    developer: Client,
) -> None:
    table = await create_table(developer, [{**TEXT, "unique": True}])
    rows = await add_rows(developer, table, {"a": "1"}, {"a": "2"}, {"a": "01"})
    answer = await _change(developer, table, {"id": "c1", "type": "integer"})
    details = refused(answer, 422, "validation_error")["details"]
    assert rows[2]["id"] in details["columns.0.unique"]
    assert await list_values(developer, table, "a", sort="a") == ["01", "1", "2"]


async def test_a_text_becomes_a_file_only_if_the_tenant_has_it(
    developer: Client, world: World
) -> None:
    table = await create_table(developer, [TEXT])
    own, foreign = await upload(developer), await upload(await world.user("agent_developer"))
    rows = await add_rows(developer, table, {"a": own["id"]}, {"a": foreign["id"]}, {})
    change = {"id": "c1", "type": "file"}
    details = refused(await _change(developer, table, change), 422, "validation_error")["details"]
    assert details["columns.0.type"].endswith(f": {rows[1]['id']}")
    await developer.delete(f"{rows_path(table)}/{rows[1]['id']}")
    assert (await _change(developer, table, change)).status_code == 200
    assert await list_values(developer, table, "a") == [None, own["id"]]


async def test_a_large_table_is_not_rewritten(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.data.tables.schema_changes.MAX_REWRITTEN_ROWS", 1)
    table = await create_table(developer, [TEXT])
    await add_rows(developer, table, {"a": "1"}, {"a": "2"})
    for change in ({"type": "integer"}, {"unique": True}):
        answer = await _change(developer, table, {"id": "c1", **change})
        refused(answer, 409, "table_too_large")
    answer = await _change(
        developer, table, {"id": "c1", "name": "b"}, {"name": "n", "type": "date"}
    )
    assert [item["indexed"] for item in answer.json()["data"]["columns"]] == [True, False]
    assert (await _change(developer, table, {"name": "n"})).status_code == 200
    assert await list_values(developer, table, "n") == [None, None]


async def test_a_write_waits_only_briefly_for_a_change_of_columns(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_LOCK_ATTEMPTS", 2)
    table = await create_table(developer, [TEXT])
    async with services.db.tx(developer.tenant_id) as tx:
        assert await queries.find_for_change(tx, table["id"]) is not None
        answer = await developer.post(rows_path(table), {"values": {"a": "x"}})
        refused(answer, 503, "table_locked")
        assert answer.headers["retry-after"] == "2"
        assert await list_values(developer, table, "a") == []
    await add_rows(developer, table, {"a": "x"})


async def test_a_deleted_table_is_hidden_and_its_rows_are_removed(
    developer: Client, services: Services
) -> None:
    table = await create_table(developer, [TEXT])
    await add_rows(developer, table, {"a": "1"})
    path = f"{TABLES}/{table['id']}"
    assert (await developer.delete(path)).status_code == 204
    for answer in (
        await developer.get(path),
        await developer.put(path, {"name": "x"}),
        await developer.delete(path),
        await developer.get(f"{path}/rows"),
        await developer.get(f"{path}/export"),
        await developer.get(f"{path}/imports"),
    ):
        refused(answer, 404, "data_table_not_found")
    assert (await developer.get(TABLES)).json()["data"] == []
    old = "UPDATE data_tables SET deleted_at = now() - interval '1 hour' WHERE id = $1"
    await run_sql(services, old, table["id"])
    async with services.db.tx(developer.tenant_id, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), AREA.retention)
    for name, column in (("data_rows", "table_id"), ("data_tables", "id")):
        sql = f"SELECT 1 FROM {name} WHERE {column} = $1"
        assert await fetch_rows(services, sql, table["id"]) == []
