from app.kit.errors import Forbidden, NotFound


class TokenInvalid(ValueError):
    """A JWT is refused. The message goes to the caller and contains nothing about keys."""


class EmailNotVerified(Forbidden, code="email_not_verified"):
    """The caller has not verified their e-mail address, and the route is not about their own
    account.
    """


class TenantNotFound(NotFound, code="tenant_not_found"): ...
