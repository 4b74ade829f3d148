"""Options of fields, from the form itself and from data tables."""

from typing import Any

import pytest

from app.domain.forms.definition import options
from app.services import Services
from tests.assertions import refused
from tests.data.tables.api import TABLES, add_rows, create_table
from tests.database import run_sql
from tests.forms.api import (
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    act,
    create_form,
    list_options,
    problems,
    send,
    submit,
    update_form,
)
from tests.world import Client

COLUMNS = [
    {"name": "code", "type": "text"},
    {"name": "city", "type": "text"},
    {"name": "size", "type": "number"},
    {"name": "open", "type": "boolean"},
    {"name": "extra", "type": "json"},
]
CITIES: list[dict[str, Any]] = [
    {"code": "p", "city": "Paris", "size": 2, "open": True},
    {"code": "r", "city": "rome", "size": 2.5, "open": False},
    {"code": "o", "city": "Oslo", "size": 7},
]
ORDERED = [
    {"value": "o", "label": "Oslo"},
    {"value": "p", "label": "Paris"},
    {"value": "r", "label": "rome"},
]
_REFUSED = "must be one of the options"


@pytest.fixture
async def table(developer: Client) -> dict[str, Any]:
    table = await create_table(developer, COLUMNS)
    await add_rows(developer, table, *CITIES)
    return table


def _choose(table: dict[str, Any], kind: str = "select", **more: Any) -> dict[str, Any]:
    source = {"table_id": table["id"], "value_column": "code", "label_column": "city", **more}
    return {"id": "city", "type": kind, "label": "City", "data_source": source}


async def _list_public(client: Client, form: dict[str, Any], field_id: str = "city") -> Any:
    answer = await client.get(f"{PUBLIC}/{form['slug']}/fields/{field_id}/options")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_rows_are_options_in_the_order_of_their_labels(
    developer: Client, anonymous: Client, table: dict[str, Any]
) -> None:
    form = await create_form(developer, _choose(table))
    assert await list_options(developer, form, "city") == ORDERED
    assert await _list_public(anonymous, form) == ORDERED
    shown = (await anonymous.get(f"{PUBLIC}/{form['slug']}")).json()["data"]["fields"][0]
    assert (shown["has_data_source"], shown["options"]) == (True, [])
    assert table["id"] not in str(shown)


async def test_options_of_the_form_itself_are_listed_in_its_order(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TOPIC)
    assert await list_options(developer, form, "topic") == TOPIC["options"]
    assert await _list_public(anonymous, form, "topic") == TOPIC["options"]


async def test_a_new_row_is_an_option_at_once(
    developer: Client, anonymous: Client, table: dict[str, Any]
) -> None:
    form = await create_form(developer, _choose(table))
    assert problems(await send(anonymous, form, {"city": "l"})) == {"city": _REFUSED}
    (row,) = await add_rows(developer, table, {"code": "l", "city": "Lyon"})
    assert {"value": "l", "label": "Lyon"} in await _list_public(anonymous, form)
    await submit(anonymous, form, {"city": "l"})
    await developer.delete(f"{TABLES}/{table['id']}/rows/{row['id']}")
    assert problems(await send(anonymous, form, {"city": "l"})) == {"city": _REFUSED}


async def test_an_answer_outside_of_the_options_is_refused(
    developer: Client, anonymous: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    answers: list[tuple[str, Any, bool]] = [
        ("select", "p", True),
        ("select", "Paris", False),
        ("select", "P", False),
        ("radio", "r", True),
        ("radio", "x", False),
        ("multi_select", ["p", "o"], True),
        ("multi_select", ["p", "x"], False),
        ("checkbox_group", ["r"], True),
        ("checkbox_group", ["x"], False),
    ]
    for kind, value, is_accepted in answers:
        with subtests.test(kind=kind, value=value):
            form = await create_form(developer, _choose(table, kind))
            answer = await send(anonymous, form, {"city": value})
            body = {"data": {"city": value}}
            own = await developer.post(f"{PATH}/{form['id']}/submit", body)
            if is_accepted:
                assert (answer.status_code, own.status_code) == (201, 201)
            else:
                assert problems(answer) == problems(own) == {"city": _REFUSED}


async def test_values_of_each_type_of_column_are_texts(
    developer: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    await add_rows(developer, table, {"city": "No value"}, {"code": " p ", "city": "Second Paris"})
    await add_rows(developer, table, {"code": "n"}, {"code": "", "city": "Empty"})
    await add_rows(developer, table, {"code": "j", "extra": {"a": 1}})
    expected = {
        "code": ["j", "n", "o", "p", "r"],
        "size": ["2", "2.5", "7"],
        "open": ["false", "true"],
        "extra": [],
    }
    for column, values in expected.items():
        with subtests.test(column=column):
            form = await create_form(developer, _choose(table, value_column=column))
            found = await list_options(developer, form, "city")
            assert sorted(option["value"] for option in found) == values
            assert all(option["label"] for option in found)


async def test_a_deleted_table_has_no_options(
    developer: Client, anonymous: Client, table: dict[str, Any]
) -> None:
    form = await create_form(developer, TEXT, _choose(table))
    assert (await developer.delete(f"{TABLES}/{table['id']}")).status_code == 204
    assert await list_options(developer, form, "city") == []
    assert await _list_public(anonymous, form) == []
    answers = {"name": "Ada", "city": "p"}
    assert problems(await send(anonymous, form, answers)) == {"city": _REFUSED}
    await submit(anonymous, form, {"name": "Ada"})


async def test_a_deleted_column_has_no_options(
    developer: Client, anonymous: Client, table: dict[str, Any]
) -> None:
    form = await create_form(developer, _choose(table))
    kept = [column for column in table["columns"] if column["name"] != "code"]
    answer = await developer.put(f"{TABLES}/{table['id']}", {"columns": kept})
    assert answer.status_code == 200, answer.text
    assert await _list_public(anonymous, form) == []
    assert problems(await send(anonymous, form, {"city": "p"})) == {"city": _REFUSED}


async def test_a_column_without_a_label_shows_the_value(
    developer: Client, table: dict[str, Any]
) -> None:
    await add_rows(developer, table, {"code": "z"})
    form = await create_form(developer, _choose(table))
    assert {"value": "z", "label": "z"} in await list_options(developer, form, "city")


async def test_the_newest_rows_are_the_options_of_a_long_table(
    developer: Client,
    anonymous: Client,
    services: Services,
    table: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(options, "MAX_OPTIONS", 2)
    form = await create_form(developer, _choose(table))
    old = "UPDATE data_rows SET created_at = now() - interval '1 day' WHERE table_id = $1"
    await run_sql(services, old, table["id"])
    new = [{"code": code, "city": code} for code in ("x", "y")]
    await add_rows(developer, table, *new)
    assert [item["value"] for item in await _list_public(anonymous, form)] == ["x", "y"]


async def test_an_answer_to_a_hidden_field_is_not_looked_up(
    developer: Client, anonymous: Client, table: dict[str, Any]
) -> None:
    conditional = {"field": "name", "operator": "equals", "value": "Ada"}
    form = await create_form(developer, TEXT, {**_choose(table), "conditional": conditional})
    await submit(anonymous, form, {"name": "Bob", "city": "nowhere"})
    answers = {"name": "Ada", "city": "nowhere"}
    assert problems(await send(anonymous, form, answers)) == {"city": _REFUSED}


async def test_fields_without_options_are_not_found(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, TOPIC)
    for field_id in ("name", "none", "TOPIC"):
        with subtests.test(field_id=field_id):
            path = f"/fields/{field_id}/options"
            for answer in (
                await developer.get(f"{PATH}/{form['id']}{path}"),
                await anonymous.get(f"{PUBLIC}/{form['slug']}{path}"),
            ):
                refused(answer, 404, "form_field_not_found")


async def test_authors_see_the_options_of_a_draft_and_visitors_do_not(
    developer: Client, anonymous: Client, table: dict[str, Any]
) -> None:
    form = await create_form(developer, TOPIC, is_published=False)
    public = f"{PUBLIC}/{form['slug']}/fields/topic/options"
    refused(await anonymous.get(public), 404, "form_not_found")
    assert len(await list_options(developer, form, "topic")) == 2
    await act(developer, form, "publish")
    await act(developer, form, "unpublish")
    await update_form(developer, form, fields=[_choose(table)])
    assert await list_options(developer, form, "city") == ORDERED
    refused(await anonymous.get(public), 404, "form_not_found")
