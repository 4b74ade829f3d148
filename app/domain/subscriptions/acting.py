"""Doing what a subscription, or an incoming webhook with a workflow, wants done about an event."""

from typing import Any

import msgspec

from app.domain.incoming import service as incoming
from app.domain.incoming.errors import IncomingWebhookNotFound
from app.domain.subscriptions import queries
from app.domain.subscriptions.actions import ACTIONS, Cause
from app.parts import Parts
from db.session import Tx


class CannotAct(Exception):
    """It makes no sense to try again; the text says why and holds no secret."""


async def act(parts: Parts, tx: Tx, tenant_id: str, ref_id: str, event_id: str) -> None:
    event = await queries.event(tx, tenant_id, event_id)
    wanted = await _wanted(tx, tenant_id, ref_id)
    if event is None or wanted is None:
        # Deleted since.
        return
    action_type, config = wanted
    action = ACTIONS[action_type]
    if action.delivers:
        raise CannotAct("the webhook that this subscription names does not exist any more")
    if action.run is None:
        raise CannotAct(f"no part of this instance runs {action_type} actions yet")
    cause = Cause(
        tenant_id,
        event["event_id"],
        event["event_type"],
        event["correlation_id"],
        event["test"],
        msgspec.json.decode(event["data"]),
    )
    await action.run(parts, tx, cause, msgspec.convert(config, action.config))


async def _wanted(tx: Tx, tenant_id: str, ref_id: str) -> tuple[str, dict[str, Any]] | None:
    if ref_id.startswith("inh_"):
        try:
            webhook = await incoming.find(tx, ref_id)
        except IncomingWebhookNotFound:
            return None
        return ("workflow", {"workflow_id": webhook.workflow_id}) if webhook.workflow_id else None
    row = await queries.action(tx, tenant_id, ref_id)
    return (row["action_type"], msgspec.json.decode(row["action_config"])) if row else None
