"""Submissions as a CSV file."""

import csv
import io
from typing import Any

import pytest

from app.domain.forms import export
from app.services import Services
from tests.database import run_sql
from tests.forms.api import (
    EMAIL,
    PATH,
    TEXT,
    TOPIC,
    create_form,
    send_as_user,
    set_status,
    update_form,
)
from tests.world import Client

_OWN = ["submission_id", "created_at", "status", "source"]
_NOTE: dict[str, Any] = {"id": "note", "type": "textarea", "label": "Note"}
_NUMBER: dict[str, Any] = {"id": "number", "type": "number", "label": "Number"}


async def _export(client: Client, form: dict[str, Any], **query: Any) -> list[list[str]]:
    answer = await client.get(f"{PATH}/{form['id']}/submissions.csv", params=query)
    assert answer.status_code == 200, answer.text
    return list(csv.reader(io.StringIO(answer.text, newline="")))


async def _submit(client: Client, form: dict[str, Any], **data: Any) -> str:
    more = {"metadata": {"source": data.pop("source")}} if "source" in data else {}
    version = {"version": data.pop("version")} if "version" in data else {}
    answer = await send_as_user(client, form, data, **more, **version)
    assert answer.status_code == 201, answer.text
    submission_id: str = answer.json()["data"]["submission_id"]
    return submission_id


async def test_the_file_has_a_row_for_each_submission_the_oldest_first(developer: Client) -> None:
    group = {"id": "days", "type": "checkbox_group", "label": "Days", "options": TOPIC["options"]}
    form = await create_form(developer, TEXT, TOPIC, group, _NUMBER, name="Contact / us")
    ids = [
        await _submit(developer, form, name="Ada", topic="sales", days=["sales", "help"]),
        await _submit(developer, form, name="Bob", number=-7.5, source="newsletter"),
    ]
    answer = await developer.get(f"{PATH}/{form['id']}/submissions.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith("attachment")
    assert "Contact%20-%20us.csv" in disposition
    rows = await _export(developer, form)
    assert rows[0] == [*_OWN, "Your name", "Topic", "Days", "Number"]
    assert [row[0] for row in rows[1:]] == ids
    assert rows[1][1].endswith("Z")
    assert rows[1][2:] == ["received", "api", "Ada", "Sales", "Sales, Help", ""]
    assert rows[2][2:] == ["received", "newsletter", "Bob", "", "", "-7.5"]


async def test_texts_that_look_like_formulas_are_inert(
    developer: Client, subtests: pytest.Subtests
) -> None:
    formula = '=HYPERLINK("https://evil.example.com","click")'
    named = {**_NOTE, "label": "=1+1"}
    form = await create_form(developer, TEXT, named)
    answers = [formula, "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "\uff1d1"]
    for text in answers:
        await _submit(developer, form, name="x", note=text, source=formula)
    header, *rows = await _export(developer, form)
    assert header[-1] == "'=1+1"
    for text, row in zip(answers, rows, strict=True):
        with subtests.test(text=text):
            assert row[-1] == f"'{text}"
            assert row[3] == f"'{formula}"


async def test_separators_quotes_and_line_breaks_stay_in_their_cell(developer: Client) -> None:
    form = await create_form(developer, TEXT, _NOTE)
    texts = ['a,b;c\t"d"', 'line\nbreak\r\n"quote"', "Grüße 你好 🎉", '","=1', "a\u2028b"]
    for text in texts:
        await _submit(developer, form, name="x", note=text)
    _, *rows = await _export(developer, form)
    assert [row[-1] for row in rows] == texts
    assert {len(row) for row in rows} == {6}


async def test_columns_are_those_of_all_versions(developer: Client) -> None:
    form = await create_form(developer, TEXT, _NUMBER)
    await _submit(developer, form, name="Ada", number=1)
    # The same id with another type, and another field with the same label.
    changed = {"id": "number", "type": "text", "label": "Size"}
    same = {"id": "second", "type": "text", "label": "Your e-mail"}
    await update_form(developer, form, fields=[EMAIL, same, changed])
    await _submit(developer, form, email="bob@example.com", number="big")
    await _submit(developer, form, name="Cy", number=2.5, version=1)
    header, *rows = await _export(developer, form)
    assert header == [
        *_OWN,
        "Your e-mail (email)",
        "Your e-mail (second)",
        "Size",
        "Your name",
    ]
    assert [row[4:] for row in rows] == [
        ["", "", "1", "Ada"],
        ["bob@example.com", "", "big", ""],
        ["", "", "2.5", "Cy"],
    ]


async def test_a_field_named_like_our_column_has_a_heading_of_its_own(developer: Client) -> None:
    form = await create_form(developer, {**TEXT, "label": "status"})
    (header,) = await _export(developer, form)
    assert header == [*_OWN, "status (name)"]


async def test_the_file_has_the_filters_of_the_list(developer: Client, services: Services) -> None:
    form = await create_form(developer)
    ids = [await _submit(developer, form, name=name) for name in ("Ada", "Bob", "Cy")]
    await set_status(developer, form, ids[0], "archived")
    sql = "UPDATE form_submissions SET created_at = '2026-01-02T00:00:00Z' WHERE id = $1"
    await run_sql(services, sql, ids[1])
    for query, index in (({"status": "archived"}, 0), ({"before": "2026-01-03"}, 1)):
        _, *rows = await _export(developer, form, **query)
        assert [row[0] for row in rows] == [ids[index]]
    _, row = await _export(developer, form, search="cy")
    assert row[0] == ids[2]


async def test_many_submissions_are_read_page_by_page(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE", 2)
    form = await create_form(developer)
    names = [f"N{number}" for number in range(5)]
    ids = [await _submit(developer, form, name=name) for name in names]
    # Submissions of the same moment are in the order of their ids.
    sql = "UPDATE form_submissions SET created_at = '2026-01-02' WHERE form_id = $1"
    await run_sql(services, sql, form["id"])
    _, *rows = await _export(developer, form)
    assert [row[0] for row in rows] == ids
    await _submit(developer, form, name="N5")
    _, *rows = await _export(developer, form)
    assert [row[-2] for row in rows] == [*names, "N5"]


async def test_a_form_that_was_never_published_has_a_heading_only(developer: Client) -> None:
    form = await create_form(developer, is_published=False)
    (header,) = await _export(developer, form)
    assert header[:4] == _OWN
