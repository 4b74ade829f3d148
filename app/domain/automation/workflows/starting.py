"""Accepts executions, starts them within the limits of the tenant's plan, and cancels them.

All triggers go through `accept`. An execution that may not run yet waits as a row, in the order of
acceptance.
"""

from typing import Any

import msgspec

from app.domain.identity.tenants import api as tenants
from app.domain.platform.storage import api as storage
from app.jobs import work
from app.kit import logs, trace
from app.kit.errors import ApiError, Invalid, RateLimited
from app.kit.ids import new_id
from app.kit.texts import as_json, is_deeper
from app.security.plans import MINUTE, plan_of
from app.services import Services
from db import fast
from db.session import ALL_TENANTS, Tx

from . import engine, queries
from . import execution_queries as locks
from .engine import Step
from .errors import TooManyPendingExecutions, WorkflowNotFound, WorkflowNotPublished
from .execution_events import chain_of
from .execution_queries import Execution
from .schemas import TriggerType
from .versions import Graphs
from .work_kinds import FAIL_START, START

log = logs.get("workflows")

# More than a payload that an incoming webhook accepts, which is a field of the input.
_MAX_INPUT_BYTES = 2 * 1024 * 1024
_MAX_DEPTH = 72
# How many executions one transaction starts; few where a caller waits for it.
_MAX_STARTS = 20
_MAX_STARTS_OF_CALLER = 5
_MAX_TENANTS = 100
_UNLIMITED = 1_000_000


class NewExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Triggers start the published version; `version` is for a start by hand. A second execution
    with the same `dedupe_key` is not stored. `cause_event_id` is that of the current trace when it
    is None.
    """

    tenant_id: str
    workflow_id: str
    input: dict[str, Any]
    trigger_type: TriggerType
    trigger_id: str | None = None
    version: int | None = None
    started_by: str | None = None
    caller_id: str | None = None
    depth: int = 0
    dedupe_key: str | None = None
    # The event that starts it, unless that is the cause of the caller's own work.
    cause_event_id: str | None = None


async def accept(tx: Tx, services: Services, new: NewExecution) -> str:
    """Stores an execution in the caller's transaction and starts it unless the tenant's limits are
    reached. Returns its id, or that of an earlier execution with the same `dedupe_key`. Raises
    TooManyPendingExecutions when too many are pending, and QuotaExceeded when the tenant stores too
    much; a node that calls a workflow fails with that error, and may have retries.
    """
    workflow = await queries.lock_startable(tx, new.tenant_id, new.workflow_id)
    if workflow is None:
        raise WorkflowNotFound(f"There is no workflow {new.workflow_id[:64]}")
    version = new.version or workflow["published_version"]
    if version is None:
        raise WorkflowNotPublished(
            f"The workflow {workflow['name']} is not published; publish it, so that triggers can"
            " start it"
        )
    # One that a node calls counts as well: workflows that call each other several times each would
    # fill the database.
    if await queries.is_queue_full(tx, new.tenant_id):
        earlier_id = await queries.find_by_dedupe_key(tx, new.tenant_id, new.dedupe_key)
        if earlier_id is None:
            raise _build_queue_full()
        return earlier_id
    await storage.require_space(services, new.tenant_id, tx)
    execution_id = new_id("wfx")
    stored_id = await _insert(tx, new, execution_id, version)
    if stored_id != execution_id:
        return stored_id
    await start_soon(tx, services, new.tenant_id)
    return execution_id


async def start_soon(tx: Tx, services: Services, tenant_id: str) -> None:
    """Starts what may start now, or lets a worker do it while another transaction does so: a caller
    does not wait, because many of them would hold all connections.
    """
    if await queries.try_lock_queue(tx, tenant_id):
        await _start_ready(tx, services, tenant_id, _MAX_STARTS_OF_CALLER)
    else:
        await work.accept(tx, START, tenant_id=tenant_id)


async def _insert(tx: Tx, new: NewExecution, execution_id: str, version: int) -> str:
    """Returns the id of an earlier execution with the same `dedupe_key`, if there is one."""
    current = trace.current()
    return await queries.insert_execution(
        tx,
        new.tenant_id,
        execution_id,
        new.workflow_id,
        version,
        encode_input(new.input),
        new.trigger_type,
        new.trigger_id,
        new.started_by,
        new.caller_id,
        new.depth,
        new.dedupe_key,
        current.correlation_id,
        new.cause_event_id or current.cause_event_id,
    )


def encode_input(value: dict[str, Any]) -> str:
    if is_deeper(value, _MAX_DEPTH):
        raise Invalid.field("input", f"is nested deeper than {_MAX_DEPTH} levels")
    text = as_json(value)
    if len(text) > _MAX_INPUT_BYTES:
        raise Invalid.field("input", f"must be at most {_MAX_INPUT_BYTES // 1024} KiB")
    return text


async def check_queue(tx: Tx, tenant_id: str) -> None:
    """Raises TooManyPendingExecutions when no more executions of the tenant may become pending."""
    if await queries.is_queue_full(tx, tenant_id):
        raise _build_queue_full()


def _build_queue_full() -> TooManyPendingExecutions:
    limit = queries.MAX_PENDING
    return TooManyPendingExecutions(
        f"{limit:,} executions are waiting to start, the most that a tenant may have; try again in"
        f" {MINUTE} seconds, or cancel some",
        # The limits of plans are per minute: then the next ones start.
        details={"limit": limit, "retry_after": MINUTE},
        headers={"Retry-After": str(MINUTE)},
    )


async def check_rate(tx: Tx, tenant_id: str) -> None:
    """Raises RateLimited when this many executions were started by hand within a minute. Those that
    triggers accept wait instead. Requests of the same moment do not see each other: what they
    accept beyond the limit waits as well.
    """
    plan = await _load_plan(tx, tenant_id)
    limit = plan.workflow_executions_per_minute
    if not limit:
        return
    row = await queries.count_manual(tx, tenant_id)
    if row["count"] >= limit:
        wait = max(1, row["wait_seconds"])
        raise RateLimited(
            f"The plan allows {limit} executions of workflows per minute; try again in {wait}"
            " seconds",
            details={"limit": limit, "window": MINUTE, "retry_after": wait},
            headers={"Retry-After": str(wait)},
        )


async def _load_plan(tx: Tx, tenant_id: str) -> Any:
    tenant = await tenants.get(tx, tenant_id)
    return plan_of(tenant.plan, msgspec.to_builtins(tenant.limits or {}))


async def start_ready(tx: Tx, services: Services, tenant_id: str) -> bool:
    """Starts the oldest waiting executions that the limits of the plan allow. False when another
    transaction does so, which may not see those that were accepted last.
    """
    if not await queries.try_lock_queue(tx, tenant_id):
        return False
    if await _start_ready(tx, services, tenant_id, _MAX_STARTS) == _MAX_STARTS:
        await work.accept(tx, START, tenant_id=tenant_id)
    return True


async def _start_ready(tx: Tx, services: Services, tenant_id: str, limit: int) -> int:
    """The caller holds the lock of the queue. Waits for no row, so that it can be called with any
    lock.
    """
    plan = await _load_plan(tx, tenant_id)
    row = await queries.count_active(tx, tenant_id)
    free_slots = min(
        (plan.concurrent_executions or _UNLIMITED) - row["running"],
        (plan.workflow_executions_per_minute or _UNLIMITED) - row["started"],
        limit,
    )
    if free_slots <= 0:
        return 0
    executions = await locks.lock_pending(tx, tenant_id, free_slots)
    for execution in executions:
        await _begin(tx, services, execution)
    return len(executions)


async def _begin(tx: Tx, services: Services, execution: Execution) -> None:
    """One that cannot begin fails, so that those behind it are not held up. A worker lets it fail:
    the node that calls it may be running in this very transaction, and waits only after it.
    """
    try:
        async with (await tx.session()).begin_nested():
            graph = await services.get(Graphs).load(
                tx, execution.tenant_id, execution.workflow_id, execution.version
            )
            with chain_of(execution):
                await Step(tx, services, execution, graph).begin()
    except Exception as error:
        if not fast.was_refused(error) and not isinstance(error, (ApiError, msgspec.DecodeError)):
            raise
        log.exception("an execution cannot begin", execution_id=execution.id)
        tenant_id = execution.tenant_id
        await queries.mark_running(tx, tenant_id, execution.id)
        await work.accept(tx, FAIL_START, tenant_id=tenant_id, ref_id=execution.id)


async def fail_start(tx: Tx, services: Services, tenant_id: str, execution_id: str) -> None:
    """Fails an execution that could not begin."""
    step = await engine.open_step(tx, services, tenant_id, execution_id)
    if step is not None and not step.has_ended:
        with chain_of(step.execution):
            await step.fail_start()


async def start_all_ready(services: Services) -> None:
    """Starts executions whose tenant has a free slot again, for example after a minute. A tenant
    whose queue another transaction looks at, or that raises, does not stop the others.
    """
    last_id: str | None = ""
    while last_id is not None:
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            tenant_ids = await queries.list_waiting_tenants(tx, last_id, _MAX_TENANTS)
        for tenant_id in tenant_ids:
            try:
                async with services.db.tx(tenant_id) as tx:
                    if await queries.try_lock_queue(tx, tenant_id):
                        await _start_ready(tx, services, tenant_id, _MAX_STARTS)
            except Exception:
                log.exception("executions were not started", tenant_id=tenant_id)
        last_id = tenant_ids[-1] if tenant_ids else None


async def cancel(tx: Tx, services: Services, tenant_id: str, execution_id: str) -> bool:
    """Returns False when the execution has ended already."""
    step = await engine.open_step(tx, services, tenant_id, execution_id)
    if step is None or step.has_ended:
        return False
    with chain_of(step.execution):
        await step.cancel()
    return True
