"""Executions that are accepted while their workflow is deleted, or twice at the same moment."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from app.domain.automation.workflows import service, starting
from app.domain.automation.workflows.errors import WorkflowNotFound
from app.kit import trace
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from db.session import Tx
from tests.assertions import refused, wait_until
from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    create_published,
    read,
    start,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.database import fetch_rows
from tests.world import Client

T = TypeVar("T")

_COUNT_LOCK_WAITS = """
SELECT count(*) AS count FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
_STATUS = "SELECT status FROM workflow_executions WHERE id = $1"


@pytest.fixture
def hand(services: Services, developer: Client) -> Hand:
    return Hand(services, developer.tenant_id)


async def _accept(
    tx: Tx, services: Services, owner: Client, workflow_id: str, dedupe_key: str | None = None
) -> str:
    """Starts a workflow as triggers do."""
    trace.begin(Trace(new_id("cor"), tenant_id=owner.tenant_id))
    new = starting.NewExecution(
        tenant_id=owner.tenant_id,
        workflow_id=workflow_id,
        input={},
        trigger_type="event",
        dedupe_key=dedupe_key,
    )
    return await starting.accept(tx, services, new)


async def _accept_alone(
    services: Services, owner: Client, workflow_id: str, dedupe_key: str | None = None
) -> str:
    async with services.db.tx(owner.tenant_id) as tx:
        return await _accept(tx, services, owner, workflow_id, dedupe_key)


async def _begin(services: Services, call: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Returns the task once it has ended, or waits for a lock."""
    task = asyncio.create_task(call)

    async def is_blocked() -> bool:
        [row] = await fetch_rows(services, _COUNT_LOCK_WAITS)
        return task.done() or row["count"] > 0

    await wait_until(is_blocked, seconds=10)
    return task


async def test_a_deletion_cancels_an_execution_that_is_accepted_at_the_same_moment(
    developer: Client, services: Services, hand: Hand
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    async with services.db.tx(developer.tenant_id) as tx:
        execution_id = await _accept(tx, services, developer, workflow_id)
        deletion = await _begin(services, developer.delete(f"{PATH}/{workflow_id}"))
        await hand.run_due()
    assert (await deletion).status_code == 204
    await hand.run_due()
    [row] = await fetch_rows(services, _STATUS, execution_id)
    assert row["status"] == "cancelled"


async def test_a_deletion_that_is_not_committed_yet_refuses_executions(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    trace.begin(Trace(new_id("cor"), tenant_id=developer.tenant_id))
    async with services.db.tx(developer.tenant_id) as tx:
        await service.delete(tx, workflow_id)
        accepting = await _begin(services, _accept_alone(services, developer, workflow_id))
    with pytest.raises(WorkflowNotFound):
        await accepting


async def test_a_deletion_that_is_not_committed_yet_refuses_retries(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    execution_id = await start(developer, workflow_id)
    await developer.post(f"{EXECUTIONS}/{execution_id}/cancel")
    trace.begin(Trace(new_id("cor"), tenant_id=developer.tenant_id))
    async with services.db.tx(developer.tenant_id) as tx:
        await service.delete(tx, workflow_id)
        retry = developer.post(f"{EXECUTIONS}/{execution_id}/retry")
        retrying = await _begin(services, retry)
    refused(await retrying, 404, "workflow_execution_not_found")
    [row] = await fetch_rows(services, _STATUS, execution_id)
    assert row["status"] == "cancelled"


async def test_what_waits_to_run_when_its_workflow_is_deleted_does_not_run(
    developer: Client, services: Services, hand: Hand
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    execution_id = await start(developer, workflow_id)
    (node_work,) = await hand.list_due()
    await developer.delete(f"{PATH}/{workflow_id}")
    await hand.run(node_work)
    assert (await hand.count_events(execution_id)) == {"started": 1}
    await hand.run_due()
    assert (await hand.count_events(execution_id)) == {"started": 1, "cancelled": 1}


async def test_one_occasion_at_the_same_moment_starts_one_execution(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    key = new_id("key")
    async with services.db.tx(developer.tenant_id) as tx:
        execution_id = await _accept(tx, services, developer, workflow_id, key)
        second = await _begin(services, _accept_alone(services, developer, workflow_id, key))
    assert await second == execution_id
    assert (await read(developer, execution_id))["status"] == "running"
