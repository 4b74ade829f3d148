"""Which events users are notified of without a subscription, and who gets each of them.

This is the one table of recipients. An event that has a row here is always fanned out:
`NOTIFIED_TYPES` of the events area lists the same types.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from app.domain.messaging.notifications.recipients import Recipients
from app.domain.messaging.notifications.types import TYPES, TypeName
from app.domain.platform.events.api import NOTIFIED_TYPES

# Returns the recipients that the data of an event name, or None when there are none.
FindRecipients = Callable[[dict[str, Any]], Recipients | None]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`title` and `message` are templates over `event`. With `is_mailed`, the area of the event
    sends its own mail, which cannot be switched off; no second one is sent. `substitutes` get it
    when no recipient is an active user. The notification has the event's data, without the keys in
    `omits`.
    """

    event_type: str
    type: TypeName
    recipients: FindRecipients
    title: str
    message: str
    is_mailed: bool = False
    substitutes: Recipients | None = None
    omits: tuple[str, ...] = ()


_ADMINS: Final = Recipients(role="tenant_admin")


def _user(*keys: str) -> FindRecipients:
    """The user whose id is in the first of these keys that has one."""

    def find(data: dict[str, Any]) -> Recipients | None:
        ids = [data[key] for key in keys if isinstance(data.get(key), str) and data[key]]
        return Recipients(user_ids=ids[:1]) if ids else None

    return find


def _user_or_admins(key: str) -> FindRecipients:
    """The user whose id is in this key, or else the administrators of the tenant."""

    def find(data: dict[str, Any]) -> Recipients | None:
        return _user(key)(data) or _ADMINS

    return find


def _user_unless_called(*keys: str) -> FindRecipients:
    """Like `_user`; nobody when a node of another execution waits for this one, whose end is
    reported instead.
    """

    def find(data: dict[str, Any]) -> Recipients | None:
        return None if data.get("trigger") == "workflow" else _user(*keys)(data)

    return find


def _users_or_role(data: dict[str, Any]) -> Recipients | None:
    """The users in `user_ids`, or those with the role in `role`."""
    user_ids, role = data.get("user_ids"), data.get("role")
    if isinstance(user_ids, list) and user_ids:
        return Recipients(user_ids=[item for item in user_ids if isinstance(item, str)])
    return Recipients(role=role) if isinstance(role, str) and role else None


def _security(event_type: str, message: str, *, is_mailed: bool = True) -> Rule:
    """Something happened to the account of the user in `user_id`."""
    return Rule(
        event_type=event_type,
        type="security",
        recipients=_user("user_id"),
        title="Your account changed",
        message=f"{message} If this was not you, reset your password and tell your administrator.",
        is_mailed=is_mailed,
    )


RULES: Final[dict[str, Rule]] = {
    rule.event_type: rule
    for rule in (
        Rule(
            event_type="form.submission.created",
            type="form_submission",
            # Who created the form.
            recipients=_user("owner_id"),
            title="New submission: {{ event.data.form_name }}",
            message="The form {{ event.data.form_name }} was submitted.",
            # The answers are read where they are stored, and deleted there.
            omits=("data",),
        ),
        Rule(
            event_type="workflow.execution.completed",
            type="workflow_completed",
            # Who started it by hand; nobody where a trigger did.
            recipients=_user("started_by"),
            title="Workflow completed: {{ event.data.workflow_name }}",
            message="The workflow {{ event.data.workflow_name }} that you started is completed.",
        ),
        Rule(
            event_type="workflow.execution.failed",
            type="workflow_failed",
            # Who started it by hand, or else who created the workflow.
            recipients=_user_unless_called("started_by", "owner_id"),
            title="Workflow failed: {{ event.data.workflow_name }}",
            message="The workflow {{ event.data.workflow_name }} failed: "
            "{{ event.data.error | default('no reason is known') }}",
        ),
        Rule(
            event_type="approval.requested",
            type="approval_requested",
            # Who may decide.
            recipients=_users_or_role,
            title="Your decision is needed: {{ event.data.title }}",
            message="{{ event.data.message | default('Somebody waits for your decision.') }}",
        ),
        Rule(
            event_type="system.webhook.disabled",
            type="webhook_disabled",
            # Who created the webhook, or else the administrators.
            recipients=_user_or_admins("owner_id"),
            substitutes=_ADMINS,
            title="A webhook was disabled: {{ event.data.url }}",
            message="{% if event.data.subscription_id %}The subscription "
            "{{ event.data.subscription_id }}{% else %}The webhook {{ event.data.webhook_id }}"
            "{% endif %} delivers no more events to {{ event.data.url }}. "
            "{% if event.data.reason == 'gone' %}The endpoint answered 410 Gone, which says that "
            "it wants no more deliveries.{% else %}Every delivery to it has failed for five days."
            "{% endif %}\n\nOnce the endpoint works again, set `active` to true; what could not be "
            "delivered can then be delivered again.",
        ),
        Rule(
            event_type="system.credential.invalid",
            type="credential_invalid",
            # The administrators.
            recipients=lambda _data: _ADMINS,
            title="A credential no longer works: {{ event.data.name }}",
            message="The credential {{ event.data.name }} was refused: {{ event.data.reason }}. "
            "Tools that use it fail until its secrets are replaced.",
        ),
        Rule(
            event_type="system.storage.warning",
            type="storage_quota",
            # The administrators.
            recipients=lambda _data: _ADMINS,
            title="{{ event.data.percent }} percent of the storage quota are used",
            message="{% if event.data.percent == 100 %}Nothing more is stored until something is "
            "deleted; chats and sign-ins still work.{% else %}When all of it is used, nothing more "
            "is stored.{% endif %} Most is taken by {{ event.data.largest }}. GET /api/v1/usage "
            "shows what takes how much.",
        ),
        _security("system.user.password_changed", "Your password was changed."),
        _security("system.user.mfa_enabled", "An authenticator was added."),
        _security("system.user.mfa_device_added", "An authenticator was added."),
        _security("system.user.mfa_device_removed", "An authenticator was removed."),
        _security("system.user.mfa_disabled", "Multi-factor authentication was turned off."),
        _security("system.user.mfa_reset", "An administrator removed your authenticators."),
        _security("system.user.recovery_codes_replaced", "New recovery codes were made."),
        _security("system.user.recovery_code_used", "A recovery code was used.", is_mailed=False),
        _security(
            "system.user.sign_in_blocked",
            "Sign-ins to your account were blocked after too many wrong attempts.",
            is_mailed=False,
        ),
    )
}


def type_of(event_type: str) -> TypeName:
    """Returns the notification type of a message about an event."""
    rule = RULES.get(event_type)
    return rule.type if rule is not None and not TYPES[rule.type].internal else "message"


if set(RULES) != set(NOTIFIED_TYPES):
    raise RuntimeError("the rules and NOTIFIED_TYPES name different events")
