"""Forms: fields, lists, changes, copies and deletion."""

import re
from datetime import date
from typing import Any

import pytest

from app.domain.forms.definition import queries
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.forms.api import (
    EMAIL,
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    act,
    get_form,
    list_forms,
    list_names,
    request_form,
    submit,
    update_form,
    upload,
)
from tests.forms.manual_worker import allow_mails
from tests.forms.upkeep import RETENTION, TASKS
from tests.platform.events.database import load_events
from tests.world import Client

KEYS = {
    *("id", "name", "slug", "description", "status", "version", "fields", "settings"),
    *("workflow_id", "data_table_config", "branding", "stats", "created_by", "created_at"),
    *("updated_at", "published_at", "unconfirmed_emails"),
}
SUMMARY_KEYS = {
    *("id", "name", "slug", "description", "status", "version", "field_count"),
    *("submission_count", "created_at", "updated_at", "published_at"),
}
SETTINGS: dict[str, Any] = {
    "submit_button_text": "Send",
    "success_message": "Thanks!",
    "redirect_url": "https://example.com/thanks?x=1#top",
    "notifications": {"email": "team@example.com"},
    "max_submissions": 10,
    "closes_at": "2099-01-01T00:00:00Z",
    "conversation": {"model": None, "greeting": "Hello!"},
    "language": "de",
}
DEFAULT_SETTINGS: dict[str, Any] = {
    "submit_button_text": "Submit",
    "success_message": "Thank you. Your answers have been received.",
    "redirect_url": None,
    "notifications": {"email": None},
    "max_submissions": None,
    "closes_at": None,
    "conversation": {"model": None, "greeting": ""},
    "language": None,
}
BRANDING = {
    "logo_url": "http://localhost:8080/logo.png",
    "primary_color": "#1A73e8",
    "background_color": "#ffffff",
}
NO_BRANDING = {"logo_url": None, "primary_color": None, "background_color": None}


async def _load_events(services: Services, client: Client, event_type: str) -> list[dict[str, Any]]:
    return [row["data"] for row in await load_events(services, client.tenant_id, event_type)]


# Create and read


async def test_a_new_form_is_a_draft_with_its_fields_in_their_order(developer: Client) -> None:
    form = await request_form(
        developer,
        TOPIC,
        TEXT,
        is_published=False,
        name="Ask us: anything!",
        description="Questions",
        settings=SETTINGS,
        branding=BRANDING,
    )
    assert set(form) == KEYS
    assert form["id"].startswith("frm_")
    assert re.fullmatch(r"ask-us-anything-[2-9a-z]{8}", form["slug"])
    assert (form["name"], form["description"]) == ("Ask us: anything!", "Questions")
    assert (form["status"], form["version"], form["published_at"]) == ("draft", 1, None)
    assert [field["id"] for field in form["fields"]] == ["topic", "name"]
    assert form["fields"][0].items() >= TOPIC.items()
    assert (form["settings"], form["branding"]) == (SETTINGS, BRANDING)
    assert (form["workflow_id"], form["data_table_config"]) == (None, None)
    assert form["stats"] == {"submissions": 0, "views": 0, "conversion_rate": 0.0}
    assert form["created_by"] == developer.user_id
    assert form["created_at"] <= form["updated_at"]
    assert await get_form(developer, form) == form
    by_slug = await developer.get(f"{PATH}/slug/{form['slug']}")
    assert by_slug.json()["data"] == form


async def test_what_is_left_out_has_defaults(developer: Client) -> None:
    form = await request_form(developer, TEXT, is_published=False)
    assert (form["description"], form["branding"]) == ("", NO_BRANDING)
    assert form["settings"] == DEFAULT_SETTINGS
    field = form["fields"][0]
    assert (field["placeholder"], field["help_text"], field["validation"]) == ("", "", {})
    assert (field["options"], field["data_source"], field["conditional"]) == ([], None, None)


async def test_forms_with_the_same_name_have_different_slugs(
    developer: Client, admin: Client
) -> None:
    """The slug is the public address in which no tenant is named."""
    clients = [developer, developer, admin]
    forms = [await request_form(client, is_published=False) for client in clients]
    assert len({form["slug"] for form in forms}) == 3


async def test_a_slug_consists_of_small_letters_digits_and_dashes(
    developer: Client, subtests: pytest.Subtests
) -> None:
    words = {"Größe & Maße": "gr-e-ma-e-", "問い合わせ": "", "x" * 100: f"{'x' * 40}-", "--": ""}
    for name, start in words.items():
        with subtests.test(name=name):
            form = await request_form(developer, is_published=False, name=name)
            assert re.fullmatch(rf"{start}[2-9a-z]{{8}}", form["slug"])


async def test_an_unknown_form_is_not_found(developer: Client) -> None:
    refused(await developer.get(f"{PATH}/frm_none"), 404, "form_not_found")
    refused(await developer.get(f"{PATH}/slug/none"), 404, "form_not_found")
    refused(await developer.put(f"{PATH}/frm_none", {"name": "X"}), 404, "form_not_found")
    refused(await developer.delete(f"{PATH}/frm_none"), 404, "form_not_found")
    for action in ("publish", "unpublish", "archive", "duplicate"):
        refused(await act(developer, {"id": "frm_none"}, action), 404, "form_not_found")


async def test_a_tenant_has_a_limited_number_of_forms(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_FORMS", 1)
    form = await request_form(developer, is_published=False)
    body = {"name": "Second", "fields": [TEXT]}
    assert (
        "at most 1 forms" in refused(await developer.post(PATH, body), 409, "conflict")["message"]
    )
    refused(await act(developer, form, "duplicate"), 409, "conflict")
    await developer.delete(f"{PATH}/{form['id']}")
    assert (await developer.post(PATH, body)).status_code == 201


# Lists


async def test_a_list_has_summaries_with_counts(developer: Client, anonymous: Client) -> None:
    draft = await request_form(developer, TEXT, EMAIL, TOPIC, is_published=False, name="Draft")
    form = await request_form(developer, TEXT, name="Open")
    for name in ("Ada", "Bob"):
        await submit(anonymous, form, {"name": name})
    page = await list_forms(developer)
    assert page["pagination"] == {"page": 1, "per_page": 20, "total": 2, "total_pages": 1}
    first, second = page["data"]
    assert set(first) == SUMMARY_KEYS
    assert (first["id"], first["field_count"], first["submission_count"]) == (form["id"], 1, 2)
    assert (second["id"], second["field_count"], second["submission_count"]) == (draft["id"], 3, 0)
    assert first["published_at"]


async def test_a_list_is_filtered_sorted_and_paged(
    developer: Client, subtests: pytest.Subtests
) -> None:
    wool = "about 100% wool"
    await request_form(developer, is_published=False, name="Beta", description=wool)
    await request_form(developer, name="Alpha")
    await request_form(developer, name="Gamma_1")
    archived = await request_form(developer, is_published=False, name="Delta")
    await act(developer, archived, "archive")
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["Delta", "Gamma_1", "Alpha", "Beta"]),
        ({"status": "published"}, ["Gamma_1", "Alpha"]),
        ({"status": "draft"}, ["Beta"]),
        ({"status": "archived"}, ["Delta"]),
        ({"search": "ALPHA"}, ["Alpha"]),
        ({"search": "100% wool"}, ["Beta"]),
        ({"search": "0%w"}, []),
        ({"search": "a_1"}, ["Gamma_1"]),
        ({"search": "gamma-1-"}, ["Gamma_1"]),
        ({"search": "a", "status": "published", "sort": "created_at"}, ["Alpha", "Gamma_1"]),
        ({"sort": "created_at"}, ["Beta", "Alpha", "Gamma_1", "Delta"]),
        ({"sort": "-name", "status": "published"}, ["Gamma_1", "Alpha"]),
        ({"sort": "-updated_at", "per_page": 1}, ["Delta"]),
        ({"sort": "published_at", "status": "published"}, ["Alpha", "Gamma_1"]),
        ({"sort": "status", "per_page": 1}, ["Delta"]),
        ({"per_page": 3, "page": 2}, ["Beta"]),
        ({"page": 9}, []),
    ]
    for query, names in cases:
        with subtests.test(query=query):
            assert await list_names(developer, **query) == names


async def test_a_list_refuses_unknown_filters(developer: Client, subtests: pytest.Subtests) -> None:
    for query in ({"status": "closed"}, {"sort": "slug"}, {"per_page": 101}, {"page": 0}):
        with subtests.test(query=query):
            answer = await developer.get(PATH, params=query)
            error = refused(answer, 422, "validation_error")
            assert list(error["details"]) == list(query)


# Changes


async def test_each_field_is_changed_alone(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    await allow_mails(services, developer.tenant_id)
    form = await request_form(developer, is_published=False)
    changes: dict[str, Any] = {
        "name": "Renamed",
        "description": "New text",
        "settings": SETTINGS,
        "branding": BRANDING,
    }
    for name, value in changes.items():
        with subtests.test(name=name):
            changed = await update_form(developer, form, **{name: value})
            expected = {**form, name: value, "updated_at": changed["updated_at"]}
            assert changed == expected
            assert changed["updated_at"] > form["updated_at"]
            form = changed
    events = await _load_events(services, developer, "form.updated")
    assert [event["changed"] for event in events] == [[name] for name in changes]
    assert events[-1]["form_id"] == form["id"]
    assert events[0].items() >= {"name": "Renamed", "slug": form["slug"], "version": 1}.items()


async def test_settings_and_branding_are_replaced_as_a_whole(developer: Client) -> None:
    form = await request_form(developer, settings=SETTINGS, branding=BRANDING)
    changed = await update_form(
        developer,
        form,
        settings={"submit_button_text": "Go"},
        branding={"primary_color": "#000000"},
    )
    assert changed["settings"] == {**DEFAULT_SETTINGS, "submit_button_text": "Go"}
    assert changed["branding"] == {**NO_BRANDING, "primary_color": "#000000"}


async def test_a_request_that_changes_nothing_leaves_no_event(
    developer: Client, services: Services
) -> None:
    form = await request_form(developer, settings=SETTINGS, is_published=False)
    for body in ({}, {"name": form["name"]}, {"settings": SETTINGS}, {"fields": form["fields"]}):
        assert await update_form(developer, form, **body) == form
    assert await _load_events(services, developer, "form.updated") == []


async def test_a_new_name_keeps_the_slug(developer: Client) -> None:
    """Pages that embed the form go on working."""
    form = await request_form(developer)
    assert (await update_form(developer, form, name="Another"))["slug"] == form["slug"]


async def test_an_archived_form_can_be_changed(developer: Client) -> None:
    form = await request_form(developer)
    await act(developer, form, "archive")
    changed = await update_form(developer, form, name="Old")
    assert (changed["name"], changed["status"]) == ("Old", "archived")


# Copies


async def test_a_copy_is_a_draft_with_the_newest_fields_and_no_submissions(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer, settings=SETTINGS, branding=BRANDING, description="Text")
    await submit(anonymous, form, {"name": "Ada"})
    form = await update_form(developer, form, fields=[TEXT, TOPIC])
    answer = await act(developer, form, "duplicate")
    assert answer.status_code == 201
    summary = answer.json()["data"]
    assert set(summary) == {"id", "name", "slug", "status", "field_count", "created_at"}
    assert (summary["name"], summary["status"]) == ("Contact (copy)", "draft")
    assert re.fullmatch(r"contact-copy-[2-9a-z]{8}", summary["slug"])
    copy = await get_form(developer, summary)
    same = ("fields", "settings", "branding", "description", "workflow_id", "data_table_config")
    assert {name: copy[name] for name in same} == {name: form[name] for name in same}
    assert (copy["version"], copy["published_at"], copy["stats"]["submissions"]) == (1, None, 0)
    assert (await get_form(developer, form))["stats"]["submissions"] == 1
    created = await _load_events(services, developer, "form.created")
    assert [event["form_id"] for event in created] == [form["id"], copy["id"]]
    assert created[1] == {"form_id": copy["id"], "name": copy["name"], "slug": copy["slug"]}


async def test_the_name_of_a_copy_is_never_too_long(developer: Client) -> None:
    form = await request_form(developer, is_published=False, name="x" * 100)
    copy = (await act(developer, form, "duplicate")).json()["data"]
    assert copy["name"] == f"{'x' * 93} (copy)"


# Figures


async def _add_views(services: Services, form: dict[str, Any], day: date, views: int) -> None:
    sql = """
    INSERT INTO form_views (tenant_id, form_id, day, views)
    SELECT tenant_id, id, $2, $3 FROM forms WHERE id = $1
    """
    await run_sql(services, sql, form["id"], day, views)


async def test_stats_count_submissions_and_views(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer, TEXT)
    ids = [await submit(anonymous, form, {"name": name}) for name in ("Ada", "Bob", "Cyd")]
    await _add_views(services, form, date(2026, 1, 1), 3)
    await _add_views(services, form, date(2026, 1, 2), 4)
    stats = (await get_form(developer, form))["stats"]
    assert stats == {"submissions": 3, "views": 7, "conversion_rate": 42.86}
    await developer.delete(f"{PATH}/{form['id']}/submissions/{ids[0]}")
    assert (await get_form(developer, form))["stats"]["submissions"] == 2


async def test_the_conversion_rate_is_at_most_100(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """Submissions over the API follow no view."""
    form = await request_form(developer, TEXT)
    for name in ("Ada", "Bob"):
        await submit(anonymous, form, {"name": name})
    assert (await get_form(developer, form))["stats"]["conversion_rate"] == 0.0
    await _add_views(services, form, date(2026, 1, 1), 1)
    assert (await get_form(developer, form))["stats"]["conversion_rate"] == 100.0


# Deletion


async def test_a_deleted_form_is_found_nowhere(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer, TEXT)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    path = f"{PATH}/{form['id']}"
    assert (await developer.delete(path)).status_code == 204
    own = ["", "/versions", "/versions/1", "/analytics", "/submissions", "/submissions.csv"]
    own += ["/fields/name/options", f"/submissions/{submission_id}"]
    for suffix in own:
        refused(await developer.get(f"{path}{suffix}"), 404, "form_not_found")
    body = {"data": {"name": "Ada"}}
    refused(await developer.post(f"{path}/submit", body), 404, "form_not_found")
    refused(await developer.get(f"{PATH}/slug/{form['slug']}"), 404, "form_not_found")
    refused(await anonymous.get(f"{PUBLIC}/{form['slug']}"), 404, "form_not_found")
    refused(await anonymous.post(f"{PUBLIC}/{form['slug']}/submit", body), 404, "form_not_found")
    refused(await developer.delete(path), 404, "form_not_found")
    assert (await list_forms(developer))["pagination"]["total"] == 0
    deleted = {"form_id": form["id"], "name": form["name"], "slug": form["slug"]}
    assert await _load_events(services, developer, "form.deleted") == [deleted]


async def test_the_clean_up_deletes_all_rows_and_files_of_a_deleted_form(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer, TEXT, FILE)
    file_id = (await upload(anonymous, form, b"hello")).json()["data"]["file_id"]
    await submit(anonymous, form, {"name": "Ada", "file": file_id})
    await developer.delete(f"{PATH}/{form['id']}")
    for sql in (
        "UPDATE forms SET deleted_at = now() - interval '1 year' WHERE id = $1",
        "UPDATE form_uploads SET expires_at = now() - interval '1 year' WHERE form_id = $1",
    ):
        await run_sql(services, sql, form["id"])
    for task in TASKS:
        await task.run(services)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), RETENTION)
    remaining = {
        table: await fetch_rows(services, f"SELECT 1 FROM {table} WHERE {column} = $1", row_id)
        for table, column, row_id in (
            ("forms", "id", form["id"]),
            ("form_versions", "form_id", form["id"]),
            ("form_counts", "form_id", form["id"]),
            ("form_submissions", "form_id", form["id"]),
            ("form_uploads", "form_id", form["id"]),
            ("files", "id", file_id),
        )
    }
    assert {table: rows for table, rows in remaining.items() if rows} == {}
