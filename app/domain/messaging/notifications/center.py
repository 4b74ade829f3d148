"""The notification center: a user's own notifications and preferences, and messages by hand."""

from collections.abc import Mapping

import msgspec

from app.context import RequestContext
from app.domain.identity.accounts import api as accounts
from app.domain.platform.events import api as events
from app.kit import validation
from app.kit.errors import Invalid
from app.kit.paging import Page
from app.kit.texts import as_json
from app.security.permissions import ROLES
from db.fast import tenant_of
from db.session import Tx

from . import center_queries as queries
from . import messages, preferences
from .center_queries import NotificationFilter
from .errors import NotificationNotFound
from .events import NotificationSent
from .messages import NewMessage
from .schemas import (
    MarkedRead,
    NotificationPage,
    NotificationView,
    Preferences,
    SendNotification,
    SentNotification,
    UnreadCount,
    UpdatePreferences,
)
from .types import TYPES, Recipients

_MAX_DATA_BYTES = 16 * 1024
_MAX_DEPTH = 16


async def list_page(
    tx: Tx, user_id: str, filters: NotificationFilter, page: Page
) -> NotificationPage:
    rows = await queries.list_page(tx, user_id, filters, page)
    return NotificationPage(
        rows.data,
        rows.total.count,
        rows.unread,
        page.page,
        page.per_page,
        not rows.total.is_exact,
    )


async def count_unread(tx: Tx, user_id: str) -> UnreadCount:
    return UnreadCount(await queries.count_unread(tx, user_id))


async def mark_read(tx: Tx, user_id: str, notification_id: str) -> NotificationView:
    await queries.mark_read(tx, user_id, notification_id)
    notification = await queries.find(tx, user_id, notification_id)
    if notification is None:
        raise NotificationNotFound(f"There is no notification {notification_id[:64]}")
    return notification


async def mark_all_read(tx: Tx, user_id: str) -> MarkedRead:
    return MarkedRead(await queries.mark_all_read(tx, user_id))


async def get_preferences(tx: Tx, tenant_id: str, user_id: str) -> Preferences:
    stored = msgspec.json.decode(await queries.find_preferences(tx, tenant_id, user_id))
    return Preferences(preferences.resolve_all(stored))


async def lock_preferences(tx: Tx, parameters: Mapping[str, str]) -> None:
    """Creates the row when there is none."""
    await queries.lock_preferences(tx, tenant_of(tx) or "", parameters["user_id"])


async def update_preferences(
    tx: Tx, tenant_id: str, user_id: str, data: UpdatePreferences
) -> Preferences:
    # Checked before the row is written.
    preferences.change({}, data.preferences)
    stored = msgspec.json.decode(await queries.lock_preferences(tx, tenant_id, user_id))
    changed = preferences.change(stored, data.preferences)
    await queries.set_preferences(tx, tenant_id, user_id, as_json(changed))
    return Preferences(preferences.resolve_all(changed))


async def send(context: RequestContext, data: SendNotification) -> SentNotification:
    """Accepts a message by hand; a worker dispatches it."""
    tx, tenant_id = context.tx, context.principal.home
    recipients = await _check(tx, tenant_id, data)
    count = await accounts.count_contacts(tx, tenant_id, recipients.user_ids, recipients.role)
    user_id = context.principal.user_id
    new = NewMessage(
        type=data.type,
        title=data.title,
        message=data.message,
        recipients=recipients,
        data=data.data or {},
        created_by=user_id,
    )
    message_id = await messages.accept(tx, tenant_id, new) or ""
    sent = NotificationSent(message_id, data.type, user_id, count)
    await events.emit(tx, sent, tenant_id=tenant_id)
    return SentNotification(message_id, count)


async def _check(tx: Tx, tenant_id: str, data: SendNotification) -> Recipients:
    if (data.user_ids is None) == (data.role is None):
        raise Invalid.field("user_ids", "send either user_ids or role, not both")
    if TYPES[data.type].internal:
        raise Invalid.field("type", f"{data.type} is sent by the platform alone")
    validation.check_size("data", data.data, _MAX_DEPTH, _MAX_DATA_BYTES)
    if data.role is not None and data.role not in ROLES:
        raise Invalid.field("role", f"must be one of {', '.join(ROLES)}")
    if data.user_ids is not None:
        unknown = await accounts.find_unknown_ids(tx, tenant_id, data.user_ids)
        Invalid.check(("user_ids", f"there is no user {user_id}") for user_id in unknown)
    return Recipients(user_ids=data.user_ids, role=data.role)
