"""Job function: run a tool.

Each execution is marked as running first, so that a run with side effects is not repeated.
"""

from app.domain.job import Job
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import execute, executions, queries


async def run_tool(job: Job) -> None:
    async with job.checkpoint() as tx:
        row = await queries.start_execution(tx, job.tenant_id, job.ref_id)
    if row is None:
        # Finished already, or deleted with its tool.
        return
    outcome = await execute.execute_tool(job.services, row)
    async with job.finish() as tx:
        await job.hold(tx)
        await queries.finish_execution(
            tx,
            job.tenant_id,
            job.ref_id,
            outcome.status,
            outcome.output,
            outcome.error,
            outcome.milliseconds,
        )
        await executions.report_end(
            tx, job.services, job.tenant_id, row["call_id"], outcome.output, outcome.error
        )


async def report_deleted(job: Job) -> None:
    """Tells the caller of a run whose tool was deleted before it ended."""
    error = ("tool_deleted", "the tool was deleted while it ran")
    async with job.finish_first() as tx:
        await executions.report_end(tx, job.services, job.tenant_id, job.ref_id, None, error)


async def on_dead_tool(services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    failed = ("runtime_error", f"It could not be run: {error}")
    tenant_id, execution_id = row.tenant_id or "", row.ref_id or ""
    await queries.finish_execution(tx, tenant_id, execution_id, "failed", None, failed, 0)
    execution = await queries.find_execution(tx, tenant_id, execution_id)
    if execution is not None:
        await executions.report_end(tx, services, tenant_id, execution["call_id"], None, failed)
