"""Job function: run a tool.

Each execution is marked as running first, so that a run with side effects is not repeated.
"""

from app.domain.tools import execute, queries
from db.ledger import WorkRow
from db.session import Tx
from workers.runner import Job


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


async def on_dead_tool(tx: Tx, row: WorkRow, error: str) -> None:
    failed = ("runtime_error", f"It could not be run: {error}")
    await queries.finish_execution(
        tx, row.tenant_id or "", row.ref_id or "", "failed", None, failed, 0
    )
