"""What is done with a submission: the row, the workflow, the mail, and all of it once."""

from typing import Any

import pytest

from app.domain.automation.workflows.errors import TooManyPendingExecutions
from app.domain.data.tables import api as tables
from app.domain.forms.submissions import triggers
from app.domain.platform.events import api as events
from app.kit.errors import Unavailable
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import PATH as WORKFLOWS
from tests.automation.workflows.factories import create_published, publish, read, transform
from tests.data.tables.api import TABLES, create_table, list_rows
from tests.database import fetch_rows
from tests.forms.api import (
    EMAIL,
    PATH,
    TEXT,
    TOPIC,
    create_form,
    get_submission,
    list_events,
    save_to,
    send_as_user,
    set_status,
    submit,
    update_form,
)
from tests.forms.manual_worker import (
    TEAM,
    allow_mails,
    find_work,
    process,
    process_again,
    process_last_time,
    read_mails,
)
from tests.world import Client

_TEAM = {"notifications": {"email": TEAM}}
_COLUMNS: list[dict[str, Any]] = [{"name": "Name", "type": "text"}]
_ALL_DONE: tuple[str, list[Any]] = ("processed", [])


async def _create_workflow(client: Client) -> str:
    return await create_published(client, [transform("only", "{{ input.data }}")])


async def _count_executions(services: Services, tenant_id: str) -> int:
    sql = "SELECT id FROM workflow_executions WHERE tenant_id = $1"
    return len(await fetch_rows(services, sql, tenant_id))


async def _create_busy_form(
    client: Client, services: Services
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a form with a row, a workflow and a mail for each submission, and its table."""
    await allow_mails(services, client.tenant_id)
    table = await create_table(client, _COLUMNS)
    form = await create_form(
        client,
        settings=_TEAM,
        workflow_id=await _create_workflow(client),
        data_table_config=save_to(table, name="Name"),
    )
    return form, table


async def test_a_submission_becomes_processed_and_an_event_tells_so(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    assert (await process(services, submission_id))["state"] == "done"
    stored = await get_submission(developer, form, submission_id)
    assert (stored["status"], stored["errors"]) == _ALL_DONE
    assert stored["processed_at"] > stored["created_at"]
    assert (stored["row_id"], stored["workflow_execution"]) == (None, None)
    assert await list_events(developer, "form.submission.updated") == [
        {
            "submission_id": submission_id,
            "form_id": form["id"],
            "form_name": "Contact",
            "status": "processed",
            "errors": [],
        }
    ]


async def test_the_events_of_a_submission_have_one_correlation_id(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, _ = await _create_busy_form(developer, services)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await process(services, submission_id)
    sql = """SELECT type, correlation_id FROM event_log WHERE tenant_id = $1
             AND (type LIKE 'form.submission.%' OR type LIKE 'workflow.execution.%')"""
    rows = await fetch_rows(services, sql, developer.tenant_id)
    assert len({row["correlation_id"] for row in rows}) == 1
    assert {"form.submission.created", "form.submission.updated"} <= {row["type"] for row in rows}


async def test_an_archived_submission_is_processed_and_stays_archived(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, table = await _create_busy_form(developer, services)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await set_status(developer, form, submission_id, "archived")
    await process(services, submission_id)
    stored = await get_submission(developer, form, submission_id)
    assert (stored["status"], stored["processed_at"] is None) == ("archived", False)
    assert len((await list_rows(developer, table))["data"]) == 1


async def test_a_submission_returns_from_the_archive_only_once_it_was_processed(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    refused(await set_status(developer, form, submission_id, "processed"), 409, "invalid_state")
    assert (await set_status(developer, form, submission_id, "archived")).status_code == 200
    refused(await set_status(developer, form, submission_id, "processed"), 409, "invalid_state")
    await process(services, submission_id)
    answer = await set_status(developer, form, submission_id, "processed")
    stored = await get_submission(developer, form, submission_id)
    assert answer.json()["data"] == stored
    assert stored["status"] == "processed"


async def test_a_submission_or_form_that_was_deleted_is_not_processed(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, table = await _create_busy_form(developer, services)
    first, second = [await submit(anonymous, form, {"name": name}) for name in ("Ada", "Bob")]
    await developer.delete(f"{PATH}/{form['id']}/submissions/{first}")
    assert (await process(services, first))["state"] == "done"
    await developer.delete(f"{PATH}/{form['id']}")
    assert (await process(services, second))["state"] == "done"
    assert await read_mails(services, developer.tenant_id) == []
    assert (await list_rows(developer, table))["data"] == []


# Rows


async def test_a_second_attempt_adds_no_second_row(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, table = await _create_busy_form(developer, services)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await process(services, submission_id)
    await process_again(services, submission_id)
    (row,) = (await list_rows(developer, table))["data"]
    assert row["id"] == (await get_submission(developer, form, submission_id))["row_id"]
    assert await _count_executions(services, developer.tenant_id) == 1
    assert len(await read_mails(services, developer.tenant_id)) == 1


async def test_what_the_table_refuses_is_recorded_and_the_rest_is_done(
    developer: Client, anonymous: Client, services: Services
) -> None:
    columns = [{"name": "Name", "type": "text", "unique": True}]
    table = await create_table(developer, columns)
    await allow_mails(services, developer.tenant_id)
    form = await create_form(
        developer, settings=_TEAM, data_table_config=save_to(table, name="Name")
    )
    ids = [await submit(anonymous, form, {"name": "Ada"}) for _ in range(2)]
    for submission_id in ids:
        assert (await process(services, submission_id))["state"] == "done"
    first, second = [await get_submission(developer, form, item) for item in ids]
    assert (first["status"], first["errors"]) == _ALL_DONE
    (error,) = second["errors"]
    assert (second["status"], second["row_id"], error["step"]) == ("processed", None, "data_table")
    assert "unique" in error["message"]
    assert len(await read_mails(services, developer.tenant_id)) == 2


async def test_a_table_that_was_deleted_is_recorded(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, table = await _create_busy_form(developer, services)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    assert (await developer.delete(f"{TABLES}/{table['id']}")).status_code == 204
    await process(services, submission_id)
    stored = await get_submission(developer, form, submission_id)
    assert [error["step"] for error in stored["errors"]] == ["data_table"]
    assert stored["status"] == "processed"


async def test_without_auto_save_no_row_is_added(
    developer: Client, anonymous: Client, services: Services
) -> None:
    table = await create_table(developer, _COLUMNS)
    config = {**save_to(table, name="Name"), "auto_save": False}
    form = await create_form(developer, data_table_config=config)
    await process(services, await submit(anonymous, form, {"name": "Ada"}))
    assert (await list_rows(developer, table))["data"] == []


async def test_answers_of_an_older_version_are_saved_as_far_as_they_are_mapped(
    developer: Client, anonymous: Client, services: Services
) -> None:
    table = await create_table(developer, [*_COLUMNS, {"name": "Mail", "type": "text"}])
    form = await create_form(
        developer, TEXT, EMAIL, data_table_config=save_to(table, name="Name", email="Mail")
    )
    submission_id = await submit(anonymous, form, {"name": "Ada", "email": "ada@example.com"})
    await update_form(
        developer, form, fields=[EMAIL], data_table_config=save_to(table, email="Mail")
    )
    await process(services, submission_id)
    (row,) = (await list_rows(developer, table))["data"]
    assert row["values"] == {"Name": None, "Mail": "ada@example.com"}


# Workflows


async def test_a_submission_starts_the_workflow_at_once_with_the_answers(
    developer: Client, services: Services
) -> None:
    workflow_id = await _create_workflow(developer)
    form = await create_form(developer, TEXT, TOPIC, workflow_id=workflow_id)
    answer = await send_as_user(developer, form, {"name": "Ada", "topic": "sales"})
    accepted = answer.json()["data"]
    execution = await read(developer, accepted["workflow_execution_id"])
    assert execution["input"] == {
        "form_id": form["id"],
        "form_name": "Contact",
        "submission_id": accepted["submission_id"],
        "version": 1,
        "data": {"name": "Ada", "topic": "sales"},
        "created_at": accepted["created_at"],
    }
    assert execution["trigger"] == {"type": "form", "id": form["id"]}
    await process(services, accepted["submission_id"])
    stored = await get_submission(developer, form, accepted["submission_id"])
    assert stored["workflow_execution"]["id"] == execution["id"]
    assert await _count_executions(services, developer.tenant_id) == 1


async def test_a_workflow_that_is_not_published_is_recorded_and_loses_nothing(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, table = await _create_busy_form(developer, services)
    await developer.post(f"{WORKFLOWS}/{form['workflow_id']}/unpublish")
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    assert (await process(services, submission_id))["state"] == "done"
    stored = await get_submission(developer, form, submission_id)
    (error,) = stored["errors"]
    assert (stored["status"], stored["workflow_execution"]) == ("processed", None)
    assert (error["step"], "published" in error["message"]) == ("workflow", True)
    assert len((await list_rows(developer, table))["data"]) == 1
    assert (await list_events(developer, "form.submission.updated"))[0]["errors"] == [error]


async def test_a_workflow_that_is_published_meanwhile_starts_with_the_worker(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, _ = await _create_busy_form(developer, services)
    await developer.post(f"{WORKFLOWS}/{form['workflow_id']}/unpublish")
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await publish(developer, form["workflow_id"])
    await process(services, submission_id)
    stored = await get_submission(developer, form, submission_id)
    assert (stored["status"], stored["errors"]) == _ALL_DONE
    execution = await read(developer, stored["workflow_execution_id"])
    assert execution["input"]["data"] == {"name": "Ada"}
    assert execution["input"]["created_at"] == stored["created_at"]


async def test_too_many_pending_executions_are_tried_again(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, table = await _create_busy_form(developer, services)

    async def refuse(*_: object) -> str:
        raise TooManyPendingExecutions("too many executions wait")

    with monkeypatch.context() as patch:
        patch.setattr(triggers, "start_workflow", refuse)
        submission_id = await submit(anonymous, form, {"name": "Ada"})
        assert (await process(services, submission_id))["state"] == "pending"
        assert (await list_rows(developer, table))["data"] == []
        assert await read_mails(services, developer.tenant_id) == []
    await process(services, submission_id)
    stored = await get_submission(developer, form, submission_id)
    assert (stored["status"], stored["errors"]) == _ALL_DONE
    assert stored["workflow_execution_id"] is not None


async def test_the_last_attempt_does_the_rest_without_the_workflow(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, table = await _create_busy_form(developer, services)

    async def refuse(*_: object) -> str:
        raise TooManyPendingExecutions("too many executions wait")

    monkeypatch.setattr(triggers, "start_workflow", refuse)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    assert (await process_last_time(services, submission_id))["state"] == "done"
    stored = await get_submission(developer, form, submission_id)
    problem = {"step": "workflow", "message": "too many executions wait"}
    assert (stored["status"], stored["errors"]) == ("processed", [problem])
    assert len((await list_rows(developer, table))["data"]) == 1


# Mails


async def test_the_mail_has_all_answers_as_people_read_them(
    developer: Client, anonymous: Client, services: Services
) -> None:
    group = {"id": "days", "type": "multi_select", "label": "Days", "options": TOPIC["options"]}
    agree = {"id": "agree", "type": "checkbox", "label": "Agree"}
    await allow_mails(services, developer.tenant_id)
    form = await create_form(developer, TEXT, TOPIC, group, agree, EMAIL, settings=_TEAM)
    data = {"name": "Ada", "topic": "sales", "days": ["sales", "help"], "agree": True}
    submission_id = await submit(anonymous, form, data)
    await process(services, submission_id)
    ((recipient, content),) = await read_mails(services, developer.tenant_id)
    assert (recipient, content.subject) == (TEAM, "New submission: Contact")
    for text in ("Your name\nAda", "Topic\nSales", "Days\nSales, Help", "Agree\nyes"):
        assert text in content.text
    assert submission_id in content.text
    assert EMAIL["label"] not in content.text


# Failures


async def test_a_worker_that_is_killed_leaves_nothing_and_the_retry_does_all_once(
    developer: Client,
    anonymous: Client,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    form, table = await _create_busy_form(developer, services)
    await developer.post(f"{WORKFLOWS}/{form['workflow_id']}/unpublish")
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await publish(developer, form["workflow_id"])
    for module, name in ((tables, "insert_row"), (triggers, "start_workflow"), (events, "emit")):
        with subtests.test(step=name), monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            assert (await process(services, submission_id))["state"] == "pending"
        assert (await list_rows(developer, table))["data"] == []
        assert await read_mails(services, developer.tenant_id) == []
        assert await _count_executions(services, developer.tenant_id) == 0
        stored = await get_submission(developer, form, submission_id)
        assert (stored["status"], stored["processed_at"]) == ("received", None)
    assert (await process(services, submission_id))["state"] == "done"
    assert len((await list_rows(developer, table))["data"]) == 1
    assert len(await read_mails(services, developer.tenant_id)) == 1
    assert await _count_executions(services, developer.tenant_id) == 1


async def test_what_is_unavailable_is_tried_again(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, _ = await _create_busy_form(developer, services)
    submission_id = await submit(anonymous, form, {"name": "Ada"})

    async def refuse(*_: object, **__: object) -> None:
        raise Unavailable("The table is being changed")

    with monkeypatch.context() as patch:
        patch.setattr(tables, "insert_row", refuse)
        assert (await process(services, submission_id))["state"] == "pending"
    assert (await process(services, submission_id))["state"] == "done"


async def test_work_that_is_given_up_is_recorded_and_the_submission_stays_received(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, _ = await _create_busy_form(developer, services)
    submission_id = await submit(anonymous, form, {"name": "Ada"})

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("hunter2")

    with monkeypatch.context() as patch:
        patch.setattr(tables, "insert_row", fail)
        assert (await process_last_time(services, submission_id))["state"] == "dead"
    stored = await get_submission(developer, form, submission_id)
    (error,) = stored["errors"]
    assert (stored["status"], error["step"]) == ("received", "processing")
    assert "hunter2" not in error["message"]
    assert (await find_work(services, submission_id))["state"] == "dead"
