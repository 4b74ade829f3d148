"""Emits events in the caller's transaction, and reads the log."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from app.domain.area import Event
from app.kit import trace
from app.kit.changes import apply_changes
from app.kit.ids import new_id
from app.kit.paging import Flat, Page, flat
from app.kit.texts import as_json
from app.kit.trace import Trace
from db import ledger
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

from . import queries
from .errors import EventNotFound
from .events import WorkDead
from .queries import FAN_OUT
from .schemas import Actor, Entry

MAX_SPANS: Final = 5000
# For rules of retention: all work that an event caused is finished. `t` is the event, or another
# row with its id.
IS_SETTLED: Final = f"NOT {ledger.unfinished_sql('w.cause_event_id = t.id')}"
_HAPPENED, _TEST = False, True


class EmittedEvent(msgspec.Struct, frozen=True):
    id: str
    type: str
    correlation_id: str


async def emit(tx: Tx, event: Event, *, tenant_id: str, event_id: str | None = None) -> str:
    """Records an event in the caller's transaction, together with the work that fans it out to
    webhooks and subscriptions. Returns its id.
    """
    event_id = event_id or new_id("evt")
    columns = _columns(tenant_id, event_id, event.type)
    values = (*columns, as_json(event), _HAPPENED, trace.current().depth)
    work_id = await queries.emit(tx, tenant_id, *values)
    if work_id is not None:
        tx.wake(FAN_OUT.name, work_id)
    return event_id


async def record(tx: Tx, event: Event, *, tenant_id: str) -> None:
    """Records an event in the log only: webhooks and subscriptions do not get it."""
    columns = _columns(tenant_id, new_id("evt"), event.type)
    await queries.insert(tx, tenant_id, *columns, as_json(event), _HAPPENED, trace.current().depth)


async def emit_test(
    tx: Tx, event_type: str, data: dict[str, Any], *, tenant_id: str, is_routed: bool = True
) -> EmittedEvent:
    """Records an event that is marked as a test. Without `is_routed` it is not fanned out."""
    event_id = new_id("evt")
    values = (
        *_columns(tenant_id, event_id, event_type),
        as_json(data),
        _TEST,
        trace.current().depth,
    )
    if is_routed:
        wake(tx, [await queries.emit(tx, tenant_id, *values)])
    else:
        await queries.insert(tx, tenant_id, *values)
    return EmittedEvent(event_id, event_type, trace.current().correlation_id)


async def emit_dead(tx: Tx, work: WorkRow, error: str) -> None:
    """Emits `system.work.dead` for work of a tenant."""
    if work.tenant_id is not None:
        dead = WorkDead(work.id, work.kind, work.ref_id, work.attempt, error)
        await emit(tx, dead, tenant_id=work.tenant_id)


@contextmanager
def chain_of(work: WorkRow) -> Iterator[None]:
    """Events emitted inside belong to the chain of this work, not to that of other work whose
    outcome is written in the same transaction.
    """
    before = trace.current_or_none()
    trace.begin(Trace(work.correlation_id, cause_event_id=work.cause_event_id))
    try:
        yield
    finally:
        if before is not None:
            trace.begin(before)


async def save_changes(
    tx: Tx,
    row: Any,
    values: dict[str, Any],
    event: Callable[[list[str]], Event],
    *,
    also_changed: Iterable[str] = (),
) -> list[str]:
    """Writes the values that differ from the row's and emits `event` with the names of the changed
    fields, `also_changed` included. Returns these names; emits nothing if there are none.
    """
    changed = [*apply_changes(row, values), *also_changed]
    if changed:
        await (await tx.session()).flush()
        await emit(tx, event(changed), tenant_id=row.tenant_id)
    return changed


def _columns(tenant_id: str, event_id: str, event_type: str) -> tuple[str | None, ...]:
    current = trace.current()
    current.event_tenants.add(tenant_id)
    return (
        event_id,
        event_type,
        current.correlation_id,
        current.cause_event_id,
        current.request_id,
        current.actor_id,
    )


class _Record(msgspec.Struct):
    tenant_id: str
    id: str
    type: str
    correlation_id: str
    parent_id: str | None
    request_id: str | None
    actor_id: str | None
    data: Event
    depth: int


def encode_events(events: list[Event], *, tenant_id: str, event_id: str | None = None) -> str:
    """Returns the JSON parameter for a statement with an `emission_sql`. `event_id` is for a single
    event, which gets a new id without it.
    """
    current = trace.current()
    current.event_tenants.add(tenant_id)
    records = [
        _Record(
            tenant_id,
            event_id or new_id("evt"),
            event.type,
            current.correlation_id,
            current.cause_event_id,
            current.request_id,
            current.actor_id,
            event,
            current.depth,
        )
        for event in events
    ]
    return as_json(records)


def wake(tx: Tx, routed: Iterable[str | None] | None) -> None:
    """Wakes workers for the work ids that a statement with an `emission_sql` returned."""
    for work_id in routed or ():
        if work_id is not None:
            tx.wake(FAN_OUT.name, work_id)


def wake_for(tx: Tx, event_id: str) -> None:
    """Wakes a worker for an event that an earlier transaction recorded."""
    tx.wake(FAN_OUT.name, queries.work_id_of(event_id))


async def list_page(tx: Tx, filters: queries.Filter, page: Page) -> Flat[Entry]:
    entries, total = await queries.list_page(tx, filters, page)
    return flat(entries, total, page)


async def get(tx: Tx, event_id: str) -> Entry:
    entry = await queries.find(tx, event_id)
    if entry is None:
        raise EventNotFound(f"There is no event {event_id[:64]}")
    return entry


def to_entry(row: Row) -> Entry:
    return Entry(
        row["id"],
        row["type"],
        row["correlation_id"],
        row["parent_id"],
        msgspec.convert(row["actor"], Actor),
        msgspec.json.decode(row["data"] or "{}"),
        row["created_at"],
        row["test"],
        omitted=row["data"] is None,
    )


async def follow_cause(tx: Tx, tenant_id: str, event_id: str) -> None:
    """Makes this request part of the chain of an event, so that the chain's length is limited. Of
    another tenant's event only the depth is used.
    """
    row = await queries.find_cause(tx, tenant_id, event_id)
    if row is None:
        return
    current = trace.current()
    current.depth = row["depth"] + 1
    if row["own"]:
        current.correlation_id, current.cause_event_id = row["correlation_id"], event_id
