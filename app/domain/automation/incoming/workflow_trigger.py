"""Starts the workflow of a webhook for a received payload."""

from typing import Any

import msgspec

from app.domain.automation.workflows import api as workflows
from app.domain.automation.workflows.errors import WorkflowNotFound, WorkflowNotPublished
from app.kit import logs
from app.kit.errors import Invalid
from app.services import Services
from db.fast import Row
from db.session import Tx

log = logs.get("incoming")


async def start_workflow(
    tx: Tx, services: Services, webhook: Row | dict[str, Any], event_id: str, content: Any
) -> str | None:
    """Returns the id of the execution. None when the workflow cannot be started: the payload is
    stored all the same, and can be replayed. Raises TooManyPendingExecutions: the payload is then
    refused, and its sender tries again.
    """
    payload = msgspec.json.decode(content) if isinstance(content, msgspec.Raw) else content
    try:
        return await workflows.accept(
            tx,
            services,
            workflows.NewExecution(
                tenant_id=webhook["tenant_id"],
                workflow_id=webhook["workflow_id"],
                input={"payload": payload, "event_id": event_id},
                trigger_type="webhook",
                trigger_id=webhook["id"],
                dedupe_key=event_id,
                cause_event_id=event_id,
            ),
        )
    except (WorkflowNotFound, WorkflowNotPublished, Invalid) as error:
        log.warning(
            "a payload started no workflow",
            workflow_id=webhook["workflow_id"],
            event_id=event_id,
            reason=error.message,
        )
        return None
