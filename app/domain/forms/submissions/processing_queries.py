"""SQL of the work that follows a submission."""

from app.kit.texts import as_json
from db import fast
from db.fast import Row
from db.session import Tx

_LOAD = """
SELECT s.id, s.form_id, s.version, s.status, s.data, s.source, s.created_at, s.row_id,
       s.workflow_execution_id, s.errors, s.processed_at
FROM form_submissions s WHERE s.tenant_id = $1 AND s.id = $2 FOR UPDATE
"""
_FIND_FORM = "SELECT form_id, version FROM form_submissions WHERE tenant_id = $1 AND id = $2"
_FINISH = """
UPDATE form_submissions
SET status = CASE WHEN status = 'received' THEN 'processed' ELSE status END, processed_at = now(),
    row_id = $3, workflow_execution_id = $4, errors = $5::json
WHERE tenant_id = $1 AND id = $2
"""
_SET_ERRORS = "UPDATE form_submissions SET errors = $3::json WHERE tenant_id = $1 AND id = $2"


async def find_form(tx: Tx, tenant: str, submission_id: str) -> Row | None:
    """Returns the id and the version of the form."""
    return await fast.row(tx, tenant, _FIND_FORM, submission_id)


async def load(tx: Tx, tenant: str, submission_id: str) -> Row | None:
    """Locks the submission."""
    return await fast.row(tx, tenant, _LOAD, submission_id)


async def finish(
    tx: Tx,
    tenant: str,
    submission_id: str,
    row_id: str | None,
    execution_id: str | None,
    errors: list[dict[str, str]],
) -> None:
    await fast.execute(tx, tenant, _FINISH, submission_id, row_id, execution_id, as_json(errors))


async def set_errors(tx: Tx, tenant: str, submission_id: str, errors: list[dict[str, str]]) -> None:
    await fast.execute(tx, tenant, _SET_ERRORS, submission_id, as_json(errors))
