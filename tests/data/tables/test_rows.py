"""Rows: created, shown, changed and deleted."""

from typing import Any

import pytest

from tests.assertions import refused
from tests.data.tables.api import ANN, TABLES, add_rows, create_table, list_rows, rows_path
from tests.world import Client


async def test_a_row_is_shown_as_it_was_stored(developer: Client) -> None:
    table = await create_table(developer)
    answer = await developer.post(rows_path(table), {"values": ANN})
    assert answer.status_code == 201, answer.text
    row = answer.json()["data"]
    assert row["id"].startswith("row_")
    assert row["values"] == ANN
    shown = await developer.get(f"{rows_path(table)}/{row['id']}")
    assert shown.json()["data"] == row
    assert (await list_rows(developer, table))["data"] == [row]
    assert (await developer.get(f"{TABLES}/{table['id']}")).json()["data"]["row_count"] == 1


async def test_a_default_fills_a_value_that_is_left_out_but_not_null(developer: Client) -> None:
    table = await create_table(developer)
    rows = await add_rows(
        developer, table, {"email": "a"}, {"email": "b", "status": None}, {"email": "c"}
    )
    assert [row["values"]["status"] for row in rows] == ["new", None, "new"]


_WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "email", "is required"),
    ({"email": ""}, "email", "is required"),
    ({"email": None}, "email", "is required"),
    ({"email": 7}, "email", "must be a string"),
    ({"email": "a\U0010ffff"}, "email", "U+10FFFF"),
    ({"email": "a", "nothing": 1}, "nothing", "no column"),
    ({"email": "a", "score": "7"}, "score", "must be a number"),
    ({"email": "a", "score": True}, "score", "must be a number"),
    ({"email": "a", "visits": 2.5}, "visits", "whole number"),
    ({"email": "a", "visits": 2**53}, "visits", "between"),
    ({"email": "a", "active": "true"}, "active", "true or false"),
    ({"email": "a", "born": "2026-02-30"}, "born", "date"),
    ({"email": "a", "seen": "yesterday"}, "seen", "time"),
    ({"email": "a", "status": "open"}, "status", "one of new, won, lost"),
    ({"email": "a", "photo": "fil_none"}, "photo", "does not exist"),
    ({"email": "a", "photo": 7}, "photo", "id of a file"),
]


async def test_a_wrong_value_is_refused_with_the_path_of_its_column(
    developer: Client, subtests: pytest.Subtests
) -> None:
    table = await create_table(developer)
    for values, column, message in _WRONG:
        with subtests.test(values=values):
            answer = await developer.post(rows_path(table), {"values": values})
            error = refused(answer, 422, "validation_error")
            assert message in error["details"][f"values.{column}"]
    assert (await list_rows(developer, table))["data"] == []


async def test_json_that_nests_too_deep_is_refused(developer: Client) -> None:
    table = await create_table(developer, [{"name": "extra", "type": "json"}])
    value: Any = 1
    for _ in range(17):
        value = [value]
    refused(
        await developer.post(rows_path(table), {"values": {"extra": value}}),
        422,
        "validation_error",
    )
    answer = await developer.post(rows_path(table), {"values": {"extra": value[0]}})
    assert answer.json()["data"]["values"]["extra"] == value[0]


async def test_a_required_json_column_takes_every_kind_of_json_but_null(
    developer: Client, subtests: pytest.Subtests
) -> None:
    table = await create_table(developer, [{"name": "extra", "type": "json", "required": True}])
    values: list[Any] = [{"a": [1]}, [1], [], {}, 0, False, "x"]
    for value in values:
        with subtests.test(value=value):
            answer = await developer.post(rows_path(table), {"values": {"extra": value}})
            assert answer.status_code == 201, answer.text
            assert answer.json()["data"]["values"]["extra"] == value
    for missing in (None, ""):
        answer = await developer.post(rows_path(table), {"values": {"extra": missing}})
        refused(answer, 422, "validation_error")


async def test_json_with_numbers_that_take_many_digits_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    table = await create_table(developer, [{"name": "extra", "type": "json"}])
    for number in (1e308, -1e21, 1e-300, -1e-21, 2**63, -(2**63) - 1):
        with subtests.test(number=number):
            body = {"values": {"extra": {"a": [0, number]}}}
            error = refused(await developer.post(rows_path(table), body), 422, "validation_error")
            assert "1e20" in error["details"]["values.extra"]
    numbers = [0, 0.0, 1e20, -1e20, 1e-20, 1.5, 2**63 - 1, -(2**63)]
    answer = await developer.post(rows_path(table), {"values": {"extra": numbers}})
    assert answer.json()["data"]["values"]["extra"] == numbers


async def test_a_row_of_more_than_64_kib_is_refused(developer: Client) -> None:
    table = await create_table(developer, [{"name": "text", "type": "text"}])
    for letters, status in ((65_000, 201), (66_000, 422)):
        answer = await developer.post(rows_path(table), {"values": {"text": "x" * letters}})
        assert answer.status_code == status


async def test_a_row_whose_json_has_more_than_5000_elements_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    """Small elements take many times their length once they are decoded."""
    columns = [{"name": name, "type": "json"} for name in ("extra", "other")]
    table = await create_table(developer, columns)
    large: list[tuple[dict[str, Any], str]] = [
        ({"extra": [[] for _ in range(5000)]}, "values.extra"),
        ({"extra": {str(number): 1 for number in range(2500)}}, "values.extra"),
        ({"extra": [[[1, 2]] for _ in range(1250)]}, "values.extra"),
        ({"extra": [0] * 3000, "other": [0] * 3000}, "values"),
    ]
    for values, path in large:
        with subtests.test(path=path):
            answer = await developer.post(rows_path(table), {"values": values})
            error = refused(answer, 422, "validation_error")
            assert "at most 5,000 elements" in error["details"][path]
    [row] = await add_rows(developer, table, {"extra": [0] * 3000, "other": [0] * 1998})
    answer = await developer.http.patch(
        f"{rows_path(table)}/{row['id']}", json={"values": {"extra": [0] * 3001}}
    )
    refused(answer, 422, "validation_error")


async def test_defaults_of_many_elements_are_refused(developer: Client) -> None:
    """Each of many new rows would have them."""
    columns = [
        {"name": name, "type": "json", "default": [0] * count}
        for name, count in (("extra", 250), ("other", 249))
    ]
    body = {"name": "Leads", "columns": columns}
    error = refused(await developer.post(TABLES, body), 422, "validation_error")
    assert "at most 500 elements" in error["details"]["columns"]
    columns[0]["default"] = [0] * 249
    await create_table(developer, columns)


async def test_of_many_rows_all_are_stored_or_none(developer: Client) -> None:
    table = await create_table(developer)
    rows = [{"email": f"{number}@example.com"} for number in range(500)]
    wrong = [*rows[:3], {"email": "x", "score": "high"}]
    error = refused(
        await developer.post(rows_path(table), {"rows": wrong}), 422, "validation_error"
    )
    assert list(error["details"]) == ["rows.3.values.score"]
    twice = [*rows[:3], rows[1]]
    error = refused(await developer.post(rows_path(table), {"rows": twice}), 409, "conflict")
    assert list(error["details"]) == ["rows.3.values.email"]
    assert (await list_rows(developer, table))["pagination"]["total"] == 0
    stored = await add_rows(developer, table, *rows)
    assert [row["values"]["email"] for row in stored] == [row["email"] for row in rows]
    assert (await list_rows(developer, table))["pagination"]["total"] == 500
    answer = await developer.post(rows_path(table), {"rows": [*rows, rows[0]]})
    refused(answer, 422, "validation_error")


async def test_a_body_has_either_one_row_or_many(developer: Client) -> None:
    table = await create_table(developer)
    bodies: tuple[dict[str, Any], ...] = (
        {},
        {"values": {"email": "a"}, "rows": [{"email": "b"}]},
        {"rows": []},
    )
    for body in bodies:
        refused(await developer.post(rows_path(table), body), 422, "validation_error")


async def test_a_unique_value_is_stored_once(developer: Client) -> None:
    table = await create_table(
        developer,
        [{"name": "code", "type": "number", "unique": True}, {"name": "n", "type": "text"}],
    )
    one, two = await add_rows(developer, table, {"code": 1}, {"code": 2})
    await add_rows(developer, table, {"n": "without a code"}, {"n": "another"})
    error = refused(
        await developer.post(rows_path(table), {"values": {"code": 1.0}}), 409, "conflict"
    )
    assert "unique" in error["details"]["values.code"]
    path = f"{rows_path(table)}/{two['id']}"
    refused(await developer.http.patch(path, json={"values": {"code": 1}}), 409, "conflict")
    same = await developer.http.patch(path, json={"values": {"code": 2, "n": "x"}})
    assert same.json()["data"]["values"] == {"code": 2, "n": "x"}
    await developer.delete(f"{rows_path(table)}/{one['id']}")
    assert (await developer.http.patch(path, json={"values": {"code": 1}})).status_code == 200


async def test_long_texts_are_unique_by_all_their_characters(developer: Client) -> None:
    table = await create_table(developer, [{"name": "text", "type": "text", "unique": True}])
    start = "ä" * 3000
    await add_rows(developer, table, {"text": start + "1"}, {"text": start + "2"})
    answer = await developer.post(rows_path(table), {"values": {"text": start + "1"}})
    refused(answer, 409, "conflict")


async def test_a_patch_changes_some_values_and_a_put_all(developer: Client) -> None:
    table = await create_table(developer)
    [row] = await add_rows(developer, table, ANN)
    path = f"{rows_path(table)}/{row['id']}"
    changed = await developer.http.patch(path, json={"values": {"score": 9, "born": None}})
    assert changed.json()["data"]["values"] == ANN | {"score": 9, "born": None}
    assert changed.json()["data"]["updated_at"] > row["updated_at"]
    replaced = (await developer.put(path, {"values": {"email": "b"}})).json()["data"]
    empty = dict.fromkeys(ANN)
    assert replaced["values"] == {**empty, "email": "b", "status": "new"}
    refused(await developer.put(path, {"values": {"score": 1}}), 422, "validation_error")
    refused(
        await developer.http.patch(path, json={"values": {"email": None}}), 422, "validation_error"
    )


async def test_a_deleted_row_is_gone(developer: Client) -> None:
    table = await create_table(developer)
    [row] = await add_rows(developer, table, ANN)
    path = f"{rows_path(table)}/{row['id']}"
    assert (await developer.delete(path)).status_code == 204
    for answer in (
        await developer.get(path),
        await developer.delete(path),
        await developer.put(path, {"values": ANN}),
    ):
        refused(answer, 404, "row_not_found")
    assert (await list_rows(developer, table))["pagination"]["total"] == 0


async def test_the_rows_of_an_unknown_table_are_not_found(developer: Client) -> None:
    path = f"{TABLES}/tbl_none/rows"
    for answer in (
        await developer.get(path),
        await developer.get(f"{path}/row_none"),
        await developer.post(path, {"values": {}}),
        await developer.delete(f"{path}/row_none"),
    ):
        refused(answer, 404, "data_table_not_found")


async def test_a_request_with_the_same_key_adds_a_row_once(developer: Client) -> None:
    table = await create_table(developer, [{"name": "n", "type": "integer"}])
    headers = {"Idempotency-Key": "one"}
    answers = [
        await developer.post(rows_path(table), {"values": {"n": 1}}, headers=headers)
        for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert (await list_rows(developer, table))["pagination"]["total"] == 1


async def test_a_full_table_takes_no_more_rows(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.data.tables.rows.MAX_ROWS", 3)
    table = await create_table(developer, [{"name": "n", "type": "integer"}])
    rows = await add_rows(developer, table, {"n": 1}, {"n": 2}, {"n": 3})
    refused(await developer.post(rows_path(table), {"values": {"n": 4}}), 409, "table_full")
    await developer.delete(f"{rows_path(table)}/{rows[0]['id']}")
    await add_rows(developer, table, {"n": 4})
