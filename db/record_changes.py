"""Collects the changes of rows that have a history, while the session writes them."""

from collections.abc import Awaitable
from typing import Any, Protocol

import msgspec
from sqlalchemy import inspect
from sqlalchemy.orm import Session, UOWTransaction

# The key of the session's `RecordChanges`.
INFO = "record_changes"


class RowChange(msgspec.Struct):
    """`before` and `after` have the fields that differ; a new row has no `before`. `values` has all
    columns, since the row itself is expired when a savepoint is rolled back later.
    """

    row_type: type
    values: dict[str, Any]
    is_new: bool
    is_deleted: bool
    before: dict[str, Any]
    after: dict[str, Any]


class Recorder(Protocol):
    """Knows which rows have a history, and writes it."""

    def list_fields(self, row_type: type) -> tuple[str, ...]:
        """Returns the fields whose changes count; nothing for a row without a history."""
        ...

    def write(self, tx: Any, changes: "RecordChanges") -> Awaitable[None]:
        """Called once, as the last step of the transaction, if there are changes."""
        ...


class RecordChanges:
    """What one transaction has changed. `entries` has what areas add that write their rows by SQL;
    `action` names what the change was, where it was more than a change.
    """

    def __init__(self, recorder: Recorder | None) -> None:
        self.recorder = recorder
        self.items: list[Any] = []
        self.action: str | None = None

    async def write(self, tx: Any) -> None:
        if self.recorder is not None and self.items:
            await self.recorder.write(tx, self)
            self.items.clear()


def collect(session: Session, _context: UOWTransaction) -> None:
    """Runs after each flush, while the session still knows what was new and what it replaced."""
    changes: RecordChanges | None = session.info.get(INFO)
    if changes is None or changes.recorder is None:
        return
    for rows, is_new, is_deleted in (
        (session.new, True, False),
        (session.dirty, False, False),
        (session.deleted, False, True),
    ):
        for row in rows:
            fields = changes.recorder.list_fields(type(row))
            if not fields:
                continue
            before, after = _compare(row, fields, is_new=is_new)
            if is_new or is_deleted or after:
                changes.items.append(
                    RowChange(type(row), dict(row.__dict__), is_new, is_deleted, before, after)
                )


def _compare(
    row: Any, fields: tuple[str, ...], *, is_new: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    attributes, loaded = inspect(row).attrs, row.__dict__
    if is_new:
        return {}, {name: loaded[name] for name in fields if name in loaded}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for name in fields:
        history = attributes[name].history
        if history.added:
            before[name] = history.deleted[0] if history.deleted else None
            after[name] = history.added[0]
    return before, after
