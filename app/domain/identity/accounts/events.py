"""Events about users. They never contain a password, a code or a token."""

from typing import Annotated, Literal

from app.domain.area import Event, example


class _InvitationEvent(Event):
    invitation_id: Annotated[str, example("inv_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    email: Annotated[str, example("ada@example.com")]


class UserInvited(_InvitationEvent):
    """Somebody was invited to the tenant."""

    type = "system.user.invited"

    role: Annotated[str, example("agent_developer")]


class InvitationRevoked(_InvitationEvent):
    """An invitation was revoked."""

    type = "system.user.invitation_revoked"


class UserEvent(Event):
    user_id: Annotated[str, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]


class UserRegistered(UserEvent):
    """A user registered, by invitation or without."""

    type = "system.user.registered"

    email: Annotated[str, example("ada@example.com")]
    role: Annotated[str, example("agent_developer")]
    invited: Annotated[bool, example(True)]


class EmailVerified(UserEvent):
    """A user verified an e-mail address."""

    type = "system.user.email_verified"


class UserSignedIn(UserEvent):
    """A user signed in."""

    type = "system.user.signed_in"

    ip_address: Annotated[str, example("192.0.2.7")]
    mfa: Annotated[bool, example(True)]


class SignInBlocked(UserEvent):
    """Too many wrong passwords or codes for a user; they must wait."""

    type = "system.user.sign_in_blocked"

    ip_address: Annotated[str, example("192.0.2.7")]
    reason: Annotated[str, example("password")]


class UserSignedOut(UserEvent):
    """A user signed out."""

    type = "system.user.signed_out"


class SessionRevoked(UserEvent):
    """A used refresh token came again, so its session was ended."""

    type = "system.user.session_revoked"

    session_id: Annotated[str, example("ses_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    ip_address: Annotated[str, example("192.0.2.7")]


class SessionEndedByUser(UserEvent):
    """A user ended another session of theirs."""

    type = "system.user.session_ended"

    session_id: Annotated[str, example("ses_01k9x3m7e8c0v2q4r6t8w0y2a4")]


class PasswordResetRequested(UserEvent):
    """A mail to reset a user's password was requested."""

    type = "system.user.password_reset_requested"


class PasswordChanged(UserEvent):
    """A user changed their password, or reset it by mail, or the operator set another one."""

    type = "system.user.password_changed"

    by: Annotated[Literal["change", "mail", "operator"], example("change")]


class RoleChanged(UserEvent):
    """A user was given another role."""

    type = "system.user.role_changed"

    before: Annotated[str, example("agent_user")]
    after: Annotated[str, example("agent_developer")]


class UserDeactivated(UserEvent):
    """A user was deactivated and can no longer sign in."""

    type = "system.user.deactivated"


class UserReactivated(UserEvent):
    """A user was reactivated."""

    type = "system.user.reactivated"


class UserDeleted(UserEvent):
    """A user was deleted for good."""

    type = "system.user.deleted"

    email: Annotated[str, example("ada@example.com")]
    role: Annotated[str, example("agent_developer")]


class UserUpdated(UserEvent):
    """A user changed their profile or picture."""

    type = "system.user.updated"

    changed: Annotated[list[str], example(["first_name"])]
