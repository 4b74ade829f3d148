"""Fans an event out: a delivery to each endpoint that waits for it, each subscription's action, and
the notification that its rule names.

All of it is written in one transaction as work of its own; fanning the same event out twice adds
nothing.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final, Literal

import msgspec

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.deliveries.api import Leases, NewDelivery
from app.domain.messaging.notifications import api as notifications
from app.domain.platform.events import api as events
from app.domain.platform.events.api import MAX_DEPTH, EmittedEvent
from app.domain.platform.events.events import ChainStopped
from app.jobs.work import FollowUp, LeasedWork
from app.kit import logs
from app.kit.ids import new_id
from app.services import Services
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

from . import filters, queries
from .actions import ACTIONS

log = logs.get("events")

# How much work the events of one chain may cause, besides that of the first event.
MAX_DERIVED_WORK: Final = 1000
# Added to the count once it exceeds the limit, so that the stop is recorded once.
_STOPPED = 1_000_000
# For how much work workers are woken; pollers find the rest.
_MAX_WOKEN = 32


# Reserves slots for a tenant's endpoints; returns those that there is capacity for.
Reserve = Callable[[str, list[str]], Collection[str]]


class TriggeredSubscription(msgspec.Struct, frozen=True):
    """A subscription whose filters match the event."""

    id: str
    action_type: str
    endpoint_id: str | None

    @property
    def needs_work(self) -> bool:
        """True also for a delivery without an endpoint: its work records the error."""
        return ACTIONS[self.action_type].run is not None or self.endpoint_id is None


async def find_triggered(
    tx: Tx, tenant_id: str, event_type: str, data: Any
) -> list[TriggeredSubscription]:
    triggered = []
    for row in await queries.find_triggered_by(tx, tenant_id, event_type):
        conditions = msgspec.json.decode(row["filters"]) if row["filters"] else None
        if filters.match(conditions, data):
            triggered.append(
                TriggeredSubscription(row["id"], row["action_type"], row["endpoint_id"])
            )
    return triggered


async def fan_out(
    services: Services, tx: Tx, tenant_id: str, event_id: str, reserve: Reserve
) -> FollowUp:
    """Returns the deliveries that were added: those that the caller sends, and the number of
    others.
    """
    event = await events.find_event(tx, tenant_id, event_id)
    if event is None or not await _may_continue(tx, tenant_id, event):
        # The event was deleted, or its chain is stopped.
        return FollowUp()
    data = msgspec.json.decode(event["data"])
    triggered = await find_triggered(tx, tenant_id, event["event_type"], data)
    await notifications.accept_for_event(tx, tenant_id, event, data)
    started = await _deliver(services, tx, tenant_id, event, triggered, reserve)
    actions = await _add_actions(
        tx, tenant_id, event, [item.id for item in triggered if item.needs_work]
    )
    if event["root_id"] is not None:
        count = len(started.leased) + started.waiting + actions
        await events.add_derived_work(tx, tenant_id, event["root_id"], count)
    if triggered:
        await queries.count_triggers(tx, tenant_id, [item.id for item in triggered])
    return started


async def _add_actions(tx: Tx, tenant_id: str, event: Row, subscription_ids: list[str]) -> int:
    if not subscription_ids:
        return 0
    work_ids = [new_id("wrk") for _ in subscription_ids]
    added = await queries.add_actions(tx, tenant_id, event, subscription_ids, work_ids, _MAX_WOKEN)
    for work_id in set(work_ids[:_MAX_WOKEN]) & set(added):
        tx.wake(events.RUN_ACTION.name, work_id)
    return len(added)


async def _deliver(
    services: Services,
    tx: Tx,
    tenant_id: str,
    row: Row,
    triggered: list[TriggeredSubscription],
    reserve: Reserve,
) -> FollowUp:
    endpoint_ids = [item.endpoint_id for item in triggered if item.endpoint_id is not None]
    endpoints = await deliveries.endpoints_for(tx, tenant_id, row["event_type"], endpoint_ids)
    if not endpoints:
        return FollowUp()
    event = EmittedEvent(row["event_id"], row["event_type"], row["correlation_id"])
    max_attempts = len(services.settings.webhook_retry_delays)
    ids = {webhook_id: new_id("dlv") for webhook_id in endpoints}
    tokens = {webhook_id: new_id("lea") for webhook_id in reserve(tenant_id, list(ids))}
    leases = Leases(tokens, services.settings.lease_seconds)
    body = deliveries.encode_body(row)
    requests = [
        deliveries.new_request(endpoints[webhook_id], row, ids[webhook_id], body)
        for webhook_id in tokens
    ]
    # Runs while Postgres writes the rows.
    signing = asyncio.create_task(deliveries.sign_all(services.keyring, requests))
    try:
        created = await deliveries.create(
            tx, tenant_id, event, ids, max_attempts=max_attempts, leases=leases
        )
    finally:
        signed = await signing
    leased = [
        LeasedWork(
            _work_row(delivery, tenant_id, event, max_attempts), signed[delivery.delivery_id]
        )
        for delivery in created
        if delivery.lease_token is not None
    ]
    return FollowUp(leased, len(created) - len(leased))


def _work_row(
    delivery: NewDelivery, tenant_id: str, event: EmittedEvent, max_attempts: int
) -> WorkRow:
    """Returns the row of the ledger without reading it."""
    return WorkRow(
        id=delivery.work_id,
        tenant_id=tenant_id,
        kind=deliveries.DELIVER.name,
        ref_id=delivery.delivery_id,
        attempt=1,
        max_attempts=max_attempts,
        lease_token=delivery.lease_token or "",
        correlation_id=event.correlation_id,
        cause_event_id=event.id,
        lane=delivery.webhook_id,
    )


async def _may_continue(tx: Tx, tenant_id: str, event: Row) -> bool:
    """False once a chain has too many events in a row, or has caused too much work: this stops
    loops and exponential growth.
    """
    if event["depth"] > MAX_DEPTH:
        await _record_stop(tx, tenant_id, event, "too_long")
        return False
    if event["root_id"] is None:
        return True
    count = await events.lock_derived_work(tx, tenant_id, event["root_id"])
    if count < MAX_DERIVED_WORK:
        return True
    if count < _STOPPED:
        await events.add_derived_work(tx, tenant_id, event["root_id"], _STOPPED)
        await _record_stop(tx, tenant_id, event, "too_wide")
    return False


async def _record_stop(
    tx: Tx, tenant_id: str, event: Row, reason: Literal["too_long", "too_wide"]
) -> None:
    event_id, event_type = event["event_id"], event["event_type"]
    log.warning("chain of causes stopped", event_id=event_id, type=event_type, reason=reason)
    stopped = ChainStopped(event_id, event_type, event["depth"], reason)
    await events.record(tx, stopped, tenant_id=tenant_id)
