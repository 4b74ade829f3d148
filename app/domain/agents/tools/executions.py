"""Executions of tools: stored together with their work, run by a worker, and waited for here."""

from typing import Any, Final

import msgspec

from app.domain.agents.definition.errors import AgentNotFound
from app.domain.area import Areas, FinishedCall
from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import trace, validation
from app.kit.errors import Invalid, Unavailable
from app.kit.ids import new_id
from app.kit.paging import Page, Paged, paged
from app.kit.texts import as_json, is_deeper
from app.net.egress import Guard
from app.security.principal import Principal
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Scope, Tx

from . import json_schema, queries, service
from .configs import TOOL_TYPES
from .errors import ExecutionNotFound, ToolDisabled, ToolNotFound
from .execution_schemas import (
    Day,
    ExecutionResult,
    ExecutionView,
    Failure,
    Period,
    ToolStats,
    TopAgent,
)
from .queries import ExecutionFilter
from .run_plan import RunPlan, build_plan, timeout_seconds

# Ids of calls within a conversation begin with it; those of nodes of workflows do not.
_CALL_PREFIX: Final = "call_"
# A retry runs a tool only when that does no harm; else it records that the outcome is unknown.
RUN_TOOL: Final = WorkKind(
    "tools.run",
    "tools",
    timeout_seconds=420,
    retry_delays=(1, 2),
    awaited=True,
    per_tenant=6,
)
# How long a run may wait for a worker, in addition to its own timeout.
QUEUE_SECONDS = 30.0
# The longest timeout that a config can have.
_MAX_SECONDS = 300.0
_NO_WORKER = (
    f"no worker ran it in time: the tenant's share of {RUN_TOOL.per_tenant} runs at a time in each "
    "worker may be in use, or no worker is running that takes the queue `tools`"
)
_MAX_DEPTH = 64
_PERIOD_HOURS: dict[Period, int] = {"24h": 24, "7d": 168, "30d": 720, "90d": 2160}


async def run_and_wait(
    services: Services,
    scope: Scope,
    tool_id: str,
    arguments: dict[str, Any],
    *,
    agent_id: str | None = None,
    call_id: str | None = None,
) -> Row:
    """Runs a tool and returns its finished execution. A second call with the same `call_id` waits
    for the first run, also when the tool has changed since.
    """
    async with services.db.tx(scope) as tx:
        row = await queries.load_tool(tx, tenant_of(tx), tool_id, agent_id)
        if row is None:
            raise ToolNotFound(f"There is no tool {tool_id[:64]}")
        tenant_id = row["tenant_id"]
        earlier = await queries.find_execution_by_call(tx, tenant_id, call_id) if call_id else None
        if earlier is not None:
            execution_id, work_id, seconds = earlier["id"], earlier["work_id"], _MAX_SECONDS
        else:
            plan = _prepare_plan(row, services.egress.guard, agent_id, arguments)
            seconds = timeout_seconds(plan.config)
            execution_id, work_id = await _accept_execution(
                tx, tenant_id, tool_id, agent_id, call_id, arguments
            )
    await work.wait(services.db, services.doorbell, tenant_id, work_id, seconds + QUEUE_SECONDS)
    return await _load_finished(services, tenant_id, execution_id, work_id)


async def accept_run(
    tx: Tx,
    services: Services,
    tenant_id: str,
    tool_id: str,
    arguments: dict[str, Any],
    *,
    caller_id: str,
) -> str:
    """Accepts a run for another area: `Areas.on_call_finished` tells it the end. Returns the id of
    the execution.
    """
    row = await queries.load_tool(tx, tenant_id, tool_id, None)
    if row is None:
        raise ToolNotFound(f"There is no tool {tool_id[:64]}")
    _prepare_plan(row, services.egress.guard, None, arguments)
    execution_id, _ = await _accept_execution(tx, tenant_id, tool_id, None, caller_id, arguments)
    return execution_id


async def cancel_run(tx: Tx, services: Services, tenant_id: str, execution_id: str) -> None:
    row = await queries.find_execution(tx, tenant_id, execution_id)
    if row is None or row["finished_at"] is not None:
        return
    if await work.cancel(tx, services.doorbell, tenant_id, row["work_id"]):
        error = ("cancelled", "it was cancelled")
        await queries.finish_execution(tx, tenant_id, execution_id, "failed", None, error, 0)


def _prepare_plan(
    row: Row, guard: Guard, agent_id: str | None, arguments: dict[str, Any]
) -> RunPlan:
    if not row["agent_exists"]:
        raise AgentNotFound(f"There is no agent {(agent_id or '')[:64]}")
    if not row["is_enabled"] or row["attachment_enabled"] is False:
        raise ToolDisabled(f"The tool {row['name']} is disabled")
    _check_input(row, arguments)
    return build_plan(row, agent_id, guard)


def _check_input(row: Row, arguments: dict[str, Any]) -> None:
    if is_deeper(arguments, _MAX_DEPTH):
        raise Invalid.field("input", f"is nested deeper than {_MAX_DEPTH} levels")
    if row["input_schema"] is not None:
        schema = msgspec.json.decode(row["input_schema"])
        Invalid.check(json_schema.find_problems(schema, arguments, "input"))
    struct = TOOL_TYPES[row["tool_type"]].input
    if struct is not None:
        validation.convert_field(struct, arguments, "input", is_open=True)


async def _accept_execution(
    tx: Tx,
    tenant_id: str,
    tool_id: str,
    agent_id: str | None,
    call_id: str | None,
    arguments: dict[str, Any],
) -> tuple[str, str]:
    """Returns the ids of the stored execution and of its work."""
    execution_id = new_id("exe")
    work_id = await work.accept(
        tx,
        RUN_TOOL,
        tenant_id=tenant_id,
        ref_id=execution_id,
        dedupe_key=execution_id,
    )
    inserted = await queries.insert_execution(
        tx,
        tenant_id,
        execution_id,
        tool_id,
        agent_id,
        call_id,
        work_id,
        as_json(arguments),
        trace.current().correlation_id,
    )
    if not inserted:
        raise Unavailable("This call is already being started", 1)
    return execution_id, work_id


async def _load_finished(
    services: Services, tenant_id: str, execution_id: str, work_id: str
) -> Row:
    """Returns the finished execution. One that no worker has started ends here as a timeout."""
    async with services.db.tx(tenant_id) as tx:
        row = await queries.find_execution(tx, tenant_id, execution_id)
        if row is not None and row["finished_at"] is None:
            if await work.cancel(tx, services.doorbell, tenant_id, work_id):
                error = ("timeout", _NO_WORKER)
                await queries.finish_execution(
                    tx, tenant_id, execution_id, "timeout", None, error, 0
                )
            row = await queries.find_execution(tx, tenant_id, execution_id)
    if row is None:
        raise ToolNotFound("The tool was deleted while it ran")
    if row["finished_at"] is None:
        raise Unavailable("The outcome of this run is not known yet; see the tool's executions")
    return row


async def execute(
    services: Services, scope: Scope, tool_id: str, arguments: dict[str, Any], agent_id: str | None
) -> ExecutionResult:
    row = await run_and_wait(services, scope, tool_id, arguments, agent_id=agent_id)
    error = build_failure(row)
    return ExecutionResult(
        execution_id=row["id"],
        status=row["status"],
        output=msgspec.UNSET if error else decode_output(row),
        error=error or msgspec.UNSET,
        execution_time_ms=row["execution_time_ms"],
        executed_at=row["executed_at"],
    )


def decode_output(row: Row) -> Any:
    return msgspec.json.decode(row["output"]) if row["output"] is not None else None


def _pass_on(text: str | None) -> Any:
    """Returns stored JSON for an answer, without decoding and encoding it."""
    return msgspec.Raw(text) if text is not None else None


def build_failure(row: Row) -> Failure | None:
    if row["error_code"] is None:
        return None
    return Failure(row["error_code"], row["error_message"] or "")


# Reading


async def list_page(
    tx: Tx,
    principal: Principal,
    tool_id: str,
    page: Page,
    filters: ExecutionFilter,
) -> Paged[ExecutionView]:
    rows, total = await queries.list_executions(tx, tool_id, filters, page)
    if not rows:
        await service.require(tx, tool_id)
    return paged([_build_view(row, principal) for row in rows], total, page)


async def get(tx: Tx, principal: Principal, tool_id: str, execution_id: str) -> ExecutionView:
    row = await queries.find_execution(tx, tenant_of(tx), execution_id)
    if row is None or row["tool_id"] != tool_id or row["finished_at"] is None:
        await service.require(tx, tool_id)
        raise ExecutionNotFound(f"There is no finished execution {execution_id[:64]} of this tool")
    return _build_view(row, principal)


def _build_view(row: Row, principal: Principal) -> ExecutionView:
    """Hides input, output and message from a principal who lacks the permission for them:
    `conversations:read` for a call within a conversation, `tools:execute` for any other run.
    """
    is_in_conversation = (row["call_id"] or "").startswith(_CALL_PREFIX)
    permission = "conversations:read" if is_in_conversation else "tools:execute"
    is_hidden = not principal.may(permission)
    return ExecutionView(
        row["id"],
        row["tool_id"],
        row["agent_id"],
        row["status"],
        {} if is_hidden else _pass_on(row["input"]),
        None if is_hidden else _pass_on(row["output"]),
        Failure(row["error_code"], "") if is_hidden and row["error_code"] else build_failure(row),
        row["execution_time_ms"],
        row["executed_at"],
    )


async def get_stats(tx: Tx, tool_id: str, period: Period) -> ToolStats:
    tenant, hours = tenant_of(tx), _PERIOD_HOURS[period]
    row = await queries.load_stats(tx, tenant, tool_id, hours)
    if not row["total"]:
        await service.require(tx, tool_id)
    days = await queries.count_by_day(tx, tenant, tool_id, hours)
    agents = await queries.list_top_agents(tx, tenant, tool_id, hours)
    return ToolStats(
        tool_id,
        period,
        row["total"],
        row["successful"],
        row["total"] - row["successful"],
        service.percentage(row["successful"], row["total"]),
        round(row["average"], 1),
        round(row["p95"], 1),
        round(row["p99"], 1),
        [Day(day["date"], day["executions"], day["failures"]) for day in days],
        [TopAgent(agent["agent_id"], agent["agent_name"], agent["executions"]) for agent in agents],
    )


async def report_end(
    tx: Tx,
    services: Services,
    tenant_id: str,
    call_id: str | None,
    output: str | None,
    error: tuple[str | None, str | None],
) -> None:
    """Tells the area that accepted a run for itself; chat waits for the runs of its own calls."""
    if call_id is None:
        return
    code, message = error
    value: Any = msgspec.json.decode(output) if output is not None and code is None else None
    failure = None if code is None else (code, message or "")
    await services.get(Areas).on_call_finished(
        FinishedCall(tx, services, tenant_id, call_id, value, failure)
    )


async def clear_calls(tx: Tx, tenant_id: str, call_ids: list[str]) -> None:
    """Deletes the content of the calls' executions, and keeps the executions for statistics.
    `outer.inner` is a call by a sub-agent, and its execution has the inner id.
    """
    inner_ids = [call_id.rpartition(".")[2] for call_id in call_ids]
    await queries.clear_executions_of_calls(tx, tenant_id, inner_ids)
