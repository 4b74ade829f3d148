"""Job functions: run the nodes of workflows, start executions, and stop what they wait for."""

from app.domain.job import Job, Postpone, Retry
from app.kit.errors import ApiError, Unavailable
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import queries, running, starting
from .errors import PERMANENT
from .nodes.protocol import Failed
from .running import NodeAttempt

_BATCH = 100


async def run_node(job: Job) -> None:
    """Runs one attempt of a node. Its effect, its outcome and what comes next are one transaction,
    which ends this work as well.
    """
    ref = running.parse_ref(job.ref_id)
    if ref.is_timer:
        async with job.finish_first() as tx:
            await running.end_wait(tx, job.services, job.tenant_id, ref)
        return
    async with job.read() as tx:
        row = await running.load(tx, job.tenant_id, ref.row_id)
        if row is None:
            # Deleted with its workflow.
            return
        graph = await running.load_graph(tx, job.services, job.tenant_id, row)
    try:
        attempt = await running.prepare(job.services, graph, row, ref.number, job.tenant_id)
    except Unavailable as error:
        raise Retry(error.message) from error
    if attempt is None:
        # The execution has ended, or was retried and older work has run the node.
        return
    try:
        await running.call_server(job.services, job.tenant_id, attempt)
        async with job.finish_first() as tx:
            job.next_row = await running.run(
                tx, job.services, job.tenant_id, attempt, job.next_lease
            )
    except Unavailable as error:
        raise Retry(error.message) from error
    except ApiError as error:
        is_retryable = error.code not in PERMANENT
        await _fail(job, attempt, Failed(error.code, error.message, is_retryable))


async def _fail(job: Job, attempt: NodeAttempt, failed: Failed) -> None:
    async with job.finish_first() as tx:
        await running.fail(tx, job.services, job.tenant_id, attempt, failed)


async def on_dead_node(services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    ref = running.parse_ref(row.ref_id or "")
    await running.give_up(tx, services, row.tenant_id or "", ref, error)


async def start_executions(job: Job) -> None:
    async with job.finish_first() as tx:
        if not await starting.start_ready(tx, job.services, job.tenant_id):
            raise Postpone


async def fail_start(job: Job) -> None:
    async with job.finish_first() as tx:
        await starting.fail_start(tx, job.services, job.tenant_id, job.ref_id)


async def stop_waiting(job: Job) -> None:
    caller_id, _, ref_id = job.ref_id.partition("/")
    async with job.finish_first() as tx:
        await running.stop(tx, job.services, job.tenant_id, caller_id, ref_id)


async def cancel_executions(job: Job) -> None:
    """Cancels the executions of a deleted workflow, each in a transaction of its own."""
    while True:
        async with job.read() as tx:
            ids = await queries.list_active(tx, job.tenant_id, job.ref_id, _BATCH)
        if not ids:
            return
        for execution_id in ids:
            async with job.checkpoint() as tx:
                await starting.cancel(tx, job.services, job.tenant_id, execution_id)
