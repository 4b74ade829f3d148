"""Events about users. They never contain a password, a code or a token."""

from typing import Any, ClassVar, Literal

from app.domain.area import Event


class UserInvited(Event):
    type: ClassVar[str] = "system.user.invited"
    description: ClassVar[str] = "Somebody was invited to the tenant"
    example: ClassVar[dict[str, Any]] = {
        "invitation_id": "inv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "ada@example.com",
        "role": "agent_developer",
    }

    invitation_id: str
    email: str
    role: str


class InvitationRevoked(Event):
    type: ClassVar[str] = "system.user.invitation_revoked"
    description: ClassVar[str] = "An invitation was taken back"
    example: ClassVar[dict[str, Any]] = {
        "invitation_id": "inv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "ada@example.com",
    }

    invitation_id: str
    email: str


class UserRegistered(Event):
    type: ClassVar[str] = "system.user.registered"
    description: ClassVar[str] = "A user registered, by invitation or without"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "ada@example.com",
        "role": "agent_developer",
        "invited": True,
    }

    user_id: str
    email: str
    role: str
    invited: bool


class EmailVerified(Event):
    type: ClassVar[str] = "system.user.email_verified"
    description: ClassVar[str] = "A user showed that an e-mail address is theirs"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class UserSignedIn(Event):
    type: ClassVar[str] = "system.user.signed_in"
    description: ClassVar[str] = "A user signed in"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "ip_address": "192.0.2.7",
        "mfa": True,
    }

    user_id: str
    ip_address: str
    mfa: bool


class SignInBlocked(Event):
    type: ClassVar[str] = "system.user.sign_in_blocked"
    description: ClassVar[str] = "Too many wrong passwords or codes for a user; they must wait"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "ip_address": "192.0.2.7",
        "reason": "password",
    }

    user_id: str
    ip_address: str
    reason: str


class UserSignedOut(Event):
    type: ClassVar[str] = "system.user.signed_out"
    description: ClassVar[str] = "A user signed out"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class SessionRevoked(Event):
    type: ClassVar[str] = "system.user.session_revoked"
    description: ClassVar[str] = "A used refresh token came again, so its session was ended"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "session_id": "ses_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "ip_address": "192.0.2.7",
    }

    user_id: str
    session_id: str
    ip_address: str


class SessionEndedByUser(Event):
    type: ClassVar[str] = "system.user.session_ended"
    description: ClassVar[str] = "A user ended another session of theirs"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "session_id": "ses_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    user_id: str
    session_id: str


class PasswordResetRequested(Event):
    type: ClassVar[str] = "system.user.password_reset_requested"
    description: ClassVar[str] = "A mail to reset a user's password was asked for"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class PasswordChanged(Event):
    type: ClassVar[str] = "system.user.password_changed"
    description: ClassVar[str] = "A user changed their password, or reset it by mail"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "by": "change",
    }

    user_id: str
    by: Literal["change", "mail"]


class RoleChanged(Event):
    type: ClassVar[str] = "system.user.role_changed"
    description: ClassVar[str] = "A user was given another role"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "before": "agent_user",
        "after": "agent_developer",
    }

    user_id: str
    before: str
    after: str


class UserDeactivated(Event):
    type: ClassVar[str] = "system.user.deactivated"
    description: ClassVar[str] = "A user was deactivated and can no longer sign in"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class UserReactivated(Event):
    type: ClassVar[str] = "system.user.reactivated"
    description: ClassVar[str] = "A user was reactivated"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class UserDeleted(Event):
    type: ClassVar[str] = "system.user.deleted"
    description: ClassVar[str] = "A user was deleted for good"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "ada@example.com",
        "role": "agent_developer",
    }

    user_id: str
    email: str
    role: str


class UserUpdated(Event):
    type: ClassVar[str] = "system.user.updated"
    description: ClassVar[str] = "A user changed their profile or picture"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "changed": ["first_name"],
    }

    user_id: str
    changed: list[str]
