"""Accepts messages: one row with the recipients, and the work that dispatches it to them."""

from typing import Any, Final

import msgspec

from app.domain.identity.accounts import api as accounts
from app.kit import trace
from app.kit.ids import new_id
from app.kit.texts import as_json, storable
from db.fast import Row
from db.session import Tx

from . import message_queries as queries
from .message_queries import DISPATCH
from .rules import RULES
from .types import Recipients, TypeName

MAX_TITLE_CHARS: Final = 200
MAX_MESSAGE_CHARS: Final = 10_000
# The source of messages that a rule causes.
RULE_SOURCE: Final = "rule"
_MAX_DATA_BYTES = 16 * 1024
_MAX_SHORT_BYTES = 200
# The text of a digest, once the answers that it quotes are deleted.
_DELETED_DIGEST: Final = "A part of this was deleted."


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`event_id` names the event that causes it, and `source` what the event triggered: one event
    causes one message for each source. Without an event each message stands for itself.
    """

    type: TypeName
    title: str
    message: str
    recipients: Recipients
    data: dict[str, Any] = {}
    event_id: str | None = None
    source: str | None = None
    is_mailed: bool = False
    created_by: str | None = None


async def accept(
    tx: Tx, tenant_id: str, new: NewMessage, *, is_dispatched: bool = True
) -> str | None:
    """Returns the id of the message, or None when the event has caused it already. Without
    `is_dispatched`, the caller adds the deliveries itself.
    """
    message_id, work_id = new_id("ntm"), new_id("wrk")
    current = trace.current()
    row = await queries.accept(
        tx,
        tenant_id,
        message_id,
        new.type,
        # One line, whatever the values of a template are.
        " ".join(storable(new.title).split())[:MAX_TITLE_CHARS],
        storable(new.message)[:MAX_MESSAGE_CHARS],
        as_json(new.data),
        as_json(new.recipients),
        new.event_id or message_id,
        new.source or message_id,
        current.correlation_id,
        new.is_mailed,
        work_id,
        is_dispatched,
        new.event_id or current.cause_event_id,
        new.created_by,
    )
    if row is None:
        return None
    if row["work_id"] is not None:
        tx.wake(DISPATCH.name, row["work_id"])
    return message_id


async def accept_undispatched(tx: Tx, tenant_id: str, new: NewMessage) -> Row:
    """Returns a message whose deliveries the caller adds. It must be caused by no event."""
    message_id = await accept(tx, tenant_id, new, is_dispatched=False)
    message = await queries.find(tx, tenant_id, message_id or "")
    if message is None:
        raise LookupError("the message was just written")
    return message


async def accept_for_event(tx: Tx, tenant_id: str, event: Row, data: dict[str, Any]) -> bool:
    """Notifies the users that the rule of an event names. Returns False when there is no rule, or
    nobody to notify. A test event notifies nobody: its data are an example.
    """
    rule = RULES.get(event["event_type"])
    if rule is None or event["test"]:
        return False
    recipients = rule.recipients(data)
    if recipients is None:
        return False
    fallback = rule.fallback_recipients
    if fallback is not None and not await _is_anybody_active(tx, tenant_id, recipients):
        recipients = fallback
    new = NewMessage(
        type=rule.type,
        title=rule.title(data),
        message=rule.message(data),
        recipients=recipients,
        data=_build_data(event, {key: data[key] for key in data if key not in rule.omits}),
        event_id=event["event_id"],
        source=RULE_SOURCE,
        is_mailed=rule.is_mailed,
    )
    return await accept(tx, tenant_id, new) is not None


async def delete_about(tx: Tx, tenant_id: str, event_ids: list[str]) -> None:
    """Deletes the messages that events caused, with their notifications and deliveries."""
    if event_ids:
        await queries.delete(tx, tenant_id, event_ids, [], _DELETED_DIGEST)


async def delete(tx: Tx, tenant_id: str, message_ids: list[str]) -> None:
    if message_ids:
        await queries.delete(tx, tenant_id, [], message_ids, _DELETED_DIGEST)


async def _is_anybody_active(tx: Tx, tenant_id: str, recipients: Recipients) -> bool:
    contacts = await accounts.list_contacts(
        tx,
        tenant_id,
        user_ids=recipients.user_ids,
        role=recipients.role,
        limit=1,
        super_admins=True,
    )
    return bool(contacts)


def _build_data(event: Row, data: dict[str, Any]) -> dict[str, Any]:
    """Returns the data of the event. Where they are large, the short values alone: each recipient
    reads them.
    """
    ids = {"event_id": event["event_id"], "event_type": event["event_type"]}
    if len(as_json(data)) <= _MAX_DATA_BYTES:
        return {**data, **ids}
    short = {key: value for key, value in data.items() if len(as_json(value)) <= _MAX_SHORT_BYTES}
    return {**short, **ids} if len(as_json(short)) <= _MAX_DATA_BYTES else ids
