"""Builds the entries of a transaction from what it has changed."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from app.kit import json_diff
from app.kit.json_diff import Change
from db.record_changes import RowChange

from .kinds import KINDS, TABLES, UNSHOWN
from .record_kinds import RecordKind, TableHistory

MAX_CHANGES: Final = 200
# Of the values of one entry, as JSON.
MAX_BYTES: Final = 64 * 1024
_STATES: Final = {"published": "published", "archived": "archived"}


class NotedChange(msgspec.Struct):
    """A change that its area notes, because it writes the record by SQL."""

    kind: str
    tenant_id: str
    record_id: str
    name: str | None
    before: dict[str, Any]
    after: dict[str, Any]
    action: str | None = None
    secrets: tuple[str, ...] = ()


class Entry(msgspec.Struct):
    """What a transaction did with one record, before the values are compared."""

    kind: RecordKind
    tenant_id: str
    record_id: str
    name: str | None = None
    action: str | None = None
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    secrets: dict[str, None] = {}

    def list_changes(self) -> tuple[list[Change], bool]:
        """Returns the changes, and whether some of them or of their values are left out."""
        changes, size, truncated = list[Change](), 0, False
        for change in self._find_changes():
            if len(changes) == MAX_CHANGES:
                return changes, True
            size += len(msgspec.json.encode(change))
            if size > MAX_BYTES:
                change.before = change.after = msgspec.UNSET
                truncated = True
            changes.append(change)
        return changes, truncated

    def _find_changes(self) -> Iterator[Change]:
        for path in dict.fromkeys((*self.before, *self.after)):
            values = (self.before.get(path, msgspec.UNSET), self.after.get(path, msgspec.UNSET))
            yield from _compare(path, *values)
        for path in self.secrets:
            yield Change(path, "changed")


def _compare(path: str, before: Any, after: Any) -> Iterator[Change]:
    """The name of a field hides no value: the table of kinds says which are secret."""
    if before is msgspec.UNSET or after is msgspec.UNSET:
        old = {} if before is msgspec.UNSET else {"": msgspec.to_builtins(before)}
        new = {} if after is msgspec.UNSET else {"": msgspec.to_builtins(after)}
    else:
        old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    for change in json_diff.diff_bounded(old, new, MAX_CHANGES + 1).changes:
        change.path = ".".join(part for part in (path, change.path) if part)
        yield change


def merge(items: Iterable[RowChange | NotedChange], action: str | None) -> list[Entry]:
    """Returns one entry for each record: with the first values before and the last after."""
    entries: dict[tuple[str, str], Entry] = {}
    for item in items:
        if isinstance(item, NotedChange):
            _add_noted(entries, item)
        else:
            kind, table = TABLES[item.row_type]
            if table.unless is None or item.values.get(table.unless) is None:
                _add_row(entries, item, kind, table)
    for entry in entries.values():
        if entry.action is None:
            entry.action = action or _STATES.get(str(entry.after.get("status"))) or "changed"
    return [entry for entry in entries.values() if _is_effective(entry)]


def _is_effective(entry: Entry) -> bool:
    return entry.action != "changed" or bool(entry.secrets) or entry.before != entry.after


def _get(
    entries: dict[tuple[str, str], Entry], kind: RecordKind, tenant_id: str, record_id: str
) -> Entry:
    key = (kind.name, record_id)
    if key not in entries:
        entries[key] = Entry(kind, tenant_id, record_id)
    return entries[key]


def _add_noted(entries: dict[tuple[str, str], Entry], item: NotedChange) -> None:
    entry = _get(entries, KINDS[item.kind], item.tenant_id, item.record_id)
    entry.name = item.name or entry.name
    entry.before = item.before | entry.before
    entry.after |= item.after
    entry.secrets |= dict.fromkeys(item.secrets)
    entry.action = item.action or entry.action


def _add_row(
    entries: dict[tuple[str, str], Entry], item: RowChange, kind: RecordKind, table: TableHistory
) -> None:
    row = item.values
    record_id: str = row[table.id]
    entry = _get(entries, kind, row.get("tenant_id", record_id), record_id)
    prefix = f"{table.part.format_map(row)}." if table.part else ""
    if not prefix:
        entry.name = None if table.name is None else row[table.name]
        if item.is_new:
            entry.action = "created"
        elif item.is_deleted or item.after.get("deleted_at") is not None:
            entry.action = "deleted"
            return
    before, after = item.before, item.after
    if item.is_deleted:
        before, after = {name: row.get(name) for name in table.fields}, {}
    for name in table.secrets:
        if (before.get(name) or after.get(name)) is not None:
            entry.secrets[_path(table, prefix, name)] = None
    for name in table.fields:
        path = _path(table, prefix, name)
        if name in before:
            entry.before.setdefault(path, before[name])
        # An empty value of a new record says nothing.
        if name in after and not (item.is_new and after[name] in (None, "", [], {})):
            entry.after[path] = after[name]


def _path(table: TableHistory, prefix: str, name: str) -> str:
    return prefix + table.renamed.get(name, name)


def list_columns_without_place() -> list[str]:
    """Returns columns that are neither shown, secret nor hidden, for the tests."""
    return [
        f"{table.model.__tablename__}.{name}"
        for _, table in TABLES.values()
        for name in table.model.__mapper__.attrs.keys()  # noqa: SIM118
        if name not in {*UNSHOWN, *table.fields, *table.secrets, *table.hidden, table.id}
    ]
