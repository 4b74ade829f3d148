"""What a worker does with a submission: a row in the data table, the workflow, a mail.

All of it is one transaction, so that a worker that is killed has done all or nothing. What cannot
succeed is recorded in the submission's `errors`; what may succeed later is tried again.
"""

from typing import Any

import msgspec

from app.domain.automation.workflows.errors import TooManyPendingExecutions
from app.domain.data.tables import api as tables
from app.domain.forms.definition.api import FormDefinition, LiveForm, live
from app.domain.forms.definition.errors import FormNotFound
from app.domain.platform.events import api as events
from app.kit.errors import ApiError, Unavailable
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import file_links, processing_queries, row_values, submission_mails, triggers
from .events import SubmissionUpdated

_MAX_MESSAGE_CHARS = 500


class Submission(msgspec.Struct):
    """A submission while it is processed."""

    id: str
    form_id: str
    version: int
    status: str
    data: dict[str, Any]
    row_id: str | None
    workflow_execution_id: str | None
    errors: list[dict[str, str]]
    row: Row

    def add_error(self, step: str, message: str) -> None:
        self.errors.append({"step": step, "message": message[:_MAX_MESSAGE_CHARS]})


class Prepared(msgspec.Struct, frozen=True):
    """What is read before the transaction."""

    form: LiveForm
    definition: FormDefinition


async def prepare(
    services: Services, tenant_id: str, submission_id: str, event_id: str | None
) -> Prepared | None:
    """Returns None when the submission or its form was deleted. Wakes a worker for the event of the
    submission, so that the visitor did not have to wait for that.
    """
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        if event_id is not None:
            events.wake_for(tx, event_id)
        row = await processing_queries.find_form(tx, tenant_id, submission_id)
        if row is None:
            return None
        try:
            form = await live.find(tx, tenant_id, row["form_id"])
        except FormNotFound:
            return None
    return Prepared(form, await live.load_definition(services, form, row["version"]))


async def process(
    tx: Tx,
    services: Services,
    prepared: Prepared,
    submission_id: str,
    event_id: str | None,
    *,
    is_last_attempt: bool = False,
) -> None:
    """Does nothing once it is done. Raises TooManyPendingExecutions and Unavailable, which pass;
    the last attempt records that the workflow did not start, and does the rest.
    """
    form = prepared.form
    row = await processing_queries.load(tx, form.tenant_id, submission_id)
    if row is None or row["processed_at"] is not None:
        return
    names = [field for field in Submission.__struct_fields__ if field != "row"]
    submission = Submission(**{name: row[name] for name in names}, row=row)
    submission.errors = []
    await _save_row(tx, services, prepared, submission)
    try:
        await _start_workflow(tx, services, form, submission, event_id)
    except TooManyPendingExecutions as error:
        if not is_last_attempt:
            raise
        submission.add_error("workflow", error.message)
    await submission_mails.send(
        tx, services, form, prepared.definition, submission.row, submission.data
    )
    await processing_queries.finish(
        tx,
        form.tenant_id,
        submission.id,
        submission.row_id,
        submission.workflow_execution_id,
        submission.errors,
    )
    status = "processed" if submission.status == "received" else submission.status
    updated = SubmissionUpdated(submission.id, form.id, form.name, status, submission.errors)
    await events.emit(tx, updated, tenant_id=form.tenant_id)


async def _save_row(tx: Tx, services: Services, prepared: Prepared, submission: Submission) -> None:
    """A second attempt finds the row of the first."""
    form, config = prepared.form, prepared.form.data_table_config
    if config is None or not config.auto_save or submission.row_id is not None:
        return
    tenant_id, table_id = form.tenant_id, config.table_id
    try:
        table = await tables.load_table(tx, tenant_id, table_id)
        files_url = file_links.build_files_url(services, form.id)
        answers = file_links.link_pictures(prepared.definition, submission.data, files_url)
        values = row_values.build(table, prepared.definition, config.field_mapping, answers)
        row = await tables.insert_row(tx, tenant_id, table_id, values, source=submission.id)
    except Unavailable:
        raise
    except ApiError as error:
        submission.add_error("data_table", error.message)
    else:
        submission.row_id = row.id


async def _start_workflow(
    tx: Tx, services: Services, form: LiveForm, submission: Submission, event_id: str | None
) -> None:
    if form.workflow_id is None or submission.workflow_execution_id is not None:
        return
    fields = {
        "id": submission.id,
        "version": submission.version,
        "data": submission.data,
        "created_at": submission.row["created_at"],
        "event_id": event_id,
    }
    try:
        execution_id = await triggers.start_workflow(tx, services, form, fields)
    except TooManyPendingExecutions:
        raise
    except ApiError as error:
        submission.add_error("workflow", error.message)
    else:
        submission.workflow_execution_id = execution_id


async def give_up(tx: Tx, tenant_id: str, submission_id: str, reason: str) -> None:
    """Records why a submission could not be processed; it stays `received`."""
    row = await processing_queries.load(tx, tenant_id, submission_id)
    if row is not None:
        error = {"step": "processing", "message": reason[:_MAX_MESSAGE_CHARS]}
        await processing_queries.set_errors(tx, tenant_id, submission_id, [*row["errors"], error])


async def wait_again(tx: Tx, tenant_id: str, submission_id: str) -> bool:
    """Forgets that processing was given up. False for a submission that does not wait for it."""
    row = await processing_queries.load(tx, tenant_id, submission_id)
    if row is None or row["status"] != "received":
        return False
    errors = [error for error in row["errors"] if error["step"] != "processing"]
    await processing_queries.set_errors(tx, tenant_id, submission_id, errors)
    return True
