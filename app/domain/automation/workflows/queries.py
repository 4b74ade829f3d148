"""SQL of workflows, their versions, and executions as the API reads them."""

from datetime import datetime
from typing import Any, Final, get_args

import msgspec

from app.domain import quota
from app.domain.area import shown_sql
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Workflow
from db.session import Tx
from db.views import View

from .schemas import (
    ExecutionStatus,
    FullExecution,
    NodeRun,
    VersionSummary,
    WorkflowSummary,
    WorkflowView,
)

MAX_WORKFLOWS = 1000
# Of one tenant. About: those that are accepted at the same moment do not see each other.
MAX_PENDING: Final = 10_000
STATUSES: Final[tuple[str, ...]] = get_args(ExecutionStatus)
_SORT_ORDERS = SortOrders(
    "-created_at",
    Workflow.id,
    name=Workflow.name,
    status=Workflow.status,
    created_at=Workflow.created_at,
    updated_at=Workflow.updated_at,
)
_SUMMARY = View(WorkflowSummary)
_VIEW = View(
    WorkflowView,
    "w",
    nodes="v.definition->'nodes'",
    edges="v.definition->'edges'",
)
_VERSION = View(VersionSummary)


class _StoredNode(NodeRun):
    """Its values are passed on as they are: an execution may have 16 MB of them."""

    input: msgspec.Raw
    output: msgspec.Raw


_decode_nodes = msgspec.json.Decoder(list[_StoredNode]).decode
_FULL_EXECUTION = View(
    FullExecution,
    "e",
    computed=("input", "output", "nodes"),
    trigger="json_build_object('type', e.trigger_type, 'id', e.trigger_id)",
)
_EXECUTION_VALUES = """
e.input::text AS input, e.output::text AS output,
(SELECT coalesce(json_agg(json_build_object(
            'node_id', n.node_id, 'type', n.type, 'status', n.status, 'input', n.input,
            'output', n.output, 'error', n.error, 'attempt', n.attempt, 'ref_id', n.ref_id,
            'started_at', n.started_at, 'finished_at', n.finished_at) ORDER BY n.position),
        '[]')
 FROM workflow_nodes n WHERE n.tenant_id = e.tenant_id AND n.execution_id = e.id)::text AS nodes
"""
_NOT_DELETED = "deleted_at IS NULL"
# For rules of retention; `t` is the workflow.
HAS_EXECUTIONS: Final = "EXISTS (SELECT 1 FROM workflow_executions e WHERE e.workflow_id = t.id)"
_FIND = f"""
SELECT {_VIEW.columns} FROM workflows w
JOIN workflow_versions v
  ON v.tenant_id = w.tenant_id AND v.workflow_id = w.id AND v.version = w.version
WHERE ($1::text IS NULL OR w.tenant_id = $1) AND w.id = $2 AND w.deleted_at IS NULL
"""
_FIND_DEFINITION = """
SELECT v.definition::text FROM workflow_versions v
JOIN workflows w ON w.tenant_id = v.tenant_id AND w.id = v.workflow_id
WHERE ($1::text IS NULL OR v.tenant_id = $1) AND v.workflow_id = $2 AND v.version = $3
  AND w.deleted_at IS NULL
"""
_EXISTS = """
SELECT 1 FROM workflows
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND deleted_at IS NULL
"""
_FIND_EXISTING_IDS = """
SELECT id FROM workflows WHERE tenant_id = $1 AND id = ANY($2) AND deleted_at IS NULL
"""
# The lock is the one of a foreign key: a deletion waits for it, a change does not.
_LOCK_STARTABLE = """
SELECT name, published_version, version FROM workflows
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR KEY SHARE
"""
# Returns the id of the earlier execution when there is one with the same key, and nothing when
# that one was committed while this statement waited for it.
_INSERT_EXECUTION = """
WITH inserted AS (
    INSERT INTO workflow_executions (tenant_id, id, workflow_id, version, input, trigger_type,
                                     trigger_id, started_by, caller_id, depth, dedupe_key,
                                     correlation_id, cause_event_id)
    VALUES ($1, $2, $3, $4, $5::json, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (tenant_id, dedupe_key) DO NOTHING RETURNING id
)
SELECT id FROM inserted
UNION ALL SELECT id FROM workflow_executions WHERE tenant_id = $1 AND dedupe_key = $11
LIMIT 1
"""
_FIND_BY_OCCASION = """
SELECT id FROM workflow_executions WHERE tenant_id = $1 AND dedupe_key = $2
"""
# Reads entries of an index up to the bound, however many there are. The order is that of the index:
# without it, a plan may read executions with other statuses.
_IS_QUEUE_FULL = f"""
SELECT EXISTS (SELECT 1 FROM workflow_executions WHERE tenant_id = $1 AND status = 'pending'
               ORDER BY depth DESC, id OFFSET {MAX_PENDING - 1})
"""
_TRY_LOCK_QUEUE = "SELECT pg_try_advisory_xact_lock(hashtextextended('workflows:' || $1, 0))"
_MARK_RUNNING = """
UPDATE workflow_executions SET status = 'running', started_at = now()
WHERE tenant_id = $1 AND id = $2
"""
_COUNT_ACTIVE = """
SELECT (SELECT count(*) FROM workflow_executions
        WHERE tenant_id = $1 AND status = 'running') AS running,
       (SELECT count(*) FROM workflow_executions
        WHERE tenant_id = $1 AND started_at > now() - interval '1 minute') AS started
"""
# With all statuses, so that the index on tenant, status and time serves it.
_COUNT_MANUAL = f"""
SELECT count(*) AS count,
       ceil(extract(epoch FROM min(created_at) + interval '1 minute' - now()))::int AS wait_seconds
FROM workflow_executions
WHERE tenant_id = $1 AND status = ANY('{{{",".join(STATUSES)}}}')
  AND created_at > now() - interval '1 minute' AND trigger_type = 'manual'
"""
_LIST_WAITING_TENANTS = """
SELECT DISTINCT tenant_id FROM workflow_executions
WHERE status = 'pending' AND tenant_id > $1 ORDER BY tenant_id LIMIT $2
"""
_FIND_EXECUTION = f"""
SELECT {_FULL_EXECUTION.columns}, {_EXECUTION_VALUES} FROM workflow_executions e
JOIN workflows w ON w.tenant_id = e.tenant_id AND w.id = e.workflow_id AND w.deleted_at IS NULL
WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.id = $2
"""
_FIND_EXECUTION_STATE = """
SELECT e.tenant_id, e.workflow_id, e.status, e.created_at FROM workflow_executions e
JOIN workflows w ON w.tenant_id = e.tenant_id AND w.id = e.workflow_id AND w.deleted_at IS NULL
WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.id = $2
"""
_FIND_RESULT = """
SELECT status, output FROM workflow_executions
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""
_LIST_ACTIVE = """
SELECT id FROM workflow_executions
WHERE tenant_id = $1 AND workflow_id = $2 AND status IN ('pending', 'running', 'waiting')
ORDER BY id LIMIT $3
"""
_REOPEN = """
WITH reopened AS (
    UPDATE workflow_executions
    SET status = 'pending', progress = $3::jsonb, error = NULL, output = NULL, finished_at = NULL
    WHERE tenant_id = $1 AND id = $2
)
UPDATE workflow_nodes SET status = 'pending', error = NULL, output = NULL, ref_id = NULL,
       started_at = NULL, finished_at = NULL
WHERE tenant_id = $1 AND execution_id = $2 AND node_id = ANY($4)
"""
_SHOWN = shown_sql("n.input", "n.output", order_by="n.started_at, n.id")
_LIST_BY_CORRELATION = f"""
SELECT n.id, n.node_id, n.type, n.status, n.started_at, n.finished_at, n.caller_id,
       n.cause_event_id, w.name, n.error->>'message' AS error, {_SHOWN}
FROM (
    SELECT n.*, e.caller_id, e.cause_event_id, e.workflow_id
    FROM workflow_executions e
    JOIN workflow_nodes n ON n.tenant_id = e.tenant_id AND n.execution_id = e.id
    WHERE e.tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
      AND e.correlation_id = $2 AND n.started_at IS NOT NULL
    ORDER BY n.started_at, n.id LIMIT $3
) n
JOIN workflows w ON w.tenant_id = n.tenant_id AND w.id = n.workflow_id
ORDER BY n.started_at, n.id
"""


async def list_page(
    tx: Tx, page: Page, *, search: str | None, status: str | None, sort: str | None
) -> tuple[list[WorkflowSummary], Total]:
    where = Where(tenant_of(tx), _NOT_DELETED)
    where.contain(search, "name", "description")
    where.equal("status", status)
    return await paging.fetch(tx, _SUMMARY, "workflows", where, _SORT_ORDERS.sql(sort), page)


async def find(tx: Tx, workflow_id: str) -> WorkflowView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, workflow_id)


async def find_row(
    tx: Tx, workflow_id: str, *, for_update: bool = False, for_delete: bool = False
) -> Workflow | None:
    """With `for_update`, executions can be accepted meanwhile. `for_delete` waits for those that
    are being accepted, and lets others wait.
    """
    session = await tx.session()
    lock: Any = {"key_share": True} if for_update else for_delete or None
    workflow = await session.get(Workflow, workflow_id, with_for_update=lock)
    return workflow if workflow is not None and workflow.deleted_at is None else None


async def exists(tx: Tx, tenant: str | None, workflow_id: str) -> bool:
    return await fast.value(tx, tenant, _EXISTS, workflow_id) is not None


async def find_existing_ids(tx: Tx, tenant: str, workflow_ids: list[str]) -> set[str]:
    return {row["id"] for row in await fast.rows(tx, tenant, _FIND_EXISTING_IDS, workflow_ids)}


async def check_quota(tx: Tx, tenant_id: str) -> None:
    conditions = (Workflow.tenant_id == tenant_id, Workflow.deleted_at.is_(None))
    await quota.check(tx, Workflow, MAX_WORKFLOWS, "workflows", *conditions)


async def find_definition(tx: Tx, workflow_id: str, version: int) -> dict[str, Any] | None:
    text = await fast.value(tx, tenant_of(tx), _FIND_DEFINITION, workflow_id, version)
    return None if text is None else msgspec.json.decode(text)


async def list_versions(tx: Tx, workflow_id: str, page: Page) -> tuple[list[VersionSummary], Total]:
    where = Where(
        tenant_of(tx),
        "EXISTS (SELECT 1 FROM workflows w WHERE w.tenant_id = workflow_versions.tenant_id"
        " AND w.id = workflow_versions.workflow_id AND w.deleted_at IS NULL)",
    )
    where.equal("workflow_id", workflow_id)
    order = "version DESC"
    return await paging.fetch(
        tx, _VERSION, "workflow_versions", where, order, page, tenant_is_implied=True
    )


# Executions


async def lock_startable(tx: Tx, tenant: str, workflow_id: str) -> Row | None:
    """Returns a workflow that is not deleted until the transaction ends."""
    return await fast.row(tx, tenant, _LOCK_STARTABLE, workflow_id)


async def insert_execution(tx: Tx, tenant: str, *values: object) -> str:
    while (stored_id := await fast.value(tx, tenant, _INSERT_EXECUTION, *values)) is None:
        pass
    return str(stored_id)


async def find_by_dedupe_key(tx: Tx, tenant: str, dedupe_key: str | None) -> str | None:
    execution_id: str | None = await fast.value(tx, tenant, _FIND_BY_OCCASION, dedupe_key)
    return execution_id


async def is_queue_full(tx: Tx, tenant: str) -> bool:
    """True when the tenant has as many pending executions as it may have."""
    return bool(await fast.value(tx, tenant, _IS_QUEUE_FULL))


async def try_lock_queue(tx: Tx, tenant: str) -> bool:
    """False when another transaction decides at this moment."""
    return bool(await fast.value(tx, tenant, _TRY_LOCK_QUEUE))


async def mark_running(tx: Tx, tenant: str, execution_id: str) -> None:
    await fast.execute(tx, tenant, _MARK_RUNNING, execution_id)


async def count_active(tx: Tx, tenant: str) -> Row:
    return await _read_one(tx, tenant, _COUNT_ACTIVE)


async def count_manual(tx: Tx, tenant: str) -> Row:
    return await _read_one(tx, tenant, _COUNT_MANUAL)


async def _read_one(tx: Tx, tenant: str, sql: str) -> Row:
    row = await fast.row(tx, tenant, sql)
    if row is None:
        raise RuntimeError("an aggregate returned no row")
    return row


async def list_waiting_tenants(tx: Tx, after: str, limit: int) -> list[str]:
    """Returns tenants with pending executions, in the order of their ids, after one of them."""
    rows = await (await tx.raw()).fetch(_LIST_WAITING_TENANTS, after, limit)
    return [row["tenant_id"] for row in rows]


async def find_execution(tx: Tx, execution_id: str) -> FullExecution | None:
    row = await fast.row(tx, tenant_of(tx), _FIND_EXECUTION, execution_id)
    if row is None:
        return None
    return _FULL_EXECUTION.build(
        row,
        input=msgspec.Raw(row["input"]),
        output=msgspec.Raw(row["output"] or "null"),
        nodes=_decode_nodes(row["nodes"]),
    )


async def find_execution_state(tx: Tx, execution_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_EXECUTION_STATE, execution_id)


async def find_result(tx: Tx, execution_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_RESULT, execution_id)


async def list_active(tx: Tx, tenant: str, workflow_id: str, limit: int) -> list[str]:
    rows = await fast.rows(tx, tenant, _LIST_ACTIVE, workflow_id, limit)
    return [row["id"] for row in rows]


async def reopen(
    tx: Tx, tenant: str, execution_id: str, progress: str, node_ids: list[str]
) -> None:
    """Makes an ended execution pending again, together with some of its nodes."""
    await fast.execute(tx, tenant, _REOPEN, execution_id, progress, node_ids)


async def list_nodes_by_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_BY_CORRELATION, correlation_id, limit)


# By database time, so that the clocks of workers do not matter.
_LOCK_DUE = """
SELECT id, tenant_id, trigger, next_run_at FROM workflows
WHERE next_run_at <= now() AND deleted_at IS NULL AND trigger IS NOT NULL
ORDER BY next_run_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""
_SET_NEXT_RUN = "UPDATE workflows SET next_run_at = $3 WHERE tenant_id = $1 AND id = $2"


async def lock_due(tx: Tx) -> Row | None:
    """Returns the workflow that is due for the longest time."""
    row: Row | None = await (await tx.raw()).fetchrow(_LOCK_DUE)
    return row


async def set_next_run(tx: Tx, tenant: str, workflow_id: str, moment: datetime | None) -> None:
    await fast.execute(tx, tenant, _SET_NEXT_RUN, workflow_id, moment)
