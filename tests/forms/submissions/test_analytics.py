"""The figures of a form, exact for a known history."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.forms.submissions.analytics import ViewCounter, compute_completion, compute_drop_off
from app.domain.forms.submissions.analytics_queries import FieldCount
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.forms.api import (
    EMAIL,
    PATH,
    PUBLIC,
    TEXT,
    create_form,
    get_form,
    send_as_user,
    submit,
    update_form,
)
from tests.world import Client

_EMPTY: dict[str, Any] = {
    "total_submissions": 0,
    "total_views": 0,
    "conversion_rate": 0.0,
    "avg_completion_time_seconds": None,
    "submissions_by_day": [],
    "top_sources": [],
    "field_completion_rates": {},
    "drop_off_fields": [],
}
_SET_HISTORY = """
UPDATE form_submissions SET created_at = $2, completion_seconds = $3 WHERE id = $1
"""
_ADD_DRAFT = """
INSERT INTO form_drafts (tenant_id, id, form_id, version, data, stopped_at, expires_at)
VALUES ($1, $2, $3, 1, '{}', $4, now())
"""
_ADD_CONVERSATION = """
INSERT INTO form_conversations
    (tenant_id, id, form_id, version, data, current_field, status)
VALUES ($1, $2, $3, 1, '{}', $4, $5)
"""
_COUNT_VIEWS = "SELECT day, views FROM form_views WHERE form_id = $1 ORDER BY day"


async def _read(client: Client, form: dict[str, Any]) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{form['id']}/analytics")
    assert answer.status_code == 200, answer.text
    figures: dict[str, Any] = answer.json()["data"]
    return figures


async def _submit(client: Client, form: dict[str, Any], data: dict[str, Any], **more: Any) -> str:
    answer = await send_as_user(client, form, data, **more)
    assert answer.status_code == 201, answer.text
    submission_id: str = answer.json()["data"]["submission_id"]
    return submission_id


async def _add_history(services: Services, client: Client, form: dict[str, Any]) -> None:
    """Six submissions of two versions: at both ends of a day in UTC, three with a known time."""
    first = {"name": "Ada"}
    moments = [
        ("2026-01-01T23:59:59+00:00", 10, first, 1, "ads"),
        ("2026-01-02T00:00:00+00:00", 20, first | {"email": "a@example.com"}, 1, "ads"),
        ("2026-01-02T01:30:00+02:00", 31, first, 1, "mail"),
        ("2026-01-02T23:59:59+00:00", None, first | {"email": "a@example.com"}, 1, "mail"),
        ("2026-01-05T12:00:00+00:00", None, first, 2, "ads"),
        ("2026-01-05T12:00:00+00:00", None, first | {"note": "x"}, 2, "zoo"),
    ]
    for moment, seconds, data, version, source in moments:
        submission_id = await _submit(
            client, form, data, version=version, metadata={"source": source}
        )
        at = datetime.fromisoformat(moment)
        await run_sql(services, _SET_HISTORY, submission_id, at, seconds)


async def _add_stops(services: Services, tenant_id: str, form: dict[str, Any]) -> None:
    """Four drafts, one of them with all answers, and two unfinished conversations."""
    for field_id in ("name", "email", "email", None):
        await run_sql(services, _ADD_DRAFT, tenant_id, new_id("frd"), form["id"], field_id)
    for field_id, status in (("name", "active"), ("email", "abandoned"), ("name", "completed")):
        values = (tenant_id, new_id("frc"), form["id"], field_id, status)
        await run_sql(services, _ADD_CONVERSATION, *values)


async def test_a_new_form_has_empty_figures(developer: Client) -> None:
    assert await _read(developer, await create_form(developer)) == _EMPTY
    assert await _read(developer, await create_form(developer, is_published=False)) == _EMPTY


async def test_the_figures_are_exact_for_a_known_history(
    developer: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    note = {"id": "note", "type": "textarea", "label": "Note"}
    await update_form(developer, form, fields=[TEXT, note])
    await _add_history(services, developer, form)
    sql = "INSERT INTO form_views (tenant_id, form_id, day, views) VALUES ($1, $2, $3, $4)"
    for day, views in ((1, 11), (2, 4)):
        moment = datetime(2026, 1, day, tzinfo=UTC).date()
        await run_sql(services, sql, developer.tenant_id, form["id"], moment, views)
    await _add_stops(services, developer.tenant_id, form)
    assert await _read(developer, form) == {
        "total_submissions": 6,
        "total_views": 15,
        "conversion_rate": 40.0,
        "avg_completion_time_seconds": 20.33,
        "submissions_by_day": [
            {"date": "2026-01-01", "count": 2},
            {"date": "2026-01-02", "count": 2},
            {"date": "2026-01-05", "count": 2},
        ],
        "top_sources": [
            {"source": "ads", "count": 3},
            {"source": "mail", "count": 2},
            {"source": "zoo", "count": 1},
        ],
        # Of the versions that have the field: 6, 4 and 2 submissions.
        "field_completion_rates": {"name": 100.0, "email": 50.0, "note": 50.0},
        # Of 6 submissions, 4 drafts and 2 conversations that did not become submissions.
        "drop_off_fields": [
            {"field_id": "email", "drop_off_rate": 25.0},
            {"field_id": "name", "drop_off_rate": 16.67},
        ],
    }
    stats = {"submissions": 6, "views": 15, "conversion_rate": 40.0}
    assert (await get_form(developer, form))["stats"] == stats


async def test_figures_of_another_form_or_tenant_are_not_counted(
    developer: Client, admin: Client, services: Services
) -> None:
    form, other = await create_form(developer), await create_form(developer)
    await _submit(developer, other, {"name": "Ada"})
    await run_sql(services, _ADD_DRAFT, developer.tenant_id, new_id("frd"), other["id"], "name")
    # A row that refers to the form of another tenant.
    await run_sql(services, _ADD_DRAFT, admin.tenant_id, new_id("frd"), form["id"], "name")
    assert await _read(developer, form) == _EMPTY
    refused(await admin.get(f"{PATH}/{form['id']}/analytics"), 404, "form_not_found")


async def test_a_deleted_submission_is_in_no_figure(developer: Client) -> None:
    form = await create_form(developer)
    submission_id = await _submit(developer, form, {"name": "Ada"})
    await developer.delete(f"{PATH}/{form['id']}/submissions/{submission_id}")
    assert await _read(developer, form) == _EMPTY


async def test_fields_without_answers_are_listed_in_the_order_of_the_form(
    developer: Client,
) -> None:
    note = {"id": "note", "type": "textarea", "label": "Note"}
    line = {"id": "line", "type": "section", "label": "Line"}
    form = await create_form(developer, TEXT, line, note, EMAIL)
    await _submit(developer, form, {"name": "Ada", "email": "a@example.com"})
    await _submit(developer, form, {"name": "Bob"})
    rates = (await _read(developer, form))["field_completion_rates"]
    assert list(rates.items()) == [("name", 100.0), ("note", 0.0), ("email", 50.0)]


async def test_only_the_most_frequent_sources_are_listed(developer: Client) -> None:
    form = await create_form(developer)
    for number in range(12):
        metadata = {"source": f"s{number:02}"}
        await _submit(developer, form, {"name": "Ada"}, metadata=metadata)
    await _submit(developer, form, {"name": "Ada"}, metadata={"source": "s11"})
    sources = (await _read(developer, form))["top_sources"]
    assert [item["source"] for item in sources] == ["s11", *(f"s{n:02}" for n in range(9))]


# Views


async def test_views_are_counted_by_day_and_stored_together(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, other = await create_form(developer), await create_form(developer)
    counter = services.get(ViewCounter)
    for moment, views in (
        ("2026-01-01T23:59:59+00:00", 2),
        ("2026-01-02T01:00:00+02:00", 1),
        ("2026-01-02T00:00:00+00:00", 3),
    ):
        with clock.frozen(datetime.fromisoformat(moment)):
            for _ in range(views):
                answer = await anonymous.get(f"{PUBLIC}/{form['slug']}")
                assert answer.status_code == 200
    await anonymous.get(f"{PUBLIC}/{other['slug']}")
    await counter.store()
    rows = await fetch_rows(services, _COUNT_VIEWS, form["id"])
    assert [(row["day"].isoformat(), row["views"]) for row in rows] == [
        ("2026-01-01", 3),
        ("2026-01-02", 3),
    ]
    await anonymous.get(f"{PUBLIC}/{form['slug']}")
    await counter.store()
    figures = await _read(developer, form)
    assert (figures["total_views"], figures["conversion_rate"]) == (7, 0.0)


async def test_only_views_of_the_published_form_are_counted(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer)
    draft = await create_form(developer, is_published=False)
    refused(await anonymous.get(f"{PUBLIC}/{draft['slug']}"), 404, "form_not_found")
    await anonymous.get(f"{PUBLIC}/{form['slug']}/embed")
    await developer.get(f"{PATH}/{form['id']}")
    await services.get(ViewCounter).store()
    for item in (form, draft):
        assert (await _read(developer, item))["total_views"] == 0


async def test_views_of_a_form_that_does_not_exist_are_dropped(
    developer: Client, services: Services
) -> None:
    form = await create_form(developer)
    counter = ViewCounter(services.db)
    counter.add_view(developer.tenant_id, "frm_deleted")
    counter.add_view("ten_other", form["id"])
    counter.add_view(developer.tenant_id, form["id"])
    await counter.close()
    assert [row["views"] for row in await fetch_rows(services, _COUNT_VIEWS, form["id"])] == [1]
    assert await fetch_rows(services, _COUNT_VIEWS, "frm_deleted") == []


async def test_more_submissions_than_views_are_a_hundred_percent(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer)
    await anonymous.get(f"{PUBLIC}/{form['slug']}")
    await services.get(ViewCounter).store()
    for name in ("Ada", "Bob"):
        await _submit(developer, form, {"name": name})
    assert (await _read(developer, form))["conversion_rate"] == 100.0


# Rules


def test_completion_rates_are_among_versions_with_the_field(subtests: pytest.Subtests) -> None:
    inputs = {1: ["name"], 2: ["name", "note"]}
    cases: list[tuple[list[FieldCount], dict[str, float]]] = [
        ([], {}),
        ([FieldCount(1, 1, 3, 3)], {"name": 100.0}),
        ([FieldCount(1, 1, 3, 2)], {"name": 66.67}),
        (
            [FieldCount(1, 1, 1, 1), FieldCount(2, 2, 3, 1), FieldCount(2, 1, 3, 2)],
            {"name": 75.0, "note": 33.33},
        ),
    ]
    for counts, rates in cases:
        with subtests.test(counts=counts):
            assert compute_completion(inputs, counts) == rates


def test_drop_off_rates_are_the_highest_first(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str | None, int], int, list[tuple[str, float]]]] = [
        ({}, 0, []),
        ({}, 5, []),
        ({"a": 1}, 0, [("a", 100.0)]),
        ({"b": 1, "a": 1, "c": 2, None: 4}, 8, [("c", 12.5), ("a", 6.25), ("b", 6.25)]),
        ({f"f{n:02}": 1 for n in range(25)}, 0, [(f"f{n:02}", 4.0) for n in range(20)]),
    ]
    for stops, submissions, expected in cases:
        with subtests.test(stops=stops):
            rates = compute_drop_off(stops, submissions=submissions)
            assert [(item.field_id, item.drop_off_rate) for item in rates] == expected


async def test_page_breaks_are_not_counted(developer: Client, anonymous: Client) -> None:
    page = {"id": "page", "type": "page_break", "label": "More"}
    form = await create_form(developer, TEXT, page, EMAIL)
    answer = await anonymous.post(f"{PUBLIC}/{form['slug']}/drafts", {"data": {"name": "Ada"}})
    assert answer.status_code == 201, answer.text
    await submit(anonymous, form, {"name": "Ada"})
    figures = (await developer.get(f"{PATH}/{form['id']}/analytics")).json()["data"]
    assert figures["field_completion_rates"] == {"name": 100.0, "email": 0.0}
    assert figures["drop_off_fields"] == [{"field_id": "email", "drop_off_rate": 50.0}]
