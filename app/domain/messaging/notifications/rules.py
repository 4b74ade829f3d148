"""Which events users are notified of without a subscription, and who gets each of them.

This is the one table of recipients. An event that has a row here is always fanned out:
`NOTIFIED_TYPES` of the events area lists the same types.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from app.domain.platform.events.api import NOTIFIED_TYPES

from .types import TYPES, Recipients, TypeName

# Returns the recipients that the data of an event name, or None when there are none.
FindRecipients = Callable[[dict[str, Any]], Recipients | None]
# Returns a text about an event, from its data.
Write = Callable[[dict[str, Any]], str]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """With `is_mailed`, the area of the event sends its own mail, which cannot be switched off; no
    second one is sent. `fallback_recipients` get it when no recipient is an active user. The
    notification has the event's data, without the keys in `omits`.
    """

    event_type: str
    type: TypeName
    recipients: FindRecipients
    title: Write
    message: Write
    is_mailed: bool = False
    fallback_recipients: Recipients | None = None
    omits: tuple[str, ...] = ()


_ADMINS: Final = Recipients(role="tenant_admin")
_FULL_PERCENT = 100


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


def _text(data: dict[str, Any], key: str, default: str = "") -> str:
    """Returns `default` for a value that is missing or null."""
    value = data.get(key)
    return default if value is None else str(value)


def _describe_disabled_webhook(data: dict[str, Any]) -> str:
    if data.get("subscription_id"):
        source = f"The subscription {_text(data, 'subscription_id')}"
    else:
        source = f"The webhook {_text(data, 'webhook_id')}"
    if data.get("reason") == "gone":
        reason = "The endpoint answered 410 Gone, which says that it wants no more deliveries."
    else:
        reason = "Every delivery to it has failed for five days."
    return (
        f"{source} delivers no more events to {_text(data, 'url')}. {reason}\n\n"
        "Once the endpoint works again, set `active` to true; what could not be delivered can then "
        "be delivered again."
    )


def _describe_used_storage(data: dict[str, Any]) -> str:
    if data.get("percent") == _FULL_PERCENT:
        effect = (
            "Nothing more can be stored until something is deleted; chats and sign-ins still work."
        )
    else:
        effect = "When all of it is used, nothing more can be stored."
    return (
        f"{effect} Most of it is used by {_text(data, 'largest')}. GET /api/v1/usage shows the "
        "bytes of each kind."
    )


def _describe_found_changes(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{_text(data, key, '0')} {key}" for key in ("added", "changed", "removed"))
    if data.get("reason") == "mass_removal":
        reason = "More than half of the documents of this source are gone"
    else:
        reason = "This source is reviewed"
    return f"{reason}: {counts}. Nothing changes before somebody applies the changes."


def _security(event_type: str, message: str, *, is_mailed: bool = True) -> Rule:
    """Something happened to the account of the user in `user_id`."""
    advice = "If this was not you, reset your password and tell your administrator."
    return Rule(
        event_type=event_type,
        type="security",
        recipients=_user("user_id"),
        title=lambda _data: "Your account changed",
        message=lambda _data: f"{message} {advice}",
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
            title=lambda data: f"New submission: {_text(data, 'form_name')}",
            message=lambda data: f"The form {_text(data, 'form_name')} was submitted.",
            # The answers are read where they are stored, and deleted there.
            omits=("data",),
        ),
        Rule(
            event_type="workflow.execution.completed",
            type="workflow_completed",
            # Who started it by hand; nobody where a trigger did.
            recipients=_user("started_by"),
            title=lambda data: f"Workflow completed: {_text(data, 'workflow_name')}",
            message=lambda data: (
                f"The workflow {_text(data, 'workflow_name')} that you started is completed."
            ),
        ),
        Rule(
            event_type="workflow.execution.failed",
            type="workflow_failed",
            # Who started it by hand, or else who created the workflow.
            recipients=_user_unless_called("started_by", "owner_id"),
            title=lambda data: f"Workflow failed: {_text(data, 'workflow_name')}",
            message=lambda data: (
                f"The workflow {_text(data, 'workflow_name')} failed: "
                f"{_text(data, 'error', 'no reason is known')}"
            ),
        ),
        Rule(
            event_type="approval.requested",
            type="approval_requested",
            # Who may decide.
            recipients=_users_or_role,
            title=lambda data: f"Your decision is needed: {_text(data, 'title')}",
            message=lambda data: _text(data, "message", "Somebody is waiting for your decision."),
        ),
        Rule(
            event_type="system.webhook.disabled",
            type="webhook_disabled",
            # Who created the webhook, or else the administrators.
            recipients=_user_or_admins("owner_id"),
            fallback_recipients=_ADMINS,
            title=lambda data: f"A webhook was disabled: {_text(data, 'url')}",
            message=_describe_disabled_webhook,
        ),
        Rule(
            event_type="system.credential.invalid",
            type="credential_invalid",
            # The administrators.
            recipients=lambda _data: _ADMINS,
            title=lambda data: f"A credential no longer works: {_text(data, 'name')}",
            message=lambda data: (
                f"The credential {_text(data, 'name')} was refused: {_text(data, 'reason')}. "
                "Tools that use it fail until its secrets are replaced."
            ),
        ),
        Rule(
            event_type="system.source.changes_found",
            type="document_source",
            # Who created the source, or else the administrators.
            recipients=_user_or_admins("owner_id"),
            fallback_recipients=_ADMINS,
            title=lambda data: f"Changes to review: {_text(data, 'name')}",
            message=_describe_found_changes,
        ),
        Rule(
            event_type="system.source.failed",
            type="document_source",
            # Who created the source, or else the administrators.
            recipients=_user_or_admins("owner_id"),
            fallback_recipients=_ADMINS,
            title=lambda data: f"A source of documents fails: {_text(data, 'name')}",
            message=lambda data: (
                f"{_text(data, 'error', 'No reason is known')}. Its documents stay as they are."
            ),
        ),
        Rule(
            event_type="system.storage.warning",
            type="storage_quota",
            # The administrators.
            recipients=lambda _data: _ADMINS,
            title=lambda data: f"{_text(data, 'percent')} percent of the storage quota is used",
            message=_describe_used_storage,
        ),
        _security("system.user.password_changed", "Your password was changed."),
        _security("system.user.mfa_enabled", "An authenticator was added."),
        _security("system.user.mfa_device_added", "An authenticator was added."),
        _security("system.user.mfa_device_removed", "An authenticator was removed."),
        _security("system.user.mfa_disabled", "Multi-factor authentication was turned off."),
        _security("system.user.mfa_reset", "An administrator removed your authenticators."),
        _security("system.user.recovery_codes_replaced", "New recovery codes were created."),
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
