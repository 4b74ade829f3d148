"""Deletes what submissions caused, with their answers: events with their deliveries, notifications,
and executions of workflows. Rows of data tables, conversations of agents, runs of tools and
approvals are the tenant's own, and stay.
"""

import time
from collections import defaultdict
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from app.domain.automation.workflows import api as workflows
from app.domain.messaging.notifications import api as notifications
from app.domain.platform.events import api as events
from app.jobs import work
from app.kit import clock
from app.services import Services
from db.session import ALL_TENANTS, Tx

from . import erasure_queries as queries
from .submitting import event_id_of
from .work_kinds import ERASE

_FORMS: Final = 20
_BATCH: Final = 100
_RUN_SECONDS: Final = 10.0
_PAUSE: Final = timedelta(seconds=30)


async def erase(tx: Tx, tenant_id: str, submission_ids: Collection[str]) -> None:
    """The caller has locked and deletes the submissions. What belongs to an execution that still
    runs is deleted by a worker once it has ended.
    """
    for submission_id in await erase_settled(tx, tenant_id, submission_ids):
        await work.accept(
            tx,
            ERASE,
            tenant_id=tenant_id,
            ref_id=submission_id,
            dedupe_key=submission_id,
            run_at=clock.now() + _PAUSE,
        )


async def erase_settled(tx: Tx, tenant_id: str, submission_ids: Collection[str]) -> list[str]:
    """Returns the submissions that still cause something; nothing of these is deleted."""
    by_event = {event_id_of(submission_id): submission_id for submission_id in submission_ids}
    event_ids: dict[str, list[str]] = defaultdict(list)
    owners: dict[str, str] = {}
    for row in await events.find_chains(tx, tenant_id, list(by_event)):
        submission_id = by_event[row["first_id"]]
        event_ids[submission_id].append(row["id"])
        if row["execution_id"] is not None:
            owners[row["execution_id"]] = submission_id
    executions = await workflows.list_started(tx, tenant_id, list(owners), list(submission_ids))
    for execution in executions:
        owners.setdefault(execution["id"], execution["dedupe_key"])
    all_ids = [event_id for ids in event_ids.values() for event_id in ids]
    running = await queries.find_running(tx, tenant_id, all_ids)
    unsettled = {owners[row["id"]] for row in executions if not row["is_ended"]}
    unsettled |= {key for key, ids in event_ids.items() if running.intersection(ids)}
    settled_events = [
        event_id
        for submission_id, ids in event_ids.items()
        if submission_id not in unsettled
        for event_id in ids
    ]
    ended = [row["id"] for row in executions if owners[row["id"]] not in unsettled]
    await notifications.delete_about(tx, tenant_id, settled_events)
    await workflows.delete_ended(tx, tenant_id, ended)
    await events.delete(tx, tenant_id, settled_events)
    return [submission_id for submission_id in submission_ids if submission_id in unsettled]


async def delete_forms(services: Services) -> bool:
    """Deletes the submissions, conversations and drafts of deleted forms, a batch in each
    transaction. Returns True when there is more.
    """
    deadline = time.monotonic() + _RUN_SECONDS
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        forms = await queries.list_deleted_forms(tx, _FORMS)
    for form in forms:
        while await _delete_batch(services, form["tenant_id"], form["id"]):
            if time.monotonic() > deadline:
                return True
    return False


async def _delete_batch(services: Services, tenant_id: str, form_id: str) -> bool:
    """Returns True when there may be more."""
    async with services.db.tx(tenant_id) as tx:
        submission_ids = await queries.lock_submissions(tx, tenant_id, form_id, _BATCH)
        if submission_ids:
            await erase(tx, tenant_id, submission_ids)
            await queries.delete_submissions(tx, tenant_id, submission_ids)
        others = await queries.delete_conversations(tx, tenant_id, form_id, _BATCH)
    return len(submission_ids) == _BATCH or others == _BATCH
