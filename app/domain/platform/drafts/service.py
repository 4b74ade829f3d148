"""Drafts of records of any kind: changes that are stored until they are published.

The area of a kind reads and changes its records, and locks a record before its draft.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from app.kit import json_diff
from app.kit.errors import PreconditionFailed
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.security.principal import Principal
from db.fast import Row
from db.session import Tx

from . import queries
from .errors import DraftNotFound, DraftOutdated
from .schemas import DraftState

Kind = Literal["agent"]


class LiveRecord(msgspec.Struct, frozen=True):
    """A record as it is now, with all fields that a draft can have."""

    tenant_id: str
    kind: Kind
    id: str
    version: int
    fields: dict[str, Any]


class Draft(msgspec.Struct, frozen=True):
    body: dict[str, Any]
    base: dict[str, Any]
    base_version: int
    saved_by: str | None
    saved_at: datetime


def read(row: Row | None) -> Draft:
    """Returns the draft in a row that `join_sql` has joined. Raises DraftNotFound."""
    if row is None or row["draft_body"] is None:
        raise DraftNotFound("There is no draft; PUT stores one")
    return Draft(
        msgspec.json.decode(row["draft_body"]),
        msgspec.json.decode(row["draft_base"]),
        row["draft_base_version"],
        row["draft_saved_by"],
        row["draft_saved_at"],
    )


async def save(tx: Tx, principal: Principal, live: LiveRecord, body: dict[str, Any]) -> Draft:
    """Replaces the draft. The first one begins with the record as it is now."""
    record = (live.kind, live.id)
    base = (as_json(live.fields), live.version)
    values = (*record, as_json(body), *base, principal.user_id)
    return read(await queries.store(tx, live.tenant_id, new_id("drf"), *values))


async def find(tx: Tx, live: LiveRecord) -> Draft:
    return read(await queries.find(tx, live.tenant_id, live.kind, live.id))


async def delete(tx: Tx, live: LiveRecord) -> None:
    if not await queries.delete(tx, live.tenant_id, live.kind, [live.id]):
        raise DraftNotFound("There is no draft")


async def delete_of_records(tx: Tx, tenant_id: str, kind: Kind, record_ids: list[str]) -> None:
    """Deletes the drafts of records that are deleted."""
    await queries.delete(tx, tenant_id, kind, record_ids)


def describe(live: LiveRecord, draft: Draft) -> DraftState:
    diff = json_diff.diff_bounded(live.fields, live.fields | draft.body)
    return DraftState(
        draft.saved_by,
        draft.saved_at,
        draft.base_version,
        _is_outdated(live, draft),
        diff.changes,
        diff.truncated,
    )


def require_current(live: LiveRecord, draft: Draft) -> None:
    """Raises DraftOutdated when the record has changed since the draft began."""
    if not _is_outdated(live, draft):
        return
    changes = json_diff.diff_bounded(live.fields, live.fields | draft.body)
    live_changes = json_diff.diff_bounded(draft.base, live.fields)
    details = {
        "based_on": draft.base_version,
        "version": live.version,
        "changes": changes.changes,
        "live_changes": live_changes.changes,
    }
    raise DraftOutdated(
        "The record has changed since the draft began; compare both, then publish with overwrite",
        details=msgspec.to_builtins(details),
    )


def require_saved_at(draft: Draft, saved_at: datetime | None) -> None:
    """Raises PreconditionFailed when a later draft was saved. None is for any draft."""
    if saved_at is not None and saved_at != draft.saved_at:
        raise PreconditionFailed(
            "Another draft was saved since; read it, then publish it with its saved_at",
            details={"saved_at": msgspec.to_builtins(draft.saved_at)},
        )


def _is_outdated(live: LiveRecord, draft: Draft) -> bool:
    return any(
        live.fields[name] != value for name, value in draft.base.items() if name in live.fields
    )
