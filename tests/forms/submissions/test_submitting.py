"""Submissions of users and of visitors: what is accepted, stored and answered."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.domain.forms.submissions import submitting, uploads
from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import create_published, transform
from tests.database import fetch_rows, lose_commit_replies
from tests.forms.api import (
    EMAIL,
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    count_submissions,
    create_form,
    get_submission,
    list_events,
    problems,
    send,
    send_as_user,
    submit,
    update_form,
    upload_file,
)
from tests.world import Client

_MESSAGE = "Thank you. Your answers have been received."
_BUDGET: dict[str, Any] = {
    "id": "budget",
    "type": "number",
    "label": "Budget",
    "required": True,
    "conditional": {"field": "topic", "operator": "equals", "value": "sales"},
}
_DEPENDENT: dict[str, Any] = {
    "id": "reason",
    "type": "text",
    "label": "Reason",
    "conditional": {"field": "budget", "operator": "gt", "value": 10},
}


async def test_a_user_gets_the_submission_and_the_message_of_the_form(developer: Client) -> None:
    form = await create_form(developer, settings={"success_message": "We will call you."})
    answer = await send_as_user(developer, form, {"name": "Ada"})
    assert answer.status_code == 201
    body = answer.json()
    submission = body["data"]
    stored = await get_submission(developer, form, submission["submission_id"])
    assert body == {
        "data": {
            "submission_id": stored["id"],
            "form_id": form["id"],
            "status": "received",
            "workflow_execution_id": None,
            "created_at": stored["created_at"],
        },
        "message": "We will call you.",
    }
    assert stored["submitted_by"] == developer.user_id


async def test_a_visitor_gets_no_more_than_the_submission_and_the_message(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    answer = await send(anonymous, form, {"name": "Ada"})
    assert answer.status_code == 201
    stored = await get_submission(developer, form, answer.json()["data"]["submission_id"])
    assert answer.json() == {
        "data": {"submission_id": stored["id"], "status": "received"},
        "message": _MESSAGE,
    }
    assert stored["submitted_by"] is None
    assert (stored["form_id"], stored["form_name"]) == (form["id"], "Contact")
    assert (stored["version"], stored["processed_at"]) == (1, None)
    assert (stored["files"], stored["flags"], stored["errors"]) == ([], [], [])


async def test_a_submission_emits_its_event_with_the_answers(
    developer: Client, anonymous: Client
) -> None:
    long = {"id": "long", "type": "textarea", "label": "L", "validation": {"max_length": 50_000}}
    form = await create_form(developer, TEXT, long)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await submit(anonymous, form, {"name": "Ada", "long": "x" * 40_000})
    (large, event) = await list_events(developer, "form.submission.created")
    assert event == {
        "submission_id": submission_id,
        "form_id": form["id"],
        "form_name": "Contact",
        "status": "received",
        "version": 1,
        "data": {"name": "Ada"},
        "source": "public",
        "flags": [],
        "owner_id": developer.user_id,
        "submitted_by": None,
    }
    assert large["data"] is None


async def test_all_problems_of_the_answers_are_named_by_field(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC)
    data = {"email": "ada", "topic": "other", "color": "red"}
    expected = {
        "name": "is required",
        "email": "must be an e-mail address, like name@example.com",
        "topic": "must be one of the options: Sales or Help",
        "color": "is not a field of this form",
    }
    assert problems(await send(anonymous, form, data)) == expected
    answer = await send_as_user(developer, form, data)
    assert problems(answer) == expected
    assert list(answer.json()["error"]["details"]) == ["errors"]
    assert await count_submissions(developer, form) == 0


async def test_values_of_hidden_fields_are_dropped_and_not_required(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TOPIC, _BUDGET, _DEPENDENT)
    shown = await submit(anonymous, form, {"topic": "sales", "budget": 50, "reason": "x"})
    # The second conditional looks at a value that the first one drops.
    hidden = await submit(anonymous, form, {"topic": "help", "budget": 50, "reason": "x"})
    stored = [await get_submission(developer, form, item) for item in (shown, hidden)]
    assert [item["data"] for item in stored] == [
        {"topic": "sales", "budget": 50, "reason": "x"},
        {"topic": "help"},
    ]
    assert problems(await send(anonymous, form, {"topic": "sales"})) == {"budget": "is required"}


async def test_a_body_of_another_shape_is_refused(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    cases: dict[str, Any] = {
        "no data": {},
        "a list": {"data": ["name"]},
        "a text": {"data": "Ada"},
        "null": {"data": None},
        "version": {"data": {"name": "Ada"}, "version": 0},
        "no time zone": {"data": {"name": "Ada"}, "started_at": "2026-01-01T12:00:00"},
        "metadata": {"data": {"name": "Ada"}, "metadata": []},
    }
    for name, body in cases.items():
        for client, path in (
            (anonymous, f"{PUBLIC}/{form['slug']}/submit"),
            (developer, f"{PATH}/{form['id']}/submit"),
        ):
            with subtests.test(case=name, path=path):
                refused(await client.post(path, body), 422, "validation_error")
    assert await count_submissions(developer, form) == 0


async def test_forms_that_do_not_exist_or_take_no_submissions_are_refused(
    developer: Client, admin: Client, anonymous: Client
) -> None:
    form = await create_form(developer, is_published=False)
    missing = {"id": "frm_none", "slug": "no-such-form"}
    data = {"name": "Ada"}
    refused(await send(anonymous, missing, data), 404, "form_not_found")
    refused(await send_as_user(developer, missing, data), 404, "form_not_found")
    refused(await send(anonymous, form, data), 409, "form_not_published")
    refused(await send_as_user(developer, form, data), 409, "form_not_published")
    refused(await send_as_user(admin, form, data), 404, "form_not_found")
    await developer.post(f"{PATH}/{form['id']}/publish")
    await developer.post(f"{PATH}/{form['id']}/archive")
    refused(await send(anonymous, form, data), 409, "form_not_published")
    refused(await send_as_user(developer, form, data), 409, "form_not_published")
    await developer.delete(f"{PATH}/{form['id']}")
    refused(await send(anonymous, form, data), 404, "form_not_found")
    refused(await send_as_user(developer, form, data), 404, "form_not_found")


async def test_answers_are_checked_by_the_version_that_was_shown(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT)
    await update_form(developer, form, fields=[EMAIL])
    older = await submit(anonymous, form, {"name": "Ada"}, version=1)
    assert problems(await send(anonymous, form, {"name": "Ada"})) == {
        "name": "is not a field of this form"
    }
    newer = await submit(anonymous, form, {"email": "ada@example.com"})
    stored = [await get_submission(developer, form, item) for item in (older, newer)]
    assert [item["version"] for item in stored] == [1, 2]
    answer = await send(anonymous, form, {"name": "Ada"}, version=3)
    refused(answer, 404, "form_version_not_found")


# Closed forms


async def test_a_form_is_closed_from_its_time_on(developer: Client, anonymous: Client) -> None:
    moment = clock.now() + timedelta(hours=1)
    form = await create_form(developer, settings={"closes_at": moment.isoformat()})
    await submit(anonymous, form, {"name": "Ada"})
    with clock.frozen(moment):
        refused(await send(anonymous, form, {"name": "Bob"}), 409, "form_closed")
    assert await count_submissions(developer, form) == 1


async def test_a_form_takes_no_more_than_its_maximum_from_many_at_once(developer: Client) -> None:
    form = await create_form(developer, settings={"max_submissions": 3})
    requests = [send_as_user(developer, form, {"name": f"Ada {n}"}) for n in range(12)]
    answers = await asyncio.gather(*requests)
    assert Counter(answer.status_code for answer in answers) == {201: 3, 409: 9}
    assert await count_submissions(developer, form) == 3
    refused(await send_as_user(developer, form, {"name": "Ada"}), 409, "form_closed")


async def test_a_deleted_submission_makes_room_for_another(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, settings={"max_submissions": 1})
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    refused(await send(anonymous, form, {"name": "Bob"}), 409, "form_closed")
    await developer.delete(f"{PATH}/{form['id']}/submissions/{submission_id}")
    await submit(anonymous, form, {"name": "Bob"})


async def test_answers_that_are_not_valid_use_up_no_place(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, FILE, settings={"max_submissions": 1})
    assert problems(await send(anonymous, form, {}))
    assert problems(await send(anonymous, form, {"name": "Ada", "file": "fil_none"}))
    await submit(anonymous, form, {"name": "Ada"})


# Repeated requests and failures


async def test_an_idempotency_key_replays_the_first_answer(
    developer: Client, anonymous: Client
) -> None:
    form, headers = await create_form(developer), {"Idempotency-Key": "one"}
    for client, sender in ((anonymous, send), (developer, send_as_user)):
        first = await sender(client, form, {"name": "Ada"}, headers=headers)
        again = await sender(client, form, {"name": "Ada"}, headers=headers)
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json() == first.json()
        assert again.headers["idempotent-replayed"] == "true"
        other = await sender(client, form, {"name": "Bob"}, headers=headers)
        assert other.json()["error"]["code"] == "idempotency_mismatch"
    assert await count_submissions(developer, form) == 2


async def test_a_key_replays_an_answer_that_was_lost_after_the_commit(
    developer: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, headers = await create_form(developer), {"Idempotency-Key": "lost"}
    with monkeypatch.context() as patch:
        lose_commit_replies(patch, developer.tenant_id)
        lost = await send(anonymous, form, {"name": "Ada"}, headers=headers)
        assert lost.status_code >= 500
    again = await send(anonymous, form, {"name": "Ada"}, headers=headers)
    assert again.status_code == 201
    assert await count_submissions(developer, form) == 1


async def test_nothing_is_stored_when_the_transaction_fails(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = await create_published(developer, [transform("only", "{{ input.data }}")])
    form = await create_form(developer, TEXT, FILE, workflow_id=workflow_id)
    file_id = await upload_file(anonymous, form)
    data, headers = {"name": "Ada", "file": file_id}, {"Idempotency-Key": "failed"}

    async def fail(*_args: object) -> None:
        raise RuntimeError("the worker is killed")

    with monkeypatch.context() as patch:
        patch.setattr(uploads, "bind", fail)
        assert (await send(anonymous, form, data, headers=headers)).status_code == 500
    assert await count_submissions(developer, form) == 0
    assert await list_events(developer, "form.submission.created") == []
    sql = "SELECT id FROM work WHERE tenant_id = $1 AND kind = 'forms.process'"
    assert await fetch_rows(services, sql, developer.tenant_id) == []
    sql = "SELECT id FROM workflow_executions WHERE tenant_id = $1"
    assert await fetch_rows(services, sql, developer.tenant_id) == []
    assert (await send(anonymous, form, data, headers=headers)).status_code == 201


async def test_a_form_that_is_withdrawn_meanwhile_stores_nothing(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment when the form is read and the one when the answers are stored."""
    form, check = await create_form(developer), submitting.check

    async def send_meanwhile(method: str, path: str) -> httpx.Response:
        async def check_after(*args: Any) -> dict[str, Any]:
            assert (await developer(method, path)).status_code in {200, 204}
            return await check(*args)

        with monkeypatch.context() as patch:
            patch.setattr(submitting, "check", check_after)
            return await send(anonymous, form, {"name": "Ada"})

    path = f"{PATH}/{form['id']}"
    refused(await send_meanwhile("POST", f"{path}/unpublish"), 409, "form_not_published")
    await developer.post(f"{path}/publish")
    refused(await send_meanwhile("DELETE", path), 404, "form_not_found")
    sql = "SELECT id FROM form_submissions WHERE form_id = $1"
    assert await fetch_rows(services, sql, form["id"]) == []
