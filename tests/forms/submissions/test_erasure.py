"""A deleted submission or form leaves no answers behind, wherever they went."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from litestar import Litestar

from app.domain.automation.subscriptions.actions import ACTIONS
from app.domain.forms.submissions import uploads
from app.kit.ids import new_id
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.assertions import wait_until
from tests.automation.workflows.factories import chain, create_published, transform
from tests.data.tables.api import create_table
from tests.database import fetch_rows, run_sql
from tests.forms.api import FILE, PATH, TEXT, create_form, save_to, submit, upload_file
from tests.forms.conversation.chat import start
from tests.forms.manual_worker import TEAM, allow_mails
from tests.forms.upkeep import RETENTION, TASKS
from tests.peer import answering
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.tenant_rows import read_tenant_rows
from tests.world import Client
from workers.main import WorkerProcess
from workers.runner import Runner

# What a tenant made of the answers is its own.
_OWN_COPIES = {"data_rows"}
_QUEUES = ("default", "workflows", "deliveries")
_EVENT = "form.submission.created"


@pytest.fixture(scope="module")
async def worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    del app
    await cancel_earlier_work(stores)
    async with run_worker(stores.settings, *_QUEUES, slots=6) as process:
        yield process


@pytest.fixture(scope="module")
async def echo() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async with answering(answer) as url:
        yield url


async def _find_copies(services: Services, tenant_id: str, text: str) -> set[str]:
    """Returns the tables that have the text in a row."""
    rows = await read_tenant_rows(services, tenant_id)
    return {table for table, of_table in rows.items() if text in of_table}


def _notify(client: Client, text: str) -> dict[str, Any]:
    return {"user_ids": [client.user_id], "title": text, "message": text}


async def _subscribe(client: Client, url: str) -> None:
    """Sends the answers on by every kind of action."""
    text = "{{ event.data.data.name }}"
    nodes = [transform("copy", "{{ input.event.data.data.name }}")]
    actions: dict[str, dict[str, Any]] = {
        "webhook": {"url": url},
        "notification": _notify(client, text),
        "workflow": {"workflow_id": await create_published(client, nodes)},
    }
    assert actions.keys() == ACTIONS.keys()
    for action_type, config in actions.items():
        body = {"event_type": _EVENT, "action_type": action_type, "action_config": config}
        answer = await client.post("/api/v1/event-subscriptions", body)
        assert answer.status_code == 201, answer.text
    answer = await client.post("/api/v1/webhooks", {"url": url, "events": [_EVENT]})
    assert answer.status_code == 201, answer.text


async def _create_busy_form(client: Client, services: Services, url: str) -> dict[str, Any]:
    """Returns a form whose answers go everywhere."""
    await allow_mails(services, client.tenant_id)
    await _subscribe(client, url)
    table = await create_table(client, [{"name": "Name", "type": "text"}])
    text = "{{ input.data.name }}"
    notify = {"id": "notify", "type": "notification", "config": _notify(client, text)}
    nodes = [transform("copy", text), notify]
    return await create_form(
        client,
        TEXT,
        FILE,
        settings={"notifications": {"email": TEAM}},
        workflow_id=await create_published(client, nodes, chain("copy", "notify")),
        data_table_config=save_to(table, name="Name"),
    )


async def _submit(visitor: Client, form: dict[str, Any]) -> tuple[str, str]:
    """Returns the id of a submission, and a text that its answers and its file's name have."""
    text = f"planted{new_id('x')}"
    file_id = await upload_file(visitor, form, filename=f"{text}.txt")
    return await submit(visitor, form, {"name": text, "file": file_id}), text


async def _wait_for_the_end(services: Services, tenant_id: str, submission_id: str) -> None:
    """Waits until all work of the submission is done."""

    async def is_settled() -> bool:
        sql = """
        SELECT (SELECT count(*) FROM work WHERE tenant_id = $1 AND state IN ('pending', 'leased'))
             + (SELECT count(*) FROM workflow_executions
                WHERE tenant_id = $1 AND finished_at IS NULL)
             + (SELECT count(*) FROM form_submissions WHERE id = $2 AND processed_at IS NULL)
             AS open
        """
        (row,) = await fetch_rows(services, sql, tenant_id, submission_id)
        return bool(row["open"] == 0)

    await wait_until(is_settled)


async def test_a_deleted_form_leaves_no_answers(
    developer: Client,
    anonymous: Client,
    services: Services,
    stores: Stores,
    worker: WorkerProcess,
    echo: str,
) -> None:
    del worker
    form = await _create_busy_form(developer, services, echo)
    submission_id, text = await _submit(anonymous, form)
    await _wait_for_the_end(services, developer.tenant_id, submission_id)
    copies = await _find_copies(services, developer.tenant_id, text)
    assert copies >= {"event_log", "notification_messages", "workflow_executions", "data_rows"}
    assert "delivery_attempts" in copies
    assert (await developer.delete(f"{PATH}/{form['id']}")).status_code == 204
    await _clean_up(services, form)
    assert await _find_copies(services, developer.tenant_id, text) == _OWN_COPIES


async def test_a_deleted_submission_leaves_no_answers(
    developer: Client,
    anonymous: Client,
    services: Services,
    stores: Stores,
    worker: WorkerProcess,
    echo: str,
) -> None:
    del worker
    form = await _create_busy_form(developer, services, echo)
    (kept, kept_text), (deleted, text) = [await _submit(anonymous, form) for _ in range(2)]
    for submission_id in (kept, deleted):
        await _wait_for_the_end(services, developer.tenant_id, submission_id)
    copies = await _find_copies(services, developer.tenant_id, kept_text)
    path = f"{PATH}/{form['id']}/submissions/{deleted}"
    assert (await developer.delete(path)).status_code == 204
    # At once, except for the file.
    assert await _find_copies(services, developer.tenant_id, text) <= {
        *_OWN_COPIES,
        "form_uploads",
        "files",
        "event_log",
    }
    await uploads.delete_expired(services)
    assert await _find_copies(services, developer.tenant_id, text) == _OWN_COPIES
    assert await _find_copies(services, developer.tenant_id, kept_text) == copies


async def test_what_still_runs_is_erased_once_it_has_ended(
    developer: Client, anonymous: Client, services: Services, stores: Stores
) -> None:
    nodes = [{"id": "wait", "type": "delay", "config": {"seconds": 3600}}]
    form = await create_form(developer, TEXT, workflow_id=await create_published(developer, nodes))
    text = f"planted{new_id('x')}"
    submission_id = await submit(anonymous, form, {"name": text})
    await developer.delete(f"{PATH}/{form['id']}/submissions/{submission_id}")
    assert await _find_copies(services, developer.tenant_id, text) == {
        "event_log",
        "workflow_executions",
    }
    assert await _run_erasure(services, submission_id) == "pending"
    await run_sql(
        services,
        "UPDATE workflow_executions SET status = 'cancelled', finished_at = now() "
        "WHERE tenant_id = $1",
        developer.tenant_id,
    )

    async def is_erased() -> bool:
        return await _run_erasure(services, submission_id) == "done"

    # A worker of an earlier test may have begun an attempt before the execution ended.
    await wait_until(is_erased)
    assert await _find_copies(services, developer.tenant_id, text) == set()


async def test_a_conversation_goes_with_its_submission(
    developer: Client,
    anonymous: Client,
    services: Services,
    stores: Stores,
    worker: WorkerProcess,
) -> None:
    del worker
    form, text = await create_form(developer, TEXT), f"planted{new_id('x')}"
    submission_id = (await (await start(anonymous, form)).say(text))["submission_id"]
    await _wait_for_the_end(services, developer.tenant_id, submission_id)
    assert await _find_copies(services, developer.tenant_id, text) >= {
        "form_messages",
        "form_conversations",
    }
    await developer.delete(f"{PATH}/{form['id']}/submissions/{submission_id}")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), RETENTION)
    assert await _find_copies(services, developer.tenant_id, text) == set()


async def test_many_submissions_are_deleted_in_batches(
    developer: Client, anonymous: Client, services: Services, worker: WorkerProcess
) -> None:
    del worker
    form = await create_form(developer, TEXT)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    await _wait_for_the_end(services, developer.tenant_id, submission_id)
    event_id = f"evt_{submission_id[4:]}"
    for sql, row_id in ((_COPY_SUBMISSION, submission_id), (_COPY_EVENT, event_id)):
        await run_sql(services, sql, row_id)
    await developer.delete(f"{PATH}/{form['id']}")
    await _clean_up(services, form)
    sql = """
    SELECT (SELECT count(*) FROM form_submissions WHERE form_id = $1)
         + (SELECT count(*) FROM event_log WHERE data->>'form_id' = $1
            AND type = 'form.submission.created') AS count
    """
    (row,) = await fetch_rows(services, sql, form["id"])
    assert row["count"] == 0


_COPY_SUBMISSION = """
INSERT INTO form_submissions
    (tenant_id, id, form_id, version, data, custom_metadata, source, ip_address, user_agent,
     page_url, referrer, answered, fingerprint, errors)
SELECT tenant_id, id || n, form_id, version, data, custom_metadata, source, ip_address, user_agent,
       page_url, referrer, answered, fingerprint, errors
FROM form_submissions CROSS JOIN generate_series(1, 250) n WHERE id = $1
"""
_COPY_EVENT = """
INSERT INTO event_log (tenant_id, id, type, correlation_id, data)
SELECT tenant_id, id || n, type, correlation_id, data
FROM event_log CROSS JOIN generate_series(1, 250) n WHERE id = $1
"""


async def _clean_up(services: Services, form: dict[str, Any]) -> None:
    """Runs what workers run for a form that was deleted a while ago."""
    sql = "UPDATE forms SET deleted_at = now() - interval '2 minutes' WHERE id = $1"
    await run_sql(services, sql, form["id"])
    for task in TASKS:
        while await task.run(services) is True:
            pass


async def _run_erasure(services: Services, submission_id: str) -> str:
    """Returns the state of the work afterwards."""
    sql = "SELECT * FROM work WHERE kind = 'forms.erase' AND ref_id = $1"
    (work,) = await fetch_rows(services, sql, submission_id)
    await run_sql(services, "UPDATE work SET run_at = now() WHERE id = $1", work["id"])
    await Runner(services).run(work["id"])
    (work,) = await fetch_rows(services, sql, submission_id)
    state: str = work["state"]
    return state
