from collections.abc import Sequence
from typing import Final

from app.domain import retention_queries
from app.domain.area import AgentDeletion, Area, AreaJob, Span, read_shown
from app.domain.platform.events.api import MAX_SPANS
from app.security.permissions import DEVELOPERS, EVERYBODY, Permission
from db import ledger
from db.retention import RetentionRule
from db.session import Tx
from db.storage_quota import CountedTable, UncountedTable

from . import jobs, queries, trace_queries
from .client_tokens import ClientTokens
from .credential_hosts import list_hosts
from .events import ToolCreated, ToolDeleted, ToolUpdated
from .executions import RUN_TOOL
from .service import REPORT_DELETED

_RUN = "w.id = t.work_id"
# The turn that called the tool, which reads the output again when it is resumed. It was accepted
# before the call. An index has the correlation id and `finished_at`.
_TURN = """
w.correlation_id = t.correlation_id AND w.tenant_id = t.tenant_id AND w.finished_at IS NULL
AND w.created_at <= t.executed_at"""
_IS_FINISHED = f"NOT {ledger.unfinished_sql(_RUN)} AND NOT {ledger.unfinished_sql(_TURN)}"


async def _clear_executions(deletion: AgentDeletion) -> None:
    """Deletes the content of the agents' executions, and keeps the executions for statistics."""
    await queries.clear_executions_of_agents(deletion.tx, deletion.tenant_id, deletion.agent_ids)


async def _read_spans(
    tx: Tx, tenant: str | None, correlation_id: str, _outer: Sequence[Span]
) -> list[Span]:
    """Returns one span per execution, as a child of the work that ran it."""
    rows = await trace_queries.list_executions_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    return [
        Span(
            "tool",
            row["id"],
            row["work_id"],
            row["name"],
            row["status"],
            row["executed_at"],
            float(row["execution_time_ms"]),
            input=read_shown(row["input"]),
            output=read_shown(row["output"]),
            error=row["error_message"],
        )
        for row in rows
    ]


AREA: Final = Area(
    name="tools",
    events=(ToolCreated, ToolUpdated, ToolDeleted),
    permissions=(
        Permission("tools:read", "See tools and their executions, without content", EVERYBODY),
        Permission("tools:write", "Create and change tools, and see their configs", DEVELOPERS),
        Permission("tools:delete", "Delete tools", DEVELOPERS),
        Permission("tools:execute", "Run tools", DEVELOPERS),
    ),
    jobs=(
        AreaJob(
            RUN_TOOL,
            jobs.run_tool,
            "Run a tool",
            on_dead=jobs.on_dead_tool,
            instead="Execute the tool again: whoever called it no longer waits",
        ),
        AreaJob(REPORT_DELETED, jobs.report_deleted, "End calls of a deleted tool"),
    ),
    retention=(
        retention_queries.by_plan(
            "executions_days", "tool_executions", "executed_at", _IS_FINISHED
        ),
        # The execution stays for the statistics. Its content has the agent's retention period.
        RetentionRule(
            "tool_executions",
            "t.tenant_id = a.tenant_id AND t.agent_id = a.id"
            f" AND ({queries.HAS_CONTENT})"
            f" AND t.executed_at < now() - a.retention_days * interval '1 day' AND {_IS_FINISHED}",
            order_by="t.executed_at",
            per="agents a",
            clears="input = '{}', output = NULL, error_message = NULL",
        ),
    ),
    spans=_read_spans,
    span_permissions=("tools:execute", "conversations:read"),
    shared=lambda services: (ClientTokens(services.egress),),
    credential_hosts=list_hosts,
    after_agents_deleted=_clear_executions,
    tables=(
        CountedTable(
            "tools",
            "definitions",
            "octet_length(t.config::text) + octet_length(t.description)"
            " + coalesce(octet_length(t.input_schema::text), 0)"
            " + coalesce(octet_length(t.output_schema::text), 0)",
            changes="OLD.updated_at <> NEW.updated_at",
        ),
        CountedTable(
            "tool_executions",
            "executions",
            "octet_length(t.input::text) + coalesce(octet_length(t.output::text), 0)"
            " + coalesce(octet_length(t.error_message), 0)",
            from_end=True,
        ),
        UncountedTable("agent_tools", "at most 100 of an agent"),
    ),
)
