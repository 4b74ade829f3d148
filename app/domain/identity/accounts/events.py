"""Events about users. They never contain a password, a code or a token."""

from typing import Any, ClassVar, Literal

from app.domain.area import Event


class _InvitationEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "invitation_id": "inv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "ada@example.com",
    }

    invitation_id: str
    email: str


class UserInvited(_InvitationEvent):
    type: ClassVar[str] = "system.user.invited"
    description: ClassVar[str] = "Somebody was invited to the tenant"
    example: ClassVar[dict[str, Any]] = {**_InvitationEvent.example, "role": "agent_developer"}

    role: str


class InvitationRevoked(_InvitationEvent):
    type: ClassVar[str] = "system.user.invitation_revoked"
    description: ClassVar[str] = "An invitation was revoked"


class UserEvent(Event):
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class UserRegistered(UserEvent):
    type: ClassVar[str] = "system.user.registered"
    description: ClassVar[str] = "A user registered, by invitation or without"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "email": "ada@example.com",
        "role": "agent_developer",
        "invited": True,
    }

    email: str
    role: str
    invited: bool


class EmailVerified(UserEvent):
    type: ClassVar[str] = "system.user.email_verified"
    description: ClassVar[str] = "A user verified an e-mail address"


class UserSignedIn(UserEvent):
    type: ClassVar[str] = "system.user.signed_in"
    description: ClassVar[str] = "A user signed in"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "ip_address": "192.0.2.7",
        "mfa": True,
    }

    ip_address: str
    mfa: bool


class SignInBlocked(UserEvent):
    type: ClassVar[str] = "system.user.sign_in_blocked"
    description: ClassVar[str] = "Too many wrong passwords or codes for a user; they must wait"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "ip_address": "192.0.2.7",
        "reason": "password",
    }

    ip_address: str
    reason: str


class UserSignedOut(UserEvent):
    type: ClassVar[str] = "system.user.signed_out"
    description: ClassVar[str] = "A user signed out"


class SessionRevoked(UserEvent):
    type: ClassVar[str] = "system.user.session_revoked"
    description: ClassVar[str] = "A used refresh token came again, so its session was ended"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "session_id": "ses_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "ip_address": "192.0.2.7",
    }

    session_id: str
    ip_address: str


class SessionEndedByUser(UserEvent):
    type: ClassVar[str] = "system.user.session_ended"
    description: ClassVar[str] = "A user ended another session of theirs"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "session_id": "ses_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    session_id: str


class PasswordResetRequested(UserEvent):
    type: ClassVar[str] = "system.user.password_reset_requested"
    description: ClassVar[str] = "A mail to reset a user's password was requested"


class PasswordChanged(UserEvent):
    type: ClassVar[str] = "system.user.password_changed"
    description: ClassVar[str] = "A user changed their password, or reset it by mail"
    example: ClassVar[dict[str, Any]] = {**UserEvent.example, "by": "change"}

    by: Literal["change", "mail"]


class RoleChanged(UserEvent):
    type: ClassVar[str] = "system.user.role_changed"
    description: ClassVar[str] = "A user was given another role"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "before": "agent_user",
        "after": "agent_developer",
    }

    before: str
    after: str


class UserDeactivated(UserEvent):
    type: ClassVar[str] = "system.user.deactivated"
    description: ClassVar[str] = "A user was deactivated and can no longer sign in"


class UserReactivated(UserEvent):
    type: ClassVar[str] = "system.user.reactivated"
    description: ClassVar[str] = "A user was reactivated"


class UserDeleted(UserEvent):
    type: ClassVar[str] = "system.user.deleted"
    description: ClassVar[str] = "A user was deleted for good"
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "email": "ada@example.com",
        "role": "agent_developer",
    }

    email: str
    role: str


class UserUpdated(UserEvent):
    type: ClassVar[str] = "system.user.updated"
    description: ClassVar[str] = "A user changed their profile or picture"
    example: ClassVar[dict[str, Any]] = {**UserEvent.example, "changed": ["first_name"]}

    changed: list[str]
