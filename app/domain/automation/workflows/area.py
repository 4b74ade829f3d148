from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from app.domain import retention_queries
from app.domain.area import Area, AreaJob, ExecutionLoad, PeriodicTask, Span, read_shown
from app.domain.platform.events.api import MAX_SPANS
from app.kit import clock
from app.security.permissions import DEVELOPERS, EVERYBODY, Permission
from app.templating.expressions import Expressions
from db.fast import Row
from db.retention import CASCADE_BATCH, RetentionRule
from db.session import Tx
from db.storage_quota import CountedTable, UncountedTable

from . import jobs, queries, running, schedule, starting
from .events import (
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    ExecutionStarted,
    NodeCompleted,
    WorkflowCreated,
    WorkflowDeleted,
    WorkflowPublished,
    WorkflowUpdated,
)
from .nodes.registry import NODE_TYPES
from .versions import Graphs
from .work_kinds import CANCEL_ALL, FAIL_START, RUN_NODE, START, STOP

# With each status that an execution ends with: these are the first columns of an index.
_DELETED_WORKFLOWS = """
(SELECT w.id, w.tenant_id, s.status FROM (
    SELECT id, tenant_id FROM workflows WHERE deleted_at < now() - interval '1 hour'
    ORDER BY deleted_at LIMIT 100) w
 CROSS JOIN (VALUES ('completed'), ('failed'), ('cancelled')) s(status)) a
"""


async def _read_spans(
    tx: Tx, tenant: str | None, correlation_id: str, _outer: Sequence[Span]
) -> list[Span]:
    """Returns one span per node, as a consequence of the event that started its execution; those of
    a called workflow belong to the node that called it.
    """
    rows = await queries.list_nodes_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    return [_build_span(row) for row in rows]


def _build_span(row: Row) -> Span:
    started, caller_id = row["started_at"], row["caller_id"]
    took = (row["finished_at"] or clock.now()) - started
    return Span(
        "node",
        row["id"],
        caller_id.partition(":")[0] if caller_id else row["cause_event_id"],
        f"{row['name']}: {row['node_id']}",
        row["status"],
        started,
        took / timedelta(milliseconds=1),
        is_waiting=NODE_TYPES[row["type"]].only_waits,
        input=read_shown(row["input"]),
        output=read_shown(row["output"]),
        error=row["error"],
    )


async def _count_load(tx: Tx, tenant_id: str) -> ExecutionLoad:
    row = await queries.count_active(tx, tenant_id)
    return ExecutionLoad(started=row["started"], running=row["running"])


AREA: Final = Area(
    name="workflows",
    events=(
        WorkflowCreated,
        WorkflowUpdated,
        WorkflowDeleted,
        WorkflowPublished,
        ExecutionStarted,
        ExecutionCompleted,
        ExecutionFailed,
        ExecutionCancelled,
        NodeCompleted,
    ),
    permissions=(
        Permission(
            "workflows:read", "See workflows and their executions, without content", EVERYBODY
        ),
        Permission(
            "workflows:write",
            "Create and change workflows, and see the configs of their nodes",
            DEVELOPERS,
        ),
        Permission("workflows:delete", "Delete workflows", DEVELOPERS),
        Permission("workflows:execute", "Run workflows", DEVELOPERS),
    ),
    jobs=(
        AreaJob(
            RUN_NODE,
            jobs.run_node,
            "Run a node of a workflow",
            on_dead=jobs.on_dead_node,
            instead="Retry the execution: POST /api/v1/workflow-executions/{execution_id}/retry",
        ),
        AreaJob(START, jobs.start_executions, "Start executions that wait"),
        AreaJob(FAIL_START, jobs.fail_start, "Fail an execution that could not begin"),
        AreaJob(STOP, jobs.stop_waiting, "Stop what an ended execution waits for"),
        AreaJob(CANCEL_ALL, jobs.cancel_executions, "Cancel executions of a deleted workflow"),
    ),
    retention=(
        retention_queries.by_plan(
            "executions_days", "workflow_executions", "finished_at", batch=CASCADE_BATCH
        ),
        # Once a worker has ended the executions of a deleted workflow.
        RetentionRule(
            "workflow_executions",
            "t.workflow_id = a.id AND t.tenant_id = a.tenant_id AND t.status = a.status",
            order_by="t.created_at",
            per=_DELETED_WORKFLOWS,
            batch=CASCADE_BATCH,
        ),
        RetentionRule(
            "workflows",
            f"t.deleted_at < now() - interval '1 hour' AND NOT {queries.HAS_EXECUTIONS}",
            order_by="t.deleted_at",
            batch=CASCADE_BATCH,
        ),
    ),
    periodic_tasks=(
        PeriodicTask(1.0, schedule.start_due),
        PeriodicTask(2.0, starting.start_all_ready),
    ),
    spans=_read_spans,
    span_permissions=("workflows:execute",),
    shared=lambda _services: (Graphs(), Expressions(), NODE_TYPES),
    on_call_finished=("wfn", running.on_call_finished),
    execution_load=_count_load,
    tables=(
        CountedTable("workflow_versions", "definitions", "octet_length(t.definition::text)"),
        # With what its nodes store.
        CountedTable(
            "workflow_executions",
            "executions",
            "t.stored_bytes + octet_length(t.input::text)"
            " + coalesce(octet_length(t.output::text), 0)",
            from_end=True,
        ),
        UncountedTable("workflow_nodes", "counted with the execution"),
        UncountedTable(
            "workflows", "at most 1,000 of a tenant; the definitions are in the versions"
        ),
    ),
)
