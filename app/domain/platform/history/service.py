"""The history of records: who changed what, and when.

A row with a history is tracked by the session (`db/record_changes.py`), so that no service has to
do anything for it. A service that writes its record by SQL notes the change. The entries are
written as the last step of the transaction, one for each record.
"""

from collections.abc import Mapping
from typing import Any

from app.kit import paging, trace
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json
from app.security.principal import Principal
from db.record_changes import RecordChanges
from db.session import Database, Tx

from . import entries, queries
from .entries import Entry, NotedChange
from .kinds import KINDS, TABLES
from .queries import NewEntry
from .record_kinds import RecordKind
from .schemas import HistoryEntryView


class HistoryRecorder:
    """Writes the history of a transaction."""

    def __init__(self, db: Database) -> None:
        self._fields = {model: table.tracked for model, (_, table) in TABLES.items()}
        db.recorder = self

    def list_fields(self, row_type: type) -> tuple[str, ...]:
        return self._fields.get(row_type, ())

    async def write(self, tx: Tx, changes: RecordChanges) -> None:
        current = trace.current()
        merged = entries.merge(changes.items, changes.action)
        for entry in merged:
            if entry.action == "deleted" and entry.kind.is_personal:
                await queries.erase(tx, entry.tenant_id, entry.kind.name, entry.record_id)
        new = [_build(entry, current.tenant_id) for entry in merged]
        if new:
            await queries.add(tx, new, current.actor_id, current.correlation_id)


def _build(entry: Entry, actor_tenant: str | None) -> NewEntry:
    is_deleted = entry.action == "deleted"
    changes, truncated = ([], False) if is_deleted else entry.list_changes()
    # The entries of a tenant are deleted with it.
    leaves = is_deleted and entry.kind.name == "tenant"
    return NewEntry(
        actor_tenant or entry.tenant_id if leaves else entry.tenant_id,
        new_id("hst"),
        entry.kind.name,
        entry.record_id,
        None if is_deleted and entry.kind.is_personal else entry.name,
        entry.action or "changed",
        as_json(changes),
        truncated,
    )


def note(
    tx: Tx,
    kind: str,
    record_id: str,
    name: str | None,
    *,
    tenant_id: str,
    changes: Mapping[str, tuple[Any, Any]] = {},  # read only
    action: str | None = None,
    secrets: tuple[str, ...] = (),
) -> None:
    """Adds what the session does not see to the history of a record: a change by SQL. `changes` has
    the values of fields before and after. Of `secrets` the entry says only that they changed.
    """
    before = {field: values[0] for field, values in changes.items()}
    after = {field: values[1] for field, values in changes.items()}
    ids = (kind, tenant_id, record_id, name)
    tx.record_changes.items.append(NotedChange(*ids, before, after, action, secrets))


def call_action(tx: Tx, action: str) -> None:
    """Names what this transaction does with records that exist, such as `restored`."""
    tx.record_changes.action = action


async def list_page(
    tx: Tx, principal: Principal, page: Page, kind_name: str, record_id: str | None
) -> Paged[HistoryEntryView]:
    kind = KINDS[kind_name]
    principal.require(kind.reads)
    views, total = await queries.list_page(tx, page, kind_name, record_id)
    if kind.reads_all is not None and not principal.may(kind.reads_all):
        for view in views:
            view.changes = [change for change in view.changes if _is_open(kind, change.path)]
    return paging.paged(views, total, page)


def _is_open(kind: RecordKind, path: str) -> bool:
    return path.partition(".")[0] in kind.open_fields
