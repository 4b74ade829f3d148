"""SQL of schedules."""

from datetime import datetime

from db import fast
from db.fast import Row
from db.session import Tx

# By database time, so that the clocks of workers do not matter.
_LOCK_DUE = """
SELECT id, tenant_id, trigger, next_run_at FROM workflows
WHERE next_run_at <= now() AND deleted_at IS NULL AND trigger IS NOT NULL
ORDER BY next_run_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""
_SET_NEXT_RUN = "UPDATE workflows SET next_run_at = $3 WHERE tenant_id = $1 AND id = $2"


async def lock_due(tx: Tx) -> Row | None:
    """Returns the workflow that is due for the longest time."""
    row: Row | None = await (await tx.raw()).fetchrow(_LOCK_DUE)
    return row


async def set_next_run(tx: Tx, tenant: str, workflow_id: str, moment: datetime | None) -> None:
    await fast.execute(tx, tenant, _SET_NEXT_RUN, workflow_id, moment)
