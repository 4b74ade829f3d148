"""Submissions as a CSV file."""

import csv
import io
from collections.abc import AsyncIterator, Sequence
from typing import Any
from weakref import WeakSet

import msgspec
import pytest

from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.definition.fields.definition import Field
from app.domain.forms.definition.live import FormDefinitions
from app.domain.forms.submissions import export
from app.domain.forms.submissions.submission_queries import SubmissionFilter
from app.kit import csv_cells
from app.kit.csv_export import ExportLimit
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused, until
from tests.data.tables.api import TABLES, create_table
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
from tests.loop_watch import watch_loop
from tests.world import Client, World

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
            assert row[-1].startswith("'")
            assert csv_cells.unescape_formula(row[-1]) == text
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


# Resources


async def _add_versions(services: Services, form: dict[str, Any], count: int) -> None:
    """Publishes copies of a form's first version, up to this number."""
    await run_sql(
        services,
        """INSERT INTO form_versions (tenant_id, id, form_id, version, fields, published_at)
        SELECT v.tenant_id, v.id || n, v.form_id, n, v.fields, now()
        FROM form_versions v, generate_series(2, $2) n WHERE v.form_id = $1 AND v.version = 1""",
        form["id"],
        count,
    )
    await run_sql(services, "UPDATE forms SET version = $2 WHERE id = $1", form["id"], count)


def _count_definitions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that has, for each definition that is built from now on, how many exist."""
    definitions: WeakSet[FormDefinition] = WeakSet()
    counts: list[int] = []
    build = FormDefinition.__init__

    def build_and_count(definition: FormDefinition, fields: Sequence[Field]) -> None:
        build(definition, fields)
        definitions.add(definition)
        counts.append(len(definitions))

    monkeypatch.setattr(FormDefinition, "__init__", build_and_count)
    return counts


async def _start(
    services: Services, client: Client, form: dict[str, Any], resume_after: str | None = None
) -> AsyncIterator[bytes]:
    filters = SubmissionFilter(form["id"])
    file = await export.prepare(services, client.tenant_id, filters, resume_after)
    return await export.start(services, file)


async def test_an_export_drops_a_definition_once_it_has_the_next(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE", 4)
    form = await create_form(developer, TEXT, TOPIC)
    await _add_versions(services, form, 12)
    for version in range(1, 13):
        await _submit(developer, form, name=f"N{version}", topic="sales", version=version)
    # Those that were submitted are in the cache.
    services.add(FormDefinitions())
    counts = _count_definitions(monkeypatch)
    lines = b"".join([part async for part in await _start(services, developer, form)])
    assert len(counts) == 12
    # The one before is dropped when the next one is there.
    assert max(counts) <= 2
    rows = list(csv.reader(io.StringIO(lines.decode(), newline="")))
    assert [row[4:] for row in rows[1:]] == [[f"N{n}", "Sales"] for n in range(1, 13)]


async def test_a_page_has_a_limited_size(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE_BYTES", 3000)
    form = await create_form(developer, TEXT, _NOTE)
    sizes = [10, 10, 2000, 2000, 2000, 10, 10, 10]
    for size in sizes:
        await _submit(developer, form, name="Ada", note="x" * size)
    header, *pages = [part async for part in await _start(services, developer, form)]
    rows = [list(csv.reader(io.StringIO(page.decode(), newline=""))) for page in pages]
    assert [len(row[-1]) for page in rows for row in page] == sizes
    assert len(pages) > 1
    assert max(map(len, pages)) < 3000 + 2500
    assert header.startswith(b"submission_id,")


async def test_an_export_that_broke_is_resumed(developer: Client, services: Services) -> None:
    form = await create_form(developer)
    ids = [await _submit(developer, form, name=f"N{number}") for number in range(5)]
    sql = "UPDATE form_submissions SET created_at = '2026-01-02' WHERE form_id = $1"
    await run_sql(services, sql, form["id"])
    complete = await _export(developer, form)
    for index, submission_id in enumerate(ids):
        header, *rows = await _export(developer, form, resume_after=submission_id)
        assert (header, rows) == (complete[0], complete[index + 2 :])
    other = await create_form(developer)
    path = f"{PATH}/{other['id']}/submissions.csv"
    answer = await developer.get(path, params={"resume_after": ids[0]})
    refused(answer, 404, "submission_not_found")


async def test_a_tenant_has_two_exports_at_a_time(
    developer: Client, services: Services, world: World
) -> None:
    form = await create_form(developer)
    table = await create_table(developer, [{"name": "a", "type": "text"}])
    first, second = [await _start(services, developer, form) for _ in range(2)]
    for path in (f"{PATH}/{form['id']}/submissions.csv", f"{TABLES}/{table['id']}/export"):
        answer = await developer.get(path)
        error = refused(answer, 429, "rate_limited")
        assert error["message"] == (
            "At most 2 exports of a tenant run at a time; try again shortly"
        )
        assert answer.headers["retry-after"] == "5"
    # Another tenant is not affected.
    other = await world.user("agent_developer")
    assert await _export(other, await create_form(other))
    # An export that was read to its end and one that nobody reads any more are over.
    async for _ in first:
        pass
    del second
    await until(lambda: developer.tenant_id not in services.get(ExportLimit)._running)
    await _export(developer, form)


_COPY_SUBMISSION = """
INSERT INTO form_submissions
    (tenant_id, id, form_id, version, data, custom_metadata, source, ip_address, user_agent,
     page_url, referrer, answered, fingerprint, errors)
SELECT tenant_id, id || n, form_id, version, data, custom_metadata, source, ip_address, user_agent,
       page_url, referrer, answered, fingerprint, errors
FROM form_submissions CROSS JOIN generate_series(1, $2) n WHERE id = $1
"""


async def test_pages_of_many_cells_do_not_hold_the_loop(
    developer: Client, services: Services
) -> None:
    """Fields of earlier versions are columns as well."""
    form = await create_form(developer)
    fields = [
        {"id": f"f{n}_{v}", "type": "text", "label": f"{n} {v}"}
        for v in range(25)
        for n in range(200)
    ]
    for version in range(25):
        await run_sql(
            services,
            """INSERT INTO form_versions (tenant_id, id, form_id, version, fields, published_at)
            VALUES ($1, $2, $3, $4, $5, now())""",
            developer.tenant_id,
            new_id("frv"),
            form["id"],
            version + 2,
            msgspec.json.encode(fields[200 * version : 200 * version + 200]).decode(),
        )
    submission_id = await _submit(developer, form, name="Ada")
    # More than a page has.
    await run_sql(services, _COPY_SUBMISSION, submission_id, 59)
    async with watch_loop() as watch:
        rows = await _export(developer, form)
    assert (len(rows), {len(row) for row in rows}) == (60 + 1, {5006})
    assert watch.longest < 0.1
