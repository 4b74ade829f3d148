"""A submission on its way through a worker."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar import Litestar

from app.domain.forms.submissions.submitting import WakePace
from app.services import Services
from tests.assertions import wait_until
from tests.automation.workflows.factories import create_published, transform
from tests.data.tables.api import create_table, list_rows
from tests.forms.api import create_form, get_submission, save_to, submit
from tests.messaging.notifications.center.api import list_notifications
from tests.running_worker import cancel_earlier_work, run_worker
from tests.security.grants import change_grant
from tests.stores import Stores
from tests.world import Client, World
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    await cancel_earlier_work(stores)
    queues = ("default", "workflows", "deliveries")
    async with run_worker(stores.settings, *queues, slots=6) as process:
        yield process


async def test_a_worker_processes_a_submission_and_tells_the_creator_of_the_form(
    world: World,
    developer: Client,
    anonymous: Client,
    worker: WorkerProcess,
    services: Services,
) -> None:
    del worker
    table = await create_table(developer, [{"name": "Name", "type": "text"}])
    form = await create_form(
        developer,
        workflow_id=await create_published(developer, [transform("only", "{{ input.data }}")]),
        data_table_config=save_to(table, name="Name"),
    )
    submission_id = await submit(anonymous, form, {"name": "Ada"})

    async def find_processed() -> dict[str, Any] | None:
        stored = await get_submission(developer, form, submission_id)
        execution = stored["workflow_execution"] or {"status": ""}
        is_done = stored["status"] == "processed" and execution["status"] == "completed"
        return stored if is_done else None

    stored = await wait_until(find_processed)
    assert stored is not None
    assert stored["processed_at"] >= stored["created_at"]
    assert stored["workflow_execution"] == {
        "id": stored["workflow_execution_id"],
        "status": "completed",
        "output": {"name": "Ada"},
    }
    (row,) = (await list_rows(developer, table))["data"]
    assert (row["id"], row["values"]) == (stored["row_id"], {"Name": "Ada"})
    (note,) = await wait_until(lambda: list_notifications(developer))
    assert (note["type"], note["title"]) == ("form_submission", "New submission: Contact")

    viewer = await world.user("viewer", developer.tenant_id)
    async with change_grant(services, "viewer", "submissions:read", is_granted=True):
        hidden = (await get_submission(viewer, form, submission_id))["workflow_execution"]
    assert hidden == stored["workflow_execution"] | {"output": None}


async def test_a_submission_that_woke_no_worker_is_found_by_polling(
    developer: Client,
    anonymous: Client,
    worker: WorkerProcess,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del worker
    monkeypatch.setattr(services.get(WakePace), "may_wake", lambda: False)
    form = await create_form(developer)
    submission_id = await submit(anonymous, form, {"name": "Ada"})

    async def is_processed() -> bool:
        stored = await get_submission(developer, form, submission_id)
        return bool(stored["status"] == "processed")

    assert await wait_until(is_processed, 20)
