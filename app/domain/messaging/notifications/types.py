"""The notification types: what each is about, and which way it goes unless a user changes that; and
who a message goes to.
"""

from typing import Final, Literal

import msgspec

TypeName = Literal[
    "workflow_completed",
    "workflow_failed",
    "form_submission",
    "approval_requested",
    "message",
    "webhook_disabled",
    "credential_invalid",
    "document_source",
    "storage_quota",
    "security",
]


class NotificationType(msgspec.Struct, frozen=True, kw_only=True):
    """An urgent type is never held back. One that is `internal` cannot be sent by hand. Users
    cannot switch off one that is `always_in_app`: whoever took over a session must not hide what
    they do. Mails of one that is `is_for_verified` go to verified addresses alone: they allow
    something to whoever reads them.
    """

    name: TypeName
    description: str
    email: bool = False
    team_chat: bool = False
    is_urgent: bool = False
    internal: bool = False
    always_in_app: bool = False
    is_for_verified: bool = False


TYPES: Final[dict[str, NotificationType]] = {
    kind.name: kind
    for kind in (
        NotificationType(
            name="workflow_completed", description="A workflow that you started ended"
        ),
        NotificationType(name="workflow_failed", description="A workflow failed"),
        NotificationType(name="form_submission", description="Somebody submitted a form"),
        NotificationType(
            name="approval_requested",
            description="A decision is needed",
            email=True,
            is_urgent=True,
            is_for_verified=True,
        ),
        NotificationType(
            name="message", description="Sent by hand, by a subscription or by a workflow"
        ),
        NotificationType(
            name="webhook_disabled",
            description="A webhook was disabled because its endpoint fails",
            email=True,
            internal=True,
        ),
        NotificationType(
            name="credential_invalid",
            description="A credential of the vault no longer works",
            internal=True,
        ),
        NotificationType(
            name="document_source",
            description="A source of documents failed, or its changes wait for a review",
            internal=True,
        ),
        NotificationType(
            name="storage_quota",
            description="The storage quota is nearly used up",
            email=True,
            internal=True,
        ),
        NotificationType(
            name="security",
            description="Your account changed",
            is_urgent=True,
            internal=True,
            always_in_app=True,
        ),
    )
}
NAMES: Final = list(TYPES)


class Recipients(msgspec.Struct, frozen=True, omit_defaults=True):
    """Users by their ids, the users with a role, or the recipients of a channel: one of them."""

    user_ids: list[str] | None = None
    role: str | None = None
    channel_id: str | None = None
