"""Submissions as the users of the tenant list, read, archive and delete them."""

import base64
from typing import Any

import pytest

from app.domain.forms.submissions import erasure, uploads
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.forms.api import (
    FILE,
    PATH,
    TEXT,
    TOPIC,
    count_submissions,
    create_form,
    get_form,
    get_submission,
    list_events,
    list_submissions,
    send_as_user,
    set_status,
    submit,
    update_form,
    upload_file,
)
from tests.forms.contents import PNG
from tests.forms.manual_worker import process
from tests.platform.files.api import read_usage, stored_files
from tests.world import Client, World

_SIGNATURE = "data:image/png;base64," + base64.b64encode(PNG).decode()
_SET_TIME = "UPDATE form_submissions SET created_at = $2::text::timestamptz WHERE id = $1"


async def _submit_all(client: Client, form: dict[str, Any], *answers: dict[str, Any]) -> list[str]:
    """Returns the ids of submissions of a user, who has no limit per minute."""
    ids = []
    for data in answers:
        answer = await send_as_user(client, form, data)
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["data"]["submission_id"])
    return ids


async def _list_names(client: Client, form: dict[str, Any], **query: Any) -> list[str]:
    return [item["data"]["name"] for item in await list_submissions(client, form, **query)]


# Lists


async def test_the_list_has_the_newest_first_in_pages(developer: Client) -> None:
    form = await create_form(developer)
    ids = await _submit_all(developer, form, *({"name": f"N{n}"} for n in range(3)))
    path = f"{PATH}/{form['id']}/submissions"
    first = (await developer.get(path, params={"per_page": 2})).json()
    assert first["pagination"] == {"page": 1, "per_page": 2, "total": 3, "total_pages": 2}
    second = (await developer.get(path, params={"per_page": 2, "page": 2})).json()
    assert [item["id"] for item in first["data"] + second["data"]] == ids[::-1]
    one = await get_submission(developer, form, ids[0])
    assert one.pop("workflow_execution") is None
    assert second["data"] == [one]
    assert (await developer.get(path, params={"page": 3})).json()["data"] == []


async def test_the_list_has_only_the_submissions_of_its_form(developer: Client) -> None:
    form, other = await create_form(developer), await create_form(developer)
    await _submit_all(developer, form, {"name": "Ada"})
    await _submit_all(developer, other, {"name": "Bob"})
    assert await _list_names(developer, form) == ["Ada"]


async def test_long_answers_are_left_out_of_the_list(developer: Client) -> None:
    long = {"id": "long", "type": "textarea", "label": "L", "validation": {"max_length": 50_000}}
    form = await create_form(developer, TEXT, long)
    data = {"name": "Ada", "long": "x" * 40_000}
    (submission_id,) = await _submit_all(developer, form, data)
    (listed,) = await list_submissions(developer, form)
    assert (listed["data"], listed["is_omitted"]) == ({}, True)
    stored = await get_submission(developer, form, submission_id)
    assert (stored["data"], stored["is_omitted"]) == (data, False)


async def test_the_list_is_filtered_by_status(developer: Client, services: Services) -> None:
    form = await create_form(developer)
    ids = await _submit_all(developer, form, *({"name": name} for name in "ABC"))
    await process(services, ids[0])
    await set_status(developer, form, ids[1], "archived")
    for status, name in (("processed", "A"), ("archived", "B"), ("received", "C")):
        assert await _list_names(developer, form, status=status) == [name]
    path = f"{PATH}/{form['id']}/submissions"
    error = refused(await developer.get(path, params={"status": "lost"}), 422, "validation_error")
    assert set(error["details"]) == {"status"}


async def test_the_list_is_filtered_by_time(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    ids = await _submit_all(developer, form, *({"name": name} for name in "ABC"))
    days = ("2026-01-01T23:59:59Z", "2026-01-02T12:00:00Z", "2026-01-03T00:00:00Z")
    for submission_id, moment in zip(ids, days, strict=True):
        await run_sql(services, _SET_TIME, submission_id, moment)
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({"after": "2026-01-02"}, ["C", "B"]),
        ({"before": "2026-01-02"}, ["A"]),
        ({"after": "2026-01-02", "before": "2026-01-02T23:59:59Z"}, ["B"]),
        # In another zone, the day before has begun already.
        ({"before": "2026-01-02T00:00:00+02:00"}, []),
        ({"after": "2026-01-04"}, []),
    ]
    for query, names in cases:
        with subtests.test(query=query):
            assert await _list_names(developer, form, **query) == names
    path = f"{PATH}/{form['id']}/submissions"
    for name in ("after", "before"):
        answer = await developer.get(path, params={name: "yesterday"})
        assert set(refused(answer, 422, "validation_error")["details"]) == {name}


async def test_the_search_looks_in_values_only(
    developer: Client, subtests: pytest.Subtests
) -> None:
    quoted = {"value": 'say "hi"', "label": "Hi"}
    options = [*TOPIC["options"], quoted]
    several = {"id": "tags", "type": "multi_select", "label": "T", "options": options}
    number = {"id": "age", "type": "number", "label": "Age"}
    signature = {"id": "signed", "type": "signature", "label": "Sign"}
    form = await create_form(developer, TEXT, several, number, signature)
    await _submit_all(
        developer,
        form,
        {"name": "Ada 100% Lövelace_"},
        {"name": "Bob", "tags": ["sales", 'say "hi"'], "age": 42},
        {"name": "Cy", "signed": _SIGNATURE},
    )
    cases = [
        ("LÖVELACE", ["Ada 100% Lövelace_"]),
        ("100%", ["Ada 100% Lövelace_"]),
        ("%", ["Ada 100% Lövelace_"]),
        ("e_", ["Ada 100% Lövelace_"]),
        ("sales", ["Bob"]),
        ('say "hi"', ["Bob"]),
        ('["', []),
        ("sales, say", []),
        ("42", ["Bob"]),
        ("name", []),
        ("tags", []),
        ("signed", []),
        ("iVBORw0K", []),
        ("base64", []),
        ("'; DROP TABLE forms; --", []),
        ("", ["Cy", "Bob", "Ada 100% Lövelace_"]),
    ]
    for search, names in cases:
        with subtests.test(search=search):
            assert await _list_names(developer, form, search=search) == names


# Single ones


async def test_missing_submissions_and_forms_have_their_own_codes(developer: Client) -> None:
    form, other = await create_form(developer), await create_form(developer)
    (submission_id,) = await _submit_all(developer, form, {"name": "Ada"})
    missing = f"{PATH}/{form['id']}/submissions/sub_none"
    elsewhere = f"{PATH}/{other['id']}/submissions/{submission_id}"
    for path in (missing, elsewhere):
        refused(await developer.get(path), 404, "submission_not_found")
        refused(await developer.delete(path), 404, "submission_not_found")
        answer = await developer("PATCH", path, json={"status": "archived"})
        refused(answer, 404, "submission_not_found")
    for path in ("submissions", "submissions/sub_none", "submissions.csv", "analytics"):
        refused(await developer.get(f"{PATH}/frm_none/{path}"), 404, "form_not_found")


async def test_a_submission_keeps_the_fields_of_its_version(developer: Client) -> None:
    form = await create_form(developer, TEXT)
    (submission_id,) = await _submit_all(developer, form, {"name": "Ada"})
    await update_form(developer, form, fields=[TOPIC], name="Renamed")
    stored = await get_submission(developer, form, submission_id)
    assert (stored["data"], stored["version"]) == ({"name": "Ada"}, 1)
    assert stored["form_name"] == "Renamed"


async def test_a_status_is_changed_once_and_an_event_tells_so(
    developer: Client, services: Services
) -> None:
    form = await create_form(developer)
    (submission_id,) = await _submit_all(developer, form, {"name": "Ada"})
    await process(services, submission_id)
    for status in ("archived", "archived", "processed", "processed"):
        answer = await set_status(developer, form, submission_id, status)
        assert answer.json()["data"]["status"] == status
    events = await list_events(developer, "form.submission.updated")
    assert [event["status"] for event in events] == ["processed", "archived", "processed"]


async def test_other_statuses_are_refused(developer: Client, subtests: pytest.Subtests) -> None:
    form = await create_form(developer)
    (submission_id,) = await _submit_all(developer, form, {"name": "Ada"})
    for status in ("received", "lost", "", None, 1):
        with subtests.test(status=status):
            path = f"{PATH}/{form['id']}/submissions/{submission_id}"
            answer = await developer("PATCH", path, json={"status": status})
            refused(answer, 422, "validation_error")
    refused(await set_status(developer, form, submission_id, "processed"), 409, "invalid_state")


async def test_a_deleted_submission_takes_its_files_along(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, FILE)
    kept, dropped = [await upload_file(anonymous, form) for _ in range(2)]
    await submit(anonymous, form, {"name": "Ada", "file": kept})
    submission_id = await submit(anonymous, form, {"name": "Bob", "file": dropped})
    answer = await developer.delete(f"{PATH}/{form['id']}/submissions/{submission_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    path = f"{PATH}/{form['id']}/submissions/{submission_id}"
    refused(await developer.get(path), 404, "submission_not_found")
    refused(await developer.get(f"{PATH}/{form['id']}/files/{dropped}"), 404, "file_not_found")
    assert await count_submissions(developer, form) == 1
    await uploads.delete_expired(services)
    assert (await read_usage(developer))["file_count"] == 1
    assert len(stored_files(services, developer.tenant_id)) == 1
    content = await developer.get(f"{PATH}/{form['id']}/files/{kept}")
    assert content.content == b"hello"


async def test_a_deletion_is_counted_once(developer: Client) -> None:
    form = await create_form(developer)
    first, _ = await _submit_all(developer, form, {"name": "Ada"}, {"name": "Bob"})
    path = f"{PATH}/{form['id']}/submissions/{first}"
    assert (await developer.delete(path)).status_code == 204
    refused(await developer.delete(path), 404, "submission_not_found")
    assert (await get_form(developer, form))["stats"]["submissions"] == 1


async def test_a_deleted_form_leaves_no_files(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, FILE)
    await submit(anonymous, form, {"name": "Ada", "file": await upload_file(anonymous, form)})
    await upload_file(anonymous, form)
    await developer.delete(f"{PATH}/{form['id']}")
    await run_sql(
        services,
        "UPDATE forms SET deleted_at = now() - interval '2 minutes' WHERE id = $1",
        form["id"],
    )
    await erasure.delete_forms(services)
    await uploads.delete_expired(services)
    assert stored_files(services, developer.tenant_id) == []
    sql = "SELECT file_id FROM form_uploads WHERE form_id = $1"
    assert await fetch_rows(services, sql, form["id"]) == []


# Tenants and permissions


async def test_roles_read_change_and_delete_submissions_as_they_may(
    world: World, developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    path = f"{PATH}/{form['id']}"
    one = f"{path}/submissions/{submission_id}"
    # Whether the role may read, submit, and change or delete.
    cases = {
        "viewer": (False, False, False),
        "agent_user": (False, True, False),
        "agent_developer": (True, True, True),
        "tenant_admin": (True, True, True),
    }
    for role, (reads, submits, changes) in cases.items():
        user = await world.user(role, developer.tenant_id)
        statuses = {
            "read": [
                (await user.get(f"{path}/{name}")).status_code
                for name in ("submissions", "submissions.csv", "analytics")
            ]
            + [(await user.get(one)).status_code],
            "submit": [(await send_as_user(user, form, {"name": "Ada"})).status_code],
            "change": [(await set_status(user, form, submission_id, "archived")).status_code],
            "delete": [(await user.delete(f"{path}/submissions/sub_none")).status_code],
        }
        with subtests.test(role=role):
            assert statuses == {
                "read": [200 if reads else 403] * 4,
                "submit": [201 if submits else 403],
                "change": [200 if changes else 403],
                "delete": [404 if changes else 403],
            }


async def test_visitors_see_no_submissions(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    for path in ("submissions", f"submissions/{submission_id}", "submissions.csv", "analytics"):
        refused(await anonymous.get(f"{PATH}/{form['id']}/{path}"), 401, "unauthorized")


async def test_the_submissions_of_another_tenant_are_not_found(
    developer: Client, admin: Client, anonymous: Client
) -> None:
    form, own = await create_form(developer, TEXT, FILE), await create_form(admin)
    file_id = await upload_file(anonymous, form)
    submission_id = await submit(anonymous, form, {"name": "Ada", "file": file_id})
    for name in ("submissions", "submissions.csv", "analytics", f"submissions/{submission_id}"):
        refused(await admin.get(f"{PATH}/{form['id']}/{name}"), 404, "form_not_found")
    refused(await admin.get(f"{PATH}/{form['id']}/files/{file_id}"), 404, "file_not_found")
    for form_id, code in ((form["id"], "form_not_found"), (own["id"], "submission_not_found")):
        path = f"{PATH}/{form_id}/submissions/{submission_id}"
        refused(await admin.delete(path), 404, code)
        refused(await admin("PATCH", path, json={"status": "archived"}), 404, code)
    assert (await get_submission(developer, form, submission_id))["status"] == "received"


async def test_a_deleted_submission_leaves_no_event_with_its_answers(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    kept, deleted = [await submit(anonymous, form, {"name": name}) for name in ("Ada", "Bob")]
    answer = await developer.delete(f"{PATH}/{form['id']}/submissions/{deleted}")
    assert answer.status_code == 204
    query = {"event_type": "form.submission.created"}
    log = (await developer.get("/api/v1/event-log", params=query)).json()
    assert [entry["data"]["submission_id"] for entry in log["data"]] == [kept]
