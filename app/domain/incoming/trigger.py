"""What a received payload sets going: the workflow that its webhook is linked to."""

from app.kit import work
from app.parts import Parts
from db.session import Tx


async def begin(
    parts: Parts, tx: Tx, tenant_id: str, webhook_id: str, workflow_id: str | None, event_id: str
) -> str | None:
    """The id of the workflow's execution, once there is one. The area of workflows starts it right
    here; until then the wish is kept as work, which ends `dead` and says why.
    """
    if workflow_id is not None:
        await work.accept(
            tx,
            parts.doorbell,
            "events.act",
            tenant_id=tenant_id,
            ref_id=webhook_id,
            dedupe_key=f"{webhook_id}:{event_id}",
            cause_event_id=event_id,
        )
    return None
