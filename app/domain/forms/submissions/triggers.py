"""Starts the workflow of a form for a submission."""

from typing import Any

from app.domain.automation.workflows import api as workflows
from app.domain.automation.workflows.errors import (
    TooManyPendingExecutions,
    WorkflowNotFound,
    WorkflowNotPublished,
)
from app.domain.forms.definition.api import LiveForm
from app.domain.platform.storage.errors import QuotaExceeded
from app.kit import logs
from app.kit.errors import Invalid
from app.services import Services
from db.session import Tx

log = logs.get("forms")


async def start_workflow(
    tx: Tx, services: Services, form: LiveForm, submission: dict[str, Any]
) -> str:
    """Returns the id of the execution, also when it was started before. Raises WorkflowNotFound,
    WorkflowNotPublished, Invalid, TooManyPendingExecutions; the transaction stays usable.
    """
    return await workflows.accept(
        tx,
        services,
        workflows.NewExecution(
            tenant_id=form.tenant_id,
            workflow_id=form.workflow_id or "",
            input={
                "form_id": form.id,
                "form_name": form.name,
                "submission_id": submission["id"],
                "version": submission["version"],
                "data": submission["data"],
                "created_at": submission["created_at"],
            },
            trigger_type="form",
            trigger_id=form.id,
            dedupe_key=submission["id"],
            cause_event_id=submission["event_id"],
        ),
    )


async def try_workflow(
    tx: Tx, services: Services, form: LiveForm, submission: dict[str, Any]
) -> str | None:
    """Returns None when it cannot start now: the worker that processes the submission tries again,
    and records why it could not.
    """
    try:
        return await start_workflow(tx, services, form, submission)
    except (
        WorkflowNotFound,
        WorkflowNotPublished,
        TooManyPendingExecutions,
        QuotaExceeded,
        Invalid,
    ) as error:
        log.warning(
            "a submission started no workflow yet",
            workflow_id=form.workflow_id,
            submission_id=submission["id"],
            reason=error.message,
        )
        return None
