"""Executions of workflows for callers of the API: start, read, cancel and retry."""

import asyncio

import msgspec

from app.context import RequestContext
from app.kit import paging
from app.kit.paging import Page, Paged
from app.security.principal import Principal
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Tx

from . import engine, queries, starting
from . import execution_list_queries as lists
from . import service as workflows
from .errors import InvalidState, WorkflowExecutionNotFound
from .execution_list_queries import ExecutionFilter
from .graph import ENDED, NodeState
from .schemas import (
    AcceptedExecution,
    ExecuteWorkflow,
    ExecutionError,
    ExecutionSummary,
    FullExecution,
    NodeError,
)

# Of executions, and of their nodes.
_RETRYABLE = frozenset({"failed", "cancelled"})
_POLL_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
# Without it, inputs, outputs and messages of errors are not shown.
_CONTENT_PERMISSION = "workflows:execute"


async def execute(
    context: RequestContext, workflow_id: str, data: ExecuteWorkflow
) -> AcceptedExecution:
    """Starts the published version by hand, or the newest one of a draft; another one only for
    those who may change the workflow.
    """
    tx, services, principal = context.tx, context.services, context.principal
    workflow = await workflows.find(tx, workflow_id)
    version = workflows.choose_version(principal, workflow, data.version)
    await starting.check_rate(tx, workflow.tenant_id)
    execution_id = await starting.accept(
        tx,
        services,
        starting.NewExecution(
            tenant_id=workflow.tenant_id,
            workflow_id=workflow.id,
            version=version,
            input=data.input,
            trigger_type="manual",
            started_by=principal.user_id,
        ),
    )
    return await _build_accepted(tx, workflow.id, execution_id)


async def _build_accepted(tx: Tx, workflow_id: str, execution_id: str) -> AcceptedExecution:
    state = await _find_state(tx, execution_id)
    return AcceptedExecution(execution_id, workflow_id, state["status"], state["created_at"])


async def list_page(
    context: RequestContext, filters: ExecutionFilter, page: Page, sort: str | None
) -> Paged[ExecutionSummary]:
    tx = context.tx
    summaries, total = await lists.list_page(tx, filters, page, sort)
    if not summaries and filters.workflow_id is not None:
        await workflows.require(tx, tenant_of(tx), filters.workflow_id)
    if not context.principal.may(_CONTENT_PERMISSION):
        for summary in summaries:
            _hide_message(summary.error)
    return paging.paged(summaries, total, page)


async def get(
    services: Services, principal: Principal, execution_id: str, wait_seconds: int
) -> FullExecution:
    """Waits up to `wait_seconds` for its end."""
    if wait_seconds:
        await _wait_for_end(services, principal, execution_id, wait_seconds)
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        view = await _find(tx, execution_id)
    return view if principal.may(_CONTENT_PERMISSION) else _hide_content(view)


async def _wait_for_end(
    services: Services, principal: Principal, execution_id: str, seconds: float
) -> None:
    """Reads only the status meanwhile: a record may have megabytes."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + seconds, 0.0
    while not await _has_ended(services, principal, execution_id):
        start = loop.time()
        if start >= deadline:
            return
        await asyncio.sleep(pause)
        wait = min(deadline - start, _POLL_SECONDS)
        await services.doorbell.wait_for_done(execution_id, wait)
        # A quick announcement may be that of the end before a retry, which stays for a while.
        pause = _PAUSE_SECONDS if loop.time() - start < _PAUSE_SECONDS else 0.0


async def _has_ended(services: Services, principal: Principal, execution_id: str) -> bool:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        state = await _find_state(tx, execution_id)
    return state["status"] in ENDED


def _hide_content(view: FullExecution) -> FullExecution:
    """Status and times remain. The content may come from tools, conversations and approvals, which
    have permissions of their own.
    """
    view.input, view.output = {}, None
    _hide_message(view.error)
    for node in view.nodes:
        node.input = node.output = None
        _hide_message(node.error)
    return view


def _hide_message(error: ExecutionError | NodeError | None) -> None:
    if error is not None:
        error.message = ""


async def _find(tx: Tx, execution_id: str) -> FullExecution:
    view = await queries.find_execution(tx, execution_id)
    if view is None:
        raise _not_found(execution_id)
    return view


async def _find_state(tx: Tx, execution_id: str) -> Row:
    row = await queries.find_execution_state(tx, execution_id)
    if row is None:
        raise _not_found(execution_id)
    return row


def _not_found(execution_id: str) -> WorkflowExecutionNotFound:
    return WorkflowExecutionNotFound(f"There is no execution {execution_id[:64]}")


async def cancel(context: RequestContext, execution_id: str) -> FullExecution:
    """Stops the execution; what its nodes have done already stays."""
    state = await _find_state(context.tx, execution_id)
    tenant_id = state["tenant_id"]
    if not await starting.cancel(context.tx, context.services, tenant_id, execution_id):
        raise InvalidState("This execution has already ended")
    return await _find(context.tx, execution_id)


async def retry(context: RequestContext, execution_id: str) -> FullExecution:
    """Continues a failed or cancelled execution: the nodes that failed or were cancelled run again,
    and completed ones keep their outputs.
    """
    tx, services = context.tx, context.services
    state = await _find_state(tx, execution_id)
    tenant_id = state["tenant_id"]
    if await queries.lock_startable(tx, tenant_id, state["workflow_id"]) is None:
        raise _not_found(execution_id)
    step = await engine.open_step(tx, services, tenant_id, execution_id)
    if step is None:
        raise _not_found(execution_id)
    execution = step.execution
    if execution.status not in _RETRYABLE:
        raise InvalidState("Only an execution that failed or was cancelled can be retried")
    await starting.check_queue(tx, tenant_id)
    node_ids = [name for name, state in execution.progress.items() if state.status in _RETRYABLE]
    for name in node_ids:
        attempt = execution.progress[name].attempt
        execution.progress[name] = NodeState("pending", None, attempt, attempt)
    progress = msgspec.json.encode(execution.progress).decode()
    await queries.reopen(tx, tenant_id, execution_id, progress, node_ids)
    await starting.start_soon(tx, services, tenant_id)
    return await _find(tx, execution_id)
