"""Runs the action of a subscription."""

from typing import Any

import msgspec

from app.domain.platform.events import api as events
from app.services import Services
from app.templating.expressions import ExpressionProblem, Expressions
from db.session import Tx

from . import queries
from .actions import ACTIONS, Action, Cause
from .errors import CannotRunAction


class TriggeredAction(msgspec.Struct, frozen=True):
    """An action with its config, and the event that triggers it."""

    action: Action
    config: Any
    cause: Cause


async def load_action(tx: Tx, tenant_id: str, ref_id: str, event_id: str) -> TriggeredAction | None:
    """Returns None when the event or the subscription was deleted. Raises CannotRunAction."""
    event = await events.find_event(tx, tenant_id, event_id)
    row = await queries.find_action(tx, tenant_id, ref_id)
    if event is None or row is None:
        return None
    action = ACTIONS[row["action_type"]]
    if action.run is None:
        raise CannotRunAction("the webhook that this subscription names no longer exists")
    cause = Cause(
        tenant_id,
        ref_id,
        event["event_id"],
        event["event_type"],
        event["correlation_id"],
        event["test"],
        msgspec.Raw(event["data"]),
    )
    return TriggeredAction(
        action, msgspec.json.decode(row["action_config"], type=action.config), cause
    )


async def render_action(services: Services, triggered: TriggeredAction) -> TriggeredAction:
    """Returns the action with its templates rendered, in another process: call it while no
    transaction is open. Raises CannotRunAction.
    """
    render, cause = triggered.action.render, triggered.cause
    if render is None:
        return triggered
    try:
        config = await render(services.get(Expressions), cause, triggered.config)
    except ExpressionProblem as problem:
        where = f"{problem.path}: " if problem.path else ""
        raise CannotRunAction(f"{where}{problem.message}") from problem
    return msgspec.structs.replace(triggered, config=config)


async def run_action(services: Services, tx: Tx, triggered: TriggeredAction) -> None:
    if triggered.action.run is not None:
        await triggered.action.run(services, tx, triggered.cause, triggered.config)
