"""Versions of forms: which fields answers are checked by, and which they keep."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.database import run_sql
from tests.forms.api import (
    EMAIL,
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    act,
    get_form,
    get_submission,
    list_versions,
    problems,
    publish,
    request_form,
    send,
    submit,
    update_form,
)
from tests.platform.events.database import load_events
from tests.world import Client, World

AGE: dict[str, Any] = {"id": "age", "type": "number", "label": "Age", "required": True}


def _ids(form: dict[str, Any]) -> list[str]:
    return [field["id"] for field in form["fields"]]


async def _get_version(client: Client, form: dict[str, Any], version: object) -> Any:
    answer = await client.get(f"{PATH}/{form['id']}/versions/{version}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_draft_that_was_never_published_is_changed_in_place(
    developer: Client, anonymous: Client
) -> None:
    form = await request_form(developer, TEXT, is_published=False)
    for fields in ([TEXT, EMAIL], [AGE]):
        form = await update_form(developer, form, fields=fields)
        assert form["version"] == 1
    (version,) = await list_versions(developer, form)
    assert (version["version"], version["published_at"]) == (1, None)
    await publish(developer, form)
    assert problems(await send(anonymous, form, {"name": "Ada"})) == {
        "age": "is required",
        "name": "is not a field of this form",
    }
    (version,) = await list_versions(developer, form)
    assert version["published_at"]


async def test_new_fields_of_a_published_form_are_a_version_that_is_live_at_once(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer, TEXT)
    await submit(anonymous, form, {"name": "Ada"})
    changed = await update_form(developer, form, name="Persons", fields=[TEXT, AGE])
    assert (changed["version"], changed["status"]) == (2, "published")
    assert _ids(changed) == ["name", "age"]
    shown = (await anonymous.get(f"{PUBLIC}/{form['slug']}")).json()["data"]
    assert (shown["version"], _ids(shown)) == (2, ["name", "age"])
    assert problems(await send(anonymous, form, {"name": "Ada"})) == {"age": "is required"}
    (event,) = await load_events(services, developer.tenant_id, "form.updated")
    assert (event["data"]["version"], event["data"]["changed"]) == (2, ["name", "fields"])


async def test_new_fields_of_a_withdrawn_form_are_a_version_that_is_live_once_published(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    """The version that was published stays: submissions refer to it."""
    for action in ["unpublish", "archive"]:
        with subtests.test(action=action):
            form = await request_form(developer, TEXT)
            await act(developer, form, action)
            for fields in ([TEXT, EMAIL], [TEXT, AGE]):
                assert (await update_form(developer, form, fields=fields))["version"] == 2
            versions = await list_versions(developer, form)
            assert [bool(version["published_at"]) for version in versions] == [False, True]
            await publish(developer, form)
            assert problems(await send(anonymous, form, {"name": "Ada"})) == {"age": "is required"}
            await submit(anonymous, form, {"name": "Ada"}, version=1)


async def test_submissions_keep_the_fields_that_they_were_made_with(
    developer: Client, anonymous: Client
) -> None:
    form = await request_form(developer, TEXT, TOPIC)
    first = await submit(anonymous, form, {"name": "Ada", "topic": "help"})
    renamed = {**TOPIC, "options": [{"value": "other", "label": "Other"}]}
    await update_form(developer, form, fields=[renamed, AGE])
    second = await submit(anonymous, form, {"topic": "other", "age": 40})
    stored = [await get_submission(developer, form, item) for item in (first, second)]
    assert [item["version"] for item in stored] == [1, 2]
    assert stored[0]["data"] == {"name": "Ada", "topic": "help"}
    assert stored[1]["data"] == {"topic": "other", "age": 40}
    old = await _get_version(developer, form, stored[0]["version"])
    assert old["fields"][1]["options"] == TOPIC["options"]


async def test_answers_are_checked_by_the_version_that_the_page_has_shown(
    developer: Client, anonymous: Client
) -> None:
    """The author changes the form while a visitor fills it in."""
    form = await request_form(developer, TEXT)
    await update_form(developer, form, fields=[AGE])
    submission_id = await submit(anonymous, form, {"name": "Ada"}, version=1)
    assert (await get_submission(developer, form, submission_id))["version"] == 1
    assert problems(await send(anonymous, form, {"age": 4}, version=1)) == {
        "name": "is required",
        "age": "is not a field of this form",
    }
    body = {"data": {"name": "Bob"}, "version": 1}
    answer = await developer.post(f"{PATH}/{form['id']}/submit", body)
    assert answer.status_code == 201
    assert (await get_form(developer, form))["stats"]["submissions"] == 2


async def test_a_version_that_was_never_published_takes_no_answers(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await request_form(developer, TEXT)
    await update_form(developer, form, fields=[TEXT, EMAIL])
    unknown: list[Any] = [3, 1_000_000]
    wrong: list[Any] = [0, -1, 1.5, "1", 2**31, 2**63]
    for version in unknown:
        with subtests.test(version=version):
            answer = await send(anonymous, form, {"name": "Ada"}, version=version)
            refused(answer, 404, "form_version_not_found")
    for version in wrong:
        with subtests.test(version=version):
            answer = await send(anonymous, form, {"name": "Ada"}, version=version)
            refused(answer, 422, "validation_error")
    assert (await get_form(developer, form))["stats"]["submissions"] == 0


async def test_the_order_of_fields_is_part_of_a_version(developer: Client) -> None:
    form = await request_form(developer, TEXT, EMAIL)
    changed = await update_form(developer, form, fields=[EMAIL, TEXT])
    assert (changed["version"], _ids(changed)) == (2, ["email", "name"])
    assert (await update_form(developer, form, fields=[EMAIL, TEXT]))["version"] == 2


async def test_a_condition_on_true_replaces_one_on_1(developer: Client, anonymous: Client) -> None:
    """The two are equal in Python, and differ in conditions."""
    box = {"id": "box", "type": "hidden", "label": "Box"}
    shown_if = {"field": "box", "operator": "equals", "value": 1}
    form = await request_form(developer, box, {**AGE, "conditional": shown_if})
    await submit(anonymous, form, {"box": True})
    fields = [box, {**AGE, "conditional": {**shown_if, "value": True}}]
    changed = await update_form(developer, form, fields=fields)
    assert changed["version"] == 2
    assert changed["fields"][1]["conditional"]["value"] is True
    assert problems(await send(anonymous, form, {"box": True})) == {"age": "is required"}


async def test_versions_are_listed_the_newest_first(developer: Client, world: World) -> None:
    form = await request_form(developer, TEXT)
    colleague = await world.user("tenant_admin", developer.tenant_id)
    await update_form(colleague, form, fields=[EMAIL])
    await update_form(developer, form, fields=[AGE])
    versions = await list_versions(developer, form)
    assert [item["version"] for item in versions] == [3, 2, 1]
    assert set(versions[0]) == {"version", "created_by", "created_at", "published_at"}
    authors = [developer.user_id, colleague.user_id, developer.user_id]
    assert [item["created_by"] for item in versions] == authors
    page = await list_versions(developer, form, per_page=2, page=2)
    assert [item["version"] for item in page] == [1]
    for number, field in ((1, "name"), (2, "email"), (3, "age")):
        version = await _get_version(developer, form, number)
        assert (version["version"], _ids(version)) == (number, [field])
        assert {key: version[key] for key in versions[0]} == versions[3 - number]


async def test_an_unknown_version_is_not_found(
    developer: Client, subtests: pytest.Subtests
) -> None:
    form = await request_form(developer, TEXT)
    for version in ("2", "0", "-1", "01", "1.0", "x", "99999999999999999999", "\u0661"):
        with subtests.test(version=version):
            answer = await developer.get(f"{PATH}/{form['id']}/versions/{version}")
            refused(answer, 404, "form_version_not_found")
    refused(await developer.get(f"{PATH}/frm_none/versions/1"), 404, "form_not_found")
    refused(await developer.get(f"{PATH}/frm_none/versions"), 404, "form_not_found")


async def test_changes_at_the_same_time_are_versions_of_their_own(developer: Client) -> None:
    form = await request_form(developer, TEXT)
    fields = [[{**TEXT, "label": f"Name {number}"}] for number in range(5)]
    await asyncio.gather(*(update_form(developer, form, fields=item) for item in fields))
    versions = await list_versions(developer, form)
    assert [item["version"] for item in versions] == [6, 5, 4, 3, 2, 1]
    labels = {
        (await _get_version(developer, form, number))["fields"][0]["label"]
        for number in range(2, 7)
    }
    assert labels == {f"Name {number}" for number in range(5)}


async def test_a_change_during_the_publication_is_never_lost(
    developer: Client, anonymous: Client
) -> None:
    """Visitors see the fields that the author sees, whichever came first."""
    for _ in range(5):
        form = await request_form(developer, TEXT, is_published=False)
        await asyncio.gather(
            update_form(developer, form, fields=[AGE]),
            publish(developer, form),
            anonymous.get(f"{PUBLIC}/{form['slug']}"),
        )
        stored = await get_form(developer, form)
        shown = (await anonymous.get(f"{PUBLIC}/{form['slug']}")).json()["data"]
        assert _ids(stored) == _ids(shown) == ["age"]
        assert (stored["status"], stored["version"]) == ("published", shown["version"])


async def test_a_form_has_a_limited_number_of_versions(
    developer: Client, services: Services
) -> None:
    form = await request_form(developer, TEXT)
    await run_sql(services, "UPDATE forms SET version = 200 WHERE id = $1", form["id"])
    sql = "UPDATE form_versions SET version = 200 WHERE form_id = $1"
    await run_sql(services, sql, form["id"])
    answer = await developer.put(f"{PATH}/{form['id']}", {"fields": [EMAIL]})
    error = refused(answer, 409, "too_many_versions")
    assert error["message"] == (
        "A form has at most 200 versions; duplicate this one and change the copy"
    )
    # All else can be changed, and the copy starts anew.
    await update_form(developer, form, name="Other", fields=[TEXT])
    copy = (await act(developer, form, "duplicate")).json()["data"]
    assert (await update_form(developer, copy, fields=[EMAIL]))["version"] == 1
    # A version that was not published is changed in place.
    await act(developer, form, "unpublish")
    sql = "UPDATE form_versions SET published_at = NULL WHERE form_id = $1"
    await run_sql(services, sql, form["id"])
    assert (await update_form(developer, form, fields=[EMAIL]))["version"] == 200
