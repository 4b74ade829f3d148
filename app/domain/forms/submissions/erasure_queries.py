"""SQL that deletes submissions, and what deleted forms have."""

from db import fast
from db.fast import Row
from db.session import Tx

from .work_kinds import ERASE, PROCESS

# Nothing is submitted to a deleted form, but a transaction that began before may still run.
_LIST_DELETED_FORMS = """
SELECT tenant_id, id FROM forms WHERE deleted_at < now() - interval '1 minute'
ORDER BY deleted_at LIMIT $1
"""
# Those that a worker processes are left to the next batch.
_LOCK_SUBMISSIONS = """
SELECT id FROM form_submissions WHERE tenant_id = $1 AND form_id = $2
ORDER BY created_at, id LIMIT $3 FOR UPDATE SKIP LOCKED
"""
# Their files are deleted soon.
_DELETE_SUBMISSIONS = """
WITH deleted AS (
    DELETE FROM form_submissions WHERE tenant_id = $1 AND id = ANY($2) RETURNING id
)
UPDATE form_uploads SET expires_at = now()
WHERE tenant_id = $1 AND submission_id IN (SELECT id FROM deleted)
"""
_BATCH = """
DELETE FROM {table} WHERE tenant_id = $1 AND id = ANY(ARRAY(
    SELECT id FROM {table} WHERE tenant_id = $1 AND form_id = $2 LIMIT $3 FOR UPDATE SKIP LOCKED))
"""
# With their messages.
_DELETE_CONVERSATIONS = _BATCH.format(table="form_conversations")
_DELETE_DRAFTS = _BATCH.format(table="form_drafts")
# Work that reads an event when it begins may still add what it has read. Neither the processing of
# a submission, which is locked, nor deliveries do.
_FIND_RUNNING = f"""
SELECT DISTINCT cause_event_id FROM work
WHERE cause_event_id = ANY($2) AND tenant_id = $1 AND state = 'leased' AND lane IS NULL
  AND kind NOT IN ('{PROCESS.name}', '{ERASE.name}')
"""


async def list_deleted_forms(tx: Tx, limit: int) -> list[Row]:
    return list(await (await tx.raw()).fetch(_LIST_DELETED_FORMS, limit))


async def lock_submissions(tx: Tx, tenant: str, form_id: str, limit: int) -> list[str]:
    return [row["id"] for row in await fast.rows(tx, tenant, _LOCK_SUBMISSIONS, form_id, limit)]


async def delete_submissions(tx: Tx, tenant: str, submission_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _DELETE_SUBMISSIONS, submission_ids)


async def delete_conversations(tx: Tx, tenant: str, form_id: str, limit: int) -> int:
    """Also the drafts. Returns how many rows were deleted of either, the larger number."""
    count = await fast.execute(tx, tenant, _DELETE_CONVERSATIONS, form_id, limit)
    return max(count, await fast.execute(tx, tenant, _DELETE_DRAFTS, form_id, limit))


async def find_running(tx: Tx, tenant: str, event_ids: list[str]) -> set[str]:
    """Returns those of the events that a worker acts on now."""
    rows = await fast.rows(tx, tenant, _FIND_RUNNING, event_ids)
    return {row["cause_event_id"] for row in rows}
