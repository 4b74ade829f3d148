"""Submissions as the users of the tenant read, archive and delete them."""

from app.domain.automation.workflows import api as workflows
from app.domain.forms.definition import api as definition
from app.domain.forms.definition.api import visibility
from app.domain.forms.definition.errors import InvalidFormState
from app.domain.platform.events import api as events
from app.kit import paging
from app.kit.paging import Page, Paged
from app.security.principal import Principal
from db.fast import Row
from db.session import Tx

from . import erasure
from . import submission_queries as queries
from .errors import SubmissionNotFound
from .events import SubmissionUpdated
from .submission_queries import SubmissionFilter
from .submission_schemas import SubmissionSummary, SubmissionView, SubmissionWorkflow


async def list_page(tx: Tx, filters: SubmissionFilter, page: Page) -> Paged[SubmissionSummary]:
    rows, total = await queries.list_page(tx, filters, page)
    if not rows:
        await definition.require(tx, filters.form_id)
    views = [SubmissionSummary(**queries.build_fields(row)) for row in rows]
    return paging.paged(views, total, page)


async def get(tx: Tx, principal: Principal, form_id: str, submission_id: str) -> SubmissionView:
    row = await queries.find(tx, form_id, submission_id)
    if row is None:
        await definition.require(tx, form_id)
        raise not_found(submission_id)
    fields, execution_id = queries.build_fields(row), row["workflow_execution_id"]
    execution = None
    if execution_id is not None and principal.may("workflows:read"):
        result = await workflows.find_result(tx, principal, execution_id)
        if result is not None:
            execution = SubmissionWorkflow(execution_id, result.status, result.output)
    return SubmissionView(**fields, workflow_execution=execution)


def not_found(submission_id: str) -> SubmissionNotFound:
    return SubmissionNotFound(f"This form has no submission {submission_id[:64]}")


async def set_status(
    tx: Tx, principal: Principal, form_id: str, submission_id: str, status: str
) -> SubmissionView:
    """Archives a submission, or takes it back from the archive."""
    principal.require(visibility.READ_SUBMISSIONS)
    row = await _lock(tx, form_id, submission_id)
    if status == "processed" and row["processed_at"] is None:
        raise InvalidFormState("This submission is still to be processed by a worker")
    if row["status"] != status:
        await queries.set_status(tx, row["tenant_id"], submission_id, status)
        updated = SubmissionUpdated(submission_id, form_id, row["form_name"], status, row["errors"])
        await events.emit(tx, updated, tenant_id=row["tenant_id"])
    return await get(tx, principal, form_id, submission_id)


async def delete(tx: Tx, form_id: str, submission_id: str) -> None:
    """With all that has its answers. Its files are deleted by a worker soon afterwards."""
    row = await _lock(tx, form_id, submission_id)
    await erasure.erase(tx, row["tenant_id"], [submission_id])
    await queries.delete(tx, row["tenant_id"], form_id, submission_id)


async def _lock(tx: Tx, form_id: str, submission_id: str) -> Row:
    row = await queries.lock(tx, form_id, submission_id)
    if row is None:
        await definition.require(tx, form_id)
        raise not_found(submission_id)
    return row
