from app.kit.errors import Conflict, Forbidden, NotFound


class UserNotFound(NotFound, code="user_not_found"): ...


class SessionNotFound(NotFound, code="session_not_found"): ...


class InvitationNotFound(NotFound, code="invitation_not_found"): ...


class LinkNotFound(NotFound, code="link_not_found"): ...


class SignupClosed(Forbidden, code="signup_closed"): ...


class LastAdmin(Conflict, code="last_admin"): ...


class MfaCodeRequired(Forbidden, code="mfa_required"):
    """The session has not shown an MFA code, and the action would weaken or bypass MFA."""
