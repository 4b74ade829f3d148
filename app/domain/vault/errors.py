from app.kit.errors import NotFound


class CredentialNotFound(NotFound):
    code = "credential_not_found"


class AccessRuleNotFound(NotFound):
    code = "access_rule_not_found"


class AccessDenied(Exception):
    """Something wants to use a credential that it has no rule for, or that is not there."""


class TokenRefused(Exception):
    """No usable token came of it. `final`: nor will one, until the secrets are changed."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final
