"""How answers become the values of a data table's row."""

from typing import Any

import pytest

from app.domain.data.tables import service as tables
from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.definition.fields.definition import Field
from app.domain.forms.submissions import row_values
from app.services import Services
from db.session import ALL_TENANTS
from tests.data.tables.api import create_table, list_rows
from tests.forms.api import create_form, get_submission, save_to, submit, upload_file
from tests.forms.manual_worker import process
from tests.world import Client

_OPTIONS = [{"value": "a", "label": "Ann"}, {"value": "b", "label": "Bob, Jr."}]
# The type of the field, the type of the column, the answer, the value.
_FITTING: list[tuple[str, str, Any, Any]] = [
    ("text", "text", "Ada", "Ada"),
    ("text", "number", "7.5", 7.5),
    ("text", "integer", "42", 42),
    ("text", "number", "1e300", 1e300),
    ("text", "date", "2026-01-31", "2026-01-31"),
    ("text", "json", "Ada", "Ada"),
    ("textarea", "text", "a\nb", "a\nb"),
    ("number", "number", 7.5, 7.5),
    ("number", "integer", 7, 7),
    ("number", "text", 7.5, "7.5"),
    ("number", "text", 7, "7"),
    ("rating", "integer", 4, 4),
    ("checkbox", "boolean", True, True),
    ("checkbox", "text", True, "yes"),
    ("multi_select", "text", ["a", "b"], "Ann, Bob, Jr."),
    ("multi_select", "json", ["a", "b"], ["a", "b"]),
    ("checkbox_group", "text", ["b"], "Bob, Jr."),
    ("select", "text", "a", "a"),
    ("select", "select", "a", "a"),
    ("date", "date", "2026-01-31", "2026-01-31"),
    ("date", "text", "2026-01-31", "2026-01-31"),
    ("datetime", "datetime", "2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"),
    ("hidden", "number", "1e3", 1000),
]
_WRONG: list[tuple[str, str, Any]] = [
    ("text", "number", "seven"),
    ("text", "number", "nan"),
    ("text", "number", "1e999"),
    ("text", "integer", "1e300"),
    ("text", "integer", "7.5"),
    ("text", "boolean", "perhaps"),
    ("text", "date", "tomorrow"),
    ("text", "select", "c"),
    ("number", "integer", 7.5),
    ("multi_select", "number", ["a", "b"]),
]


def _build_field(number: int, kind: str) -> dict[str, Any]:
    has_options = kind in {"select", "multi_select", "checkbox_group"}
    return {
        "id": f"f{number}",
        "type": kind,
        "label": f"Field {number}",
        **({"options": _OPTIONS} if has_options else {}),
    }


def _build_column(number: int, kind: str) -> dict[str, Any]:
    options = {"options": ["a", "b"]} if kind == "select" else {}
    return {"name": f"C{number}", "type": kind, **options}


async def test_answers_are_converted_to_the_types_of_columns(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    columns = [_build_column(number, case[1]) for number, case in enumerate(_FITTING)]
    table = await create_table(developer, columns)
    fields = [_build_field(number, case[0]) for number, case in enumerate(_FITTING)]
    mapping = {f"f{number}": f"C{number}" for number in range(len(_FITTING))}
    form = await create_form(developer, *fields, data_table_config=save_to(table, **mapping))
    data = {f"f{number}": case[2] for number, case in enumerate(_FITTING)}
    submission_id = await submit(anonymous, form, data)
    await process(services, submission_id)
    assert (await get_submission(developer, form, submission_id))["errors"] == []
    (row,) = (await list_rows(developer, table))["data"]
    for number, (field, column, answer, value) in enumerate(_FITTING):
        with subtests.test(field=field, column=column, answer=answer):
            assert row["values"][f"C{number}"] == value


async def test_answers_that_do_not_fit_are_recorded_and_nothing_is_saved(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for number, (field, column, answer) in enumerate(_WRONG):
        with subtests.test(field=field, column=column, answer=answer):
            table = await create_table(developer, [_build_column(number, column)])
            config = save_to(table, **{f"f{number}": f"C{number}"})
            form = await create_form(
                developer, _build_field(number, field), data_table_config=config
            )
            submission_id = await submit(anonymous, form, {f"f{number}": answer})
            assert (await process(services, submission_id))["state"] == "done"
            stored = await get_submission(developer, form, submission_id)
            assert [error["step"] for error in stored["errors"]] == ["data_table"]
            assert f"C{number}" in stored["errors"][0]["message"]


async def test_a_file_is_saved_by_its_id(
    developer: Client, anonymous: Client, services: Services
) -> None:
    table = await create_table(developer, [_build_column(0, "file")])
    file = {"id": "file", "type": "file", "label": "File"}
    form = await create_form(developer, file, data_table_config=save_to(table, file="C0"))
    file_id = await upload_file(anonymous, form)
    submission_id = await submit(anonymous, form, {"file": file_id})
    await process(services, submission_id)
    (row,) = (await list_rows(developer, table))["data"]
    assert row["values"] == {"C0": file_id}


async def test_missing_answers_and_fields_are_left_out(
    developer: Client, services: Services
) -> None:
    created = await create_table(developer, [_build_column(0, "text")])
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        table = await tables.load_table(tx, developer.tenant_id, created["id"])
    field = Field(id="f0", type="text", label="Name")
    form = FormDefinition([field])
    assert row_values.build(table, form, {"f0": "C0", "gone": "C0"}, {"gone": "x"}) == {}
    assert row_values.build(table, form, {"f0": "gone"}, {"f0": "x"}) == {"gone": "x"}
