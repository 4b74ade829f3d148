"""The part of the ledger that is written by people: retries and dismissals of dead work."""

from db import fast
from db.session import Tx

# The poller puts it on its queue within a second.
_RESTART = """
UPDATE work SET state = 'pending', attempt = 0, run_at = now(), dispatched_at = NULL,
                finished_at = NULL, lease_token = NULL, lease_until = NULL
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = ANY($2) AND state = 'dead'
"""
# Its dedupe key stays, so that nothing accepts it a second time.
_DISMISS = """
UPDATE work SET state = 'cancelled'
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = ANY($2) AND state = 'dead'
"""


async def restart(tx: Tx, tenant: str | None, work_ids: list[str]) -> None:
    """The caller has locked the rows."""
    await fast.execute(tx, tenant, _RESTART, work_ids)


async def dismiss(tx: Tx, tenant: str | None, work_ids: list[str]) -> None:
    """Takes dead work off the list, for which other work was accepted or nothing waits."""
    await fast.execute(tx, tenant, _DISMISS, work_ids)
