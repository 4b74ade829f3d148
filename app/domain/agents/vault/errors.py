from app.kit.errors import NotFound


class CredentialNotFound(NotFound, code="credential_not_found"): ...


class AccessRuleNotFound(NotFound, code="access_rule_not_found"): ...


class AccessDenied(Exception):
    """An integration has no access rule for a credential, or the credential cannot be used."""


class TokenRefused(Exception):
    """A token endpoint issued no usable token.

    `is_final` is true when a retry fails as well until the secrets are changed.
    """

    def __init__(self, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.is_final = is_final


class ConnectionTestFailed(Exception):
    """A connection test failed. The message is shown to users and contains no secret."""
