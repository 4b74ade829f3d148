"""SQL of executions and their nodes that the engine runs."""

from datetime import datetime
from typing import Any

import msgspec

from app.domain.agents.usage import api as usage
from app.domain.platform.events import api as events
from app.kit.ids import new_id
from db import fast, leases
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

from .graph import NodeState
from .work_kinds import RUN_NODE, START


class Execution(msgspec.Struct, kw_only=True):
    """An execution whose row is locked."""

    id: str
    tenant_id: str
    workflow_id: str
    workflow_name: str
    owner_id: str | None
    version: int
    status: str
    progress: dict[str, NodeState]
    started_by: str | None
    caller_id: str | None
    trigger_type: str
    trigger_id: str | None
    depth: int
    stored_bytes: int
    correlation_id: str
    cause_event_id: str | None


class NodeChange(msgspec.Struct, kw_only=True, omit_defaults=True):
    """New values of one node's row. Input stays as it is when it is None."""

    node_id: str
    status: str
    attempt: int
    input: msgspec.Raw | None = None
    output: msgspec.Raw | None = None
    error: msgspec.Raw | None = None
    ref_id: str | None = None
    has_started: bool = False
    has_finished: bool = False


class QueuedNode(msgspec.Struct, kw_only=True):
    """Work for one attempt of a node: `run` starts it, `timer` ends its wait. With a lease token,
    the caller runs it.
    """

    work_id: str
    node_id: str
    attempt: int
    purpose: str
    run_at: datetime | None = None
    lease_token: str | None = None


class StepChanges(msgspec.Struct):
    """What one step changes, besides the state of the execution."""

    output: str | None = None
    error: str | None = None
    has_finished: bool = False
    nodes: list[NodeChange] = []
    queue: list[QueuedNode] = []
    # As the events area encodes them.
    events: str = "[]"
    frees_slot: bool = False
    lease_seconds: float = 0


_EXECUTION = """
e.id, e.tenant_id, e.workflow_id, w.name AS workflow_name, w.created_by AS owner_id, e.version,
e.status, e.progress, e.started_by, e.caller_id, e.trigger_type, e.trigger_id, e.depth,
e.stored_bytes, e.correlation_id, e.cause_event_id
"""
# Only the row of the execution is read again after a wait for its lock: `progress` is up to date,
# while other tables are as they were when the statement began.
_LOCK = f"""
SELECT {_EXECUTION} FROM workflow_executions e
JOIN workflows w ON w.tenant_id = e.tenant_id AND w.id = e.workflow_id
WHERE e.tenant_id = $1 AND e.id = $2 FOR NO KEY UPDATE OF e
"""
# Those that others wait for come first: so a chain of calls ends before more of them begin.
_LOCK_PENDING = f"""
SELECT {_EXECUTION} FROM workflow_executions e
JOIN workflows w ON w.tenant_id = e.tenant_id AND w.id = e.workflow_id
WHERE e.tenant_id = $1 AND e.status = 'pending' AND w.deleted_at IS NULL
ORDER BY e.depth DESC, e.id LIMIT $2
FOR NO KEY UPDATE OF e SKIP LOCKED
"""
# More than an expression may read. Larger values are not sent to the worker.
_MAX_READ_BYTES = 4 * 1024 * 1024
_LOAD_NODE = f"""
SELECT n.node_id, n.id AS row_id, e.id AS execution_id, e.workflow_id, e.version,
       e.progress->n.node_id AS state, e.status AS execution_status, e.input::text AS input,
       e.trigger_type, e.trigger_id, e.started_by, e.created_at, e.correlation_id,
       w.name AS workflow_name, n.reads,
       (SELECT json_object_agg(o.node_id, json_build_object('status', o.status,
                                                            'output', o.output))
        FROM workflow_nodes o
        WHERE o.tenant_id = $1 AND o.execution_id = e.id AND o.node_id = ANY(n.reads)
        HAVING coalesce(sum(octet_length(o.output::text)), 0) <= {_MAX_READ_BYTES})::text
       AS outputs
FROM workflow_nodes n
JOIN workflow_executions e ON e.tenant_id = n.tenant_id AND e.id = n.execution_id
JOIN workflows w ON w.tenant_id = e.tenant_id AND w.id = e.workflow_id
WHERE n.tenant_id = $1 AND n.id = $2 AND w.deleted_at IS NULL
"""
_FIND_NODE = """
SELECT n.node_id, n.execution_id, e.workflow_id, e.version, e.depth, e.correlation_id
FROM workflow_nodes n
JOIN workflow_executions e ON e.tenant_id = n.tenant_id AND e.id = n.execution_id
WHERE n.tenant_id = $1 AND n.id = $2
"""
_LOAD_DEFINITION = """
SELECT definition::text FROM workflow_versions
WHERE tenant_id = $1 AND workflow_id = $2 AND version = $3
"""
_INSERT_NODES = """
INSERT INTO workflow_nodes (tenant_id, execution_id, id, node_id, type, position, reads)
SELECT $1, $2, n.id, n.node_id, n.type, n.position, n.reads
FROM jsonb_to_recordset($3::jsonb)
  AS n(id text, node_id text, type text, position int, reads text[])
"""
_QUEUE = RUN_NODE.insert_sql(
    """json_to_recordset($9::json)
  AS q(work_id text, node_id text, attempt int, purpose text, run_at timestamptz, lease_token text)
JOIN workflow_nodes n ON n.tenant_id = $1 AND n.execution_id = $2 AND n.node_id = q.node_id
RETURNING ref_id, lease_token""",
    id="q.work_id",
    # No dedupe key: after an execution was cancelled and retried there may be older work for the
    # same attempt, which has run already. The lock on the execution lets one of them run the node.
    ref_id="n.id || ':' || q.attempt || CASE q.purpose WHEN 'timer' THEN ':timer' ELSE '' END",
    correlation_id="$10::text",
    cause_event_id="$11::text",
    lane="$1::text",
    run_at="coalesce(q.run_at, now())",
    dispatched_at="CASE WHEN q.run_at IS NULL THEN now() END",
    **leases.columns_sql("q.lease_token", "$15"),
)
# A slot for another execution is free. One that is accepted at this very moment is not seen; a
# periodic task finds it.
_START_NEXT = START.insert_sql(
    """(SELECT 1) single_row
WHERE $13::text IS NOT NULL AND EXISTS (
    SELECT 1 FROM workflow_executions p WHERE p.tenant_id = $1 AND p.status = 'pending')
RETURNING id""",
    id="$13::text",
    correlation_id="$10::text",
    dispatched_at="now()",
)
# Once, at the first start: a retry continues the same execution, and keeps `started_at`.
_COUNT = usage.count_sql(
    "workflow_executions",
    "FROM workflow_executions WHERE NOT $7 AND tenant_id = $1 AND id = $2 AND started_at IS NULL",
    "$2",
    "NULL::text",
)
# All that one step changes, in one statement.
_STORE = f"""
WITH execution AS (
    UPDATE workflow_executions
    SET status = $3, progress = $4::jsonb, output = $5::json, error = $6::json,
        finished_at = CASE WHEN $7 THEN now() END,
        started_at = CASE WHEN status = 'pending' AND NOT $7 THEN now() ELSE started_at END,
        cause_event_id = $11, stored_bytes = $14
    WHERE tenant_id = $1 AND id = $2
), nodes AS (
    UPDATE workflow_nodes n
    SET status = u.status, attempt = u.attempt, input = coalesce(u.input, n.input),
        output = u.output, error = u.error,
        ref_id = CASE WHEN u.status <> 'pending' THEN coalesce(u.ref_id, n.ref_id) END,
        started_at = CASE WHEN u.has_started THEN now() ELSE n.started_at END,
        finished_at = CASE WHEN u.has_finished THEN now() END
    FROM json_to_recordset($8::json)
      AS u(node_id text, status text, attempt int, input json, output json, error json,
           ref_id text, has_started boolean, has_finished boolean)
    WHERE n.tenant_id = $1 AND n.execution_id = $2 AND n.node_id = u.node_id
), queued AS ({_QUEUE}), next AS ({_START_NEXT}), counted AS ({_COUNT}),
{events.emission_sql("$12")}
SELECT {events.ROUTED}, (SELECT id FROM next) AS start_work_id,
       (SELECT ref_id FROM queued WHERE lease_token IS NOT NULL) AS leased_ref_id
"""
_READ_OUTPUTS = """
SELECT node_id, output::text AS output FROM workflow_nodes
WHERE tenant_id = $1 AND execution_id = $2 AND node_id = ANY($3)
"""
_LIST_REFS = """
SELECT id, node_id, ref_id FROM workflow_nodes
WHERE tenant_id = $1 AND execution_id = $2 AND node_id = ANY($3) AND ref_id IS NOT NULL
"""


def _encode(value: Any) -> str:
    """Raw parts are encoded already, without NUL characters."""
    return msgspec.json.encode(value).decode()


def _build_execution(row: Row) -> Execution:
    values = {name: row[name] for name in Execution.__struct_fields__ if name != "progress"}
    progress = msgspec.convert(row["progress"], dict[str, NodeState])
    return Execution(**values, progress=progress)


async def lock(tx: Tx, tenant: str, execution_id: str) -> Execution | None:
    row = await fast.row(tx, tenant, _LOCK, execution_id)
    return None if row is None else _build_execution(row)


async def lock_pending(tx: Tx, tenant: str, limit: int) -> list[Execution]:
    """Returns the executions that are to be started next: called ones, then the oldest."""
    return [_build_execution(row) for row in await fast.rows(tx, tenant, _LOCK_PENDING, limit)]


async def load_node(tx: Tx, tenant: str, row_id: str) -> Row | None:
    """Returns a node with its execution and the outputs that it reads, which are None when they are
    too large together. None when the workflow was deleted.
    """
    return await fast.row(tx, tenant, _LOAD_NODE, row_id)


async def find_node(tx: Tx, tenant: str, row_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_NODE, row_id)


async def load_definition(tx: Tx, tenant: str, workflow_id: str, version: int) -> str | None:
    text: str | None = await fast.value(tx, tenant, _LOAD_DEFINITION, workflow_id, version)
    return text


async def insert_nodes(tx: Tx, tenant: str, execution_id: str, nodes: str) -> None:
    await fast.execute(tx, tenant, _INSERT_NODES, execution_id, nodes)


async def store(tx: Tx, execution: Execution, changes: StepChanges) -> WorkRow | None:
    """Writes the state of the execution, its changed nodes, their work and the events. Another
    execution is started when this one frees a slot. Returns the work that is leased to the caller.
    """
    row = await fast.row(
        tx,
        execution.tenant_id,
        _STORE,
        execution.id,
        execution.status,
        _encode(execution.progress),
        changes.output,
        changes.error,
        changes.has_finished,
        _encode(changes.nodes),
        _encode(changes.queue),
        execution.correlation_id,
        execution.cause_event_id,
        changes.events,
        new_id("wrk") if changes.frees_slot else None,
        execution.stored_bytes,
        changes.lease_seconds,
    )
    if row is None:
        return None
    events.wake(tx, row["routed"])
    if row["start_work_id"] is not None:
        tx.wake(START.name, row["start_work_id"])
    leased = None
    for item in changes.queue:
        if item.lease_token is not None:
            leased = _build_leased(execution, item, row["leased_ref_id"])
        elif item.run_at is None:
            tx.wake(RUN_NODE.name, item.work_id)
    return leased


def _build_leased(execution: Execution, item: QueuedNode, ref_id: str) -> WorkRow:
    return WorkRow(
        id=item.work_id,
        tenant_id=execution.tenant_id,
        kind=RUN_NODE.name,
        ref_id=ref_id,
        attempt=1,
        max_attempts=RUN_NODE.max_attempts,
        lease_token=item.lease_token or "",
        correlation_id=execution.correlation_id,
        cause_event_id=execution.cause_event_id,
        lane=execution.tenant_id,
    )


async def read_outputs(tx: Tx, tenant: str, execution_id: str, ids: list[str]) -> dict[str, str]:
    rows = await fast.rows(tx, tenant, _READ_OUTPUTS, execution_id, ids)
    return {row["node_id"]: row["output"] or "null" for row in rows}


async def list_refs(tx: Tx, tenant: str, execution_id: str, ids: list[str]) -> list[Row]:
    """Returns the nodes among `ids` that wait for something of another area."""
    return await fast.rows(tx, tenant, _LIST_REFS, execution_id, ids)


# Executions that an area started, by their ids or keys.

_LIST_STARTED = """
SELECT id, dedupe_key, finished_at IS NOT NULL AS is_ended FROM workflow_executions
WHERE tenant_id = $1 AND (id = ANY($2) OR dedupe_key = ANY($3))
"""
_LIST_MESSAGES = """
SELECT n.output->>'message_id' AS id FROM workflow_nodes n
WHERE n.tenant_id = $1 AND n.execution_id = ANY($2) AND n.type = 'notification'
  AND json_typeof(n.output) = 'object'
"""
_DELETE_ENDED = """
DELETE FROM workflow_executions
WHERE tenant_id = $1 AND id = ANY($2) AND finished_at IS NOT NULL
"""


async def list_started(tx: Tx, tenant: str, ids: list[str], keys: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_STARTED, ids, keys)


async def list_messages(tx: Tx, tenant: str, execution_ids: list[str]) -> list[str]:
    """Returns the ids of the messages that nodes of executions sent."""
    rows = await fast.rows(tx, tenant, _LIST_MESSAGES, execution_ids)
    return [row["id"] for row in rows if row["id"] is not None]


async def delete_ended(tx: Tx, tenant: str, execution_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _DELETE_ENDED, execution_ids)
