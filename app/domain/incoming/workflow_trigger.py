"""Starts the workflow of a webhook for a received payload."""

from app.domain.events import service as events
from app.kit import work
from db.session import Tx


async def start_workflow(
    tx: Tx, tenant_id: str, webhook_id: str, workflow_id: str | None, event_id: str
) -> str | None:
    """Returns the id of the workflow's execution once an area runs workflows; None until then.

    Until then the accepted work ends as `dead` with the reason.
    """
    if workflow_id is not None:
        await work.accept(
            tx,
            events.RUN_ACTION,
            tenant_id=tenant_id,
            ref_id=webhook_id,
            dedupe_key=f"{webhook_id}:{event_id}",
            cause_event_id=event_id,
        )
    return None
