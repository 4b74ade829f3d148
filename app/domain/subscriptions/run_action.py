"""Runs the action of a subscription."""

from typing import Any

import msgspec

from app.domain.events import service as events
from app.domain.subscriptions import queries
from app.domain.subscriptions.actions import ACTIONS, Cause
from app.domain.subscriptions.errors import CannotRunAction
from app.services import Services
from db.session import Tx


async def run_action(
    services: Services, tx: Tx, tenant_id: str, ref_id: str, event_id: str
) -> None:
    event = await events.find_event(tx, tenant_id, event_id)
    configured = await _find_action(tx, tenant_id, ref_id)
    if event is None or configured is None:
        # The event or the subscription was deleted.
        return
    action_type, config = configured
    action = ACTIONS[action_type]
    if action.run is None:
        raise CannotRunAction("the webhook that this subscription names does not exist any more")
    cause = Cause(
        tenant_id,
        ref_id,
        event["event_id"],
        event["event_type"],
        event["correlation_id"],
        event["test"],
        msgspec.json.decode(event["data"]),
    )
    await action.run(services, tx, cause, msgspec.convert(config, action.config))


async def _find_action(tx: Tx, tenant_id: str, ref_id: str) -> tuple[str, dict[str, Any]] | None:
    """Returns the type and the config of an action."""
    row = await queries.find_action(tx, tenant_id, ref_id)
    return (row["action_type"], msgspec.json.decode(row["action_config"])) if row else None
