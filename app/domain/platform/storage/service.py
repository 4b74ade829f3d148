"""What tenants store, and whether they may store more."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from app.domain.platform.events import api as events
from app.kit import logs, trace
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.security.errors import TenantNotFound
from app.security.plans import TEST_EVENTS_DAYS, plan_of
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import queries
from .errors import QuotaExceeded
from .events import StorageWarning
from .schemas import RetentionDays, StorageLimit, StorageView, StoredBytes

log = logs.get("storage")

_MEGABYTE: Final = 1024 * 1024
_BATCH: Final = 5000
_MAX_LEVELS: Final = 100
# A tenant that uses less than this part of its quota is not looked at again for a while.
_AMPLE: Final = 0.9
_AMPLE_SECONDS: Final = 10.0
_MAX_TENANTS: Final = 10_000
_NAMED_KINDS: Final = 3


# What to delete to free space, by kind.
_REMEDIES: Final = {
    "files": "files (DELETE /api/v1/files/{file_id})",
    "knowledge": "documents (DELETE /api/v1/agents/{agent_id}/documents/{document_id})",
    "conversations": "conversations (DELETE /api/v1/conversations/{conversation_id})",
    "executions": "executions, by deleting their workflows and tools",
    "events": "events, which end with their retention period",
    "payloads": "incoming webhooks with their payloads"
    " (DELETE /api/v1/incoming-webhooks/{webhook_id})",
    "forms": "form submissions (DELETE /api/v1/forms/{form_id}/submissions/{submission_id})",
    "tables": "rows of data tables (DELETE /api/v1/data-tables/{table_id}/rows/{row_id})",
    "definitions": "agents, tools, workflows and forms, whose old versions are kept with them",
    "history": "the history of records, which ends after 400 days",
}


class AmpleSpace:
    """The tenants that used little of their quota a moment ago, so that not every request asks."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def has(self, tenant_id: str) -> bool:
        return self._until.get(tenant_id, 0.0) > time.monotonic()

    def add(self, tenant_id: str) -> None:
        if len(self._until) >= _MAX_TENANTS:
            self._until.clear()
        self._until[tenant_id] = time.monotonic() + _AMPLE_SECONDS


async def require_space(services: Services, tenant_id: str, tx: Tx | None = None) -> None:
    """Raises QuotaExceeded when a tenant has used up its quota. `tx` is the caller's transaction,
    if it has begun one. Routes with `stores=True` call it before their handler.
    """
    ample = services.get(AmpleSpace)
    if ample.has(tenant_id):
        return
    if tx is not None:
        row = await _find(tx, tenant_id)
    else:
        async with services.db.tx(tenant_id, autocommit=True) as own:
            row = await _find(own, tenant_id)
    if row["limit_bytes"] and row["used_bytes"] >= row["limit_bytes"]:
        raise _build_quota_error(row)
    if row["used_bytes"] < row["limit_bytes"] * _AMPLE or not row["limit_bytes"]:
        ample.add(tenant_id)


@contextmanager
def hide_figures() -> Iterator[None]:
    """For callers who do not belong to the tenant: the error says nothing of what it stores."""
    try:
        yield
    except QuotaExceeded:
        raise QuotaExceeded("Nothing more can be stored here now. Tell the owner.") from None


async def check_file(tx: Tx, tenant_id: str, file_bytes: int) -> None:
    """Raises QuotaExceeded when a file does not fit."""
    row = await _find(tx, tenant_id)
    if row["limit_bytes"] and row["used_bytes"] + max(1, file_bytes) > row["limit_bytes"]:
        raise _build_quota_error(row)


async def explain_full(tx: Tx, tenant_id: str) -> QuotaExceeded:
    return _build_quota_error(await _find(tx, tenant_id))


async def get_usage(tx: Tx, tenant_id: str) -> StorageView:
    row = await _find(tx, tenant_id)
    return StorageView(
        row["used_bytes"], row["limit_bytes"] or None, row["file_bytes"], row["file_count"]
    )


async def get_limit(tx: Tx, tenant_id: str) -> StorageLimit:
    row = await _find(tx, tenant_id)
    limit, used = row["limit_bytes"] or None, row["used_bytes"]
    plan = plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    return StorageLimit(
        limit,
        used,
        None if limit is None else max(0, limit - used),
        _by_kind(row),
        RetentionDays(
            plan.events_days,
            TEST_EVENTS_DAYS,
            plan.payloads_days,
            plan.executions_days,
            plan.conversations_days,
        ),
    )


async def _find(tx: Tx, tenant_id: str) -> Row:
    row = await queries.find(tx, tenant_id)
    if row is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    return row


def _by_kind(row: Row) -> StoredBytes:
    kinds: dict[str, int] = msgspec.json.decode(row["kinds"] or "{}")
    return msgspec.convert({**kinds, "files": row["file_bytes"]}, StoredBytes)


def _build_quota_error(row: Row) -> QuotaExceeded:
    """Names what takes most, and how to delete it."""
    used, limit = row["used_bytes"], row["limit_bytes"]
    sizes: dict[str, Any] = msgspec.structs.asdict(_by_kind(row))
    largest = sorted((kind for kind in sizes if sizes[kind]), key=lambda kind: -sizes[kind])
    remedies = "; ".join(
        f"{_REMEDIES[kind]}: {_format_size(sizes[kind])}" for kind in largest[:_NAMED_KINDS]
    )
    return QuotaExceeded(
        f"The storage quota of {_format_size(limit)} is used up: {_format_size(used)} are stored. "
        f"Choose a larger plan, or delete some of what takes most: {remedies}",
        details={"used_bytes": used, "limit_bytes": limit, "by_kind": sizes},
    )


def _format_size(count: int) -> str:
    if count < _MEGABYTE:
        return f"{-(-count // 1024)} KB"
    return f"{round(count / _MEGABYTE, 1):g} MB"


async def add_up(services: Services) -> None:
    """Adds the changes of all tenants to what they store."""
    count = _BATCH
    while count == _BATCH:
        async with services.db.tx(ALL_TENANTS) as tx:
            count = await queries.add_up(tx, _BATCH)


async def warn(services: Services) -> None:
    """Emits an event for each tenant that has reached the next level."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await queries.list_changed_levels(tx, _MAX_LEVELS)
    for row in rows:
        tenant_id, before, level = row["tenant_id"], row["warned"], row["level"]
        trace.begin(Trace(new_id("cor"), tenant_id=tenant_id))
        async with services.db.tx(tenant_id) as tx:
            if await queries.set_level(tx, tenant_id, before, level) and level > before:
                await _emit_warning(tx, tenant_id, level)


async def _emit_warning(tx: Tx, tenant_id: str, level: int) -> None:
    row = await _find(tx, tenant_id)
    sizes: dict[str, int] = msgspec.structs.asdict(_by_kind(row))
    largest = max(sizes, key=lambda kind: sizes[kind])
    warning = StorageWarning(level, row["used_bytes"], row["limit_bytes"], largest)
    await events.emit(tx, warning, tenant_id=tenant_id)
    log.warning("a tenant's quota is nearly used up", tenant_id=tenant_id, percent=level)
