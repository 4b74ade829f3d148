"""Running tools: accepted with its work in one transaction, run by a worker, waited for here."""

from datetime import datetime
from typing import Any, Final

import msgspec

from app.domain.agents.errors import AgentNotFound
from app.domain.tools import json_schema, queries, registry
from app.domain.tools.configs import TOOL_TYPES
from app.domain.tools.errors import ExecutionNotFound, ToolDisabled, ToolNotFound
from app.domain.tools.plans import Plan, plan_of, seconds_of
from app.domain.tools.schemas import (
    Day,
    ExecutionResult,
    ExecutionView,
    Failure,
    Period,
    ToolStats,
    TopAgent,
)
from app.kit import trace, validation, work
from app.kit.egress import Guard
from app.kit.errors import Invalid, Unavailable
from app.kit.ids import new_id
from app.kit.paging import Page, Paged, paged
from app.kit.texts import as_json, is_deeper
from app.kit.work import WorkKind
from app.security.principal import Principal
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Scope, Tx

# A run is repeated only where that does no harm, or to record that its outcome is unknown.
RUN_TOOL: Final = WorkKind(
    "tools.run", "tools", timeout_seconds=420, retry_delays=(1, 2), awaited=True
)
# How long a run may wait for a worker, besides its own time.
QUEUE_SECONDS = 30.0
# No tool may take longer.
_LONGEST_SECONDS = 300.0
_LATE = "no worker ran it in time; is one running that takes the queue `tools`?"
_DEEPEST = 64
_HOURS: dict[Period, int] = {"24h": 24, "7d": 168, "30d": 720, "90d": 2160}


async def perform(
    services: Services,
    scope: Scope,
    tool_id: str,
    given: dict[str, Any],
    *,
    agent_id: str | None = None,
    call_id: str | None = None,
) -> Row:
    """Run it and wait. The same `call_id` again waits for the same run, whatever became of the
    tool since.
    """
    async with services.db.tx(scope) as tx:
        row = await queries.to_run(tx, tenant_of(tx), tool_id, agent_id)
        if row is None:
            raise ToolNotFound(f"There is no tool {tool_id[:64]}")
        tenant_id = row["tenant_id"]
        known = await queries.by_call(tx, tenant_id, call_id) if call_id else None
        if known is not None:
            execution_id, work_id, seconds = known["id"], known["work_id"], _LONGEST_SECONDS
        else:
            plan = _prepared(row, services.egress.guard, agent_id, given)
            seconds = seconds_of(plan.config)
            execution_id, work_id = await _accept(
                services, tx, tenant_id, tool_id, agent_id, call_id, given
            )
    await work.wait(services.db, services.doorbell, tenant_id, work_id, seconds + QUEUE_SECONDS)
    return await _outcome(services, tenant_id, execution_id, work_id)


def _prepared(row: Row, guard: Guard, agent_id: str | None, given: dict[str, Any]) -> Plan:
    if not row["agent_known"]:
        raise AgentNotFound(f"There is no agent {(agent_id or '')[:64]}")
    if not row["is_enabled"] or row["attachment_enabled"] is False:
        raise ToolDisabled(f"The tool {row['name']} is disabled")
    _check_input(row, given)
    return plan_of(row, agent_id, guard)


def _check_input(row: Row, given: dict[str, Any]) -> None:
    if is_deeper(given, _DEEPEST):
        raise Invalid.field("input", f"is nested deeper than {_DEEPEST} levels")
    if row["input_schema"] is not None:
        schema = msgspec.json.decode(row["input_schema"])
        found = json_schema.problems(schema, given, "input")
        if found:
            raise Invalid.fields(found)
    shape = TOOL_TYPES[row["tool_type"]].input
    if shape is not None:
        validation.convert_field(shape, given, "input")


async def _accept(
    services: Services,
    tx: Tx,
    tenant_id: str,
    tool_id: str,
    agent_id: str | None,
    call_id: str | None,
    given: dict[str, Any],
) -> tuple[str, str]:
    execution_id = new_id("exe")
    work_id = await work.accept(
        tx,
        services.doorbell,
        RUN_TOOL,
        tenant_id=tenant_id,
        ref_id=execution_id,
        dedupe_key=execution_id,
    )
    added = await queries.add(
        tx,
        tenant_id,
        execution_id,
        tool_id,
        agent_id,
        call_id,
        work_id,
        as_json(given),
        trace.current().correlation_id,
    )
    if not added:
        raise Unavailable("This call is being started already", 1)
    return execution_id, work_id


async def _outcome(services: Services, tenant_id: str, execution_id: str, work_id: str) -> Row:
    """As it ended; one that no worker got to in time ends here."""
    async with services.db.tx(tenant_id) as tx:
        row = await queries.find(tx, tenant_id, execution_id)
        if row is not None and row["finished_at"] is None:
            if await work.cancel(tx, services.doorbell, tenant_id, work_id):
                error = ("timeout", _LATE)
                await queries.end(tx, tenant_id, execution_id, "timeout", None, error, 0)
            row = await queries.find(tx, tenant_id, execution_id)
    if row is None:
        raise ToolNotFound("The tool was deleted while it ran")
    if row["finished_at"] is None:
        raise Unavailable("The outcome of this run is not known yet; look at its executions")
    return row


async def execute(
    services: Services, scope: Scope, tool_id: str, given: dict[str, Any], agent_id: str | None
) -> ExecutionResult:
    return _result(await perform(services, scope, tool_id, given, agent_id=agent_id))


def _result(row: Row) -> ExecutionResult:
    error = failure_of(row)
    return ExecutionResult(
        execution_id=row["id"],
        status=row["status"],
        output=msgspec.UNSET if error else output_of(row),
        error=error or msgspec.UNSET,
        execution_time_ms=row["execution_time_ms"],
        executed_at=row["executed_at"],
    )


def output_of(row: Row) -> Any:
    return msgspec.json.decode(row["output"]) if row["output"] is not None else None


def failure_of(row: Row) -> Failure | None:
    if row["error_code"] is None:
        return None
    return Failure(row["error_code"], row["error_message"] or "")


# Reading


async def list_page(
    tx: Tx,
    principal: Principal,
    tool_id: str,
    page: Page,
    *,
    status: str | None,
    after: datetime | None,
    before: datetime | None,
) -> Paged[ExecutionView]:
    await registry.find(tx, tool_id)
    rows, total = await queries.list_page(tx, tenant_of(tx), tool_id, status, after, before, page)
    return paged([_view(row, principal) for row in rows], total, page)


async def get(tx: Tx, principal: Principal, tool_id: str, execution_id: str) -> ExecutionView:
    tool = await registry.find(tx, tool_id)
    row = await queries.find(tx, tool.tenant_id, execution_id)
    if row is None or row["tool_id"] != tool_id or row["finished_at"] is None:
        raise ExecutionNotFound(f"There is no finished execution {execution_id[:64]} of this tool")
    return _view(row, principal)


def _view(row: Row, principal: Principal) -> ExecutionView:
    """What was said in a conversation is for those who may read conversations, and what somebody
    ran for those who run tools themselves.
    """
    needed = "tools:execute" if row["call_id"] is None else "conversations:read"
    hidden = not principal.may(needed)
    return ExecutionView(
        row["id"],
        row["tool_id"],
        row["agent_id"],
        row["status"],
        {} if hidden else msgspec.json.decode(row["input"]),
        None if hidden else output_of(row),
        Failure(row["error_code"], "") if hidden and row["error_code"] else failure_of(row),
        row["execution_time_ms"],
        row["executed_at"],
    )


async def get_stats(tx: Tx, tool_id: str, period: Period) -> ToolStats:
    tool = await registry.find(tx, tool_id)
    asked = (tx, tool.tenant_id, tool_id, _HOURS[period])
    row = await queries.stats(*asked)
    days, agents = await queries.days(*asked), await queries.top_agents(*asked)
    return ToolStats(
        tool_id,
        period,
        row["total"],
        row["successful"],
        row["total"] - row["successful"],
        registry.share(row["successful"], row["total"]),
        round(row["average"], 1),
        round(row["p95"], 1),
        round(row["p99"], 1),
        [Day(day["date"], day["executions"], day["failures"]) for day in days],
        [TopAgent(one["agent_id"], one["agent_name"], one["executions"]) for one in agents],
    )
