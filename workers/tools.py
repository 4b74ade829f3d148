"""Runs of tools. Each is marked before it begins, so that no other worker begins it unknowingly."""

from app.domain.tools import queries, running
from app.parts import Parts
from db.ledger import WorkRow
from db.session import Tx
from workers.runner import Job


async def run_tool(job: Job) -> None:
    tenant_id = job.row.tenant_id or ""
    async with job.checkpoint() as tx:
        row = await queries.begin(tx, tenant_id, job.ref_id)
    if row is None:
        # Over already, or deleted with its tool.
        return
    outcome = await running.run(job.parts, row)
    async with job.finish() as tx:
        await job.hold(tx)
        await queries.end(
            tx,
            tenant_id,
            job.ref_id,
            outcome.status,
            outcome.output,
            outcome.error,
            outcome.milliseconds,
        )


async def bury_tool(_parts: Parts, tx: Tx, row: WorkRow, error: str) -> None:
    failed = ("runtime_error", f"It could not be run: {error}")
    await queries.end(tx, row.tenant_id or "", row.ref_id or "", "failed", None, failed, 0)
