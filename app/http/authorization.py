"""Authorization: the check that runs before every route handler."""

from collections.abc import Mapping
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from app.kit.errors import Unauthorized
from app.security.errors import EmailNotVerified
from app.security.principal import EMBED_PREFIX, VISITOR_PREFIX, Caller, Principal

Connection = ASGIConnection[Any, Any, Any, Any]


def caller_of(connection: Connection) -> Caller:
    caller: Caller = connection.scope["state"]["caller"]
    return caller


def principal_of(connection: Connection) -> Principal:
    caller = caller_of(connection)
    if caller.principal is None:
        raise Unauthorized(caller.problem, headers={"WWW-Authenticate": "Bearer"})
    return caller.principal


_VERIFY_EMAIL = (
    "Verify your e-mail address first: open the link in the mail that we sent you. "
    "POST /auth/verify-email/resend sends it again"
)
_SEND_KEY = (
    "Send the agent's embed key: as 'Authorization: Bearer emb_…', in the header X-API-Key, or as "
    "the query parameter api_key"
)


def embed_key_of(connection: Connection) -> str | None:
    """Returns the embed key or visitor token that a request carries, not yet verified."""
    token = _bearer_of(connection)
    if token.startswith((EMBED_PREFIX, VISITOR_PREFIX)):
        return token
    return connection.headers.get("x-api-key") or connection.query_params.get("api_key") or None


def visitor_token_of(connection: Connection) -> str | None:
    """Returns the visitor token that a request carries, not yet verified. It is in the header
    Authorization only, because addresses end up in logs.
    """
    token = _bearer_of(connection)
    return token if token.startswith(VISITOR_PREFIX) else None


def _bearer_of(connection: Connection) -> str:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def uses_embed_key(connection: Connection, handler: BaseRouteHandler) -> bool:
    """True when the request is authorized by its embed key. On a route that takes either, a
    sign-in takes precedence.
    """
    key_mode = handler.opt.get("keyed")
    if not key_mode or (key_mode == "either" and caller_of(connection).principal is not None):
        return False
    return embed_key_of(connection) is not None


def is_open_to_unverified(options: Mapping[str, Any]) -> bool:
    """True for routes about the caller's own account. `verified=True` is for those that cost."""
    return bool(options.get("own")) and not options.get("verified")


def authorize(connection: Connection, handler: BaseRouteHandler) -> None:
    """Raises Unauthorized or Forbidden unless the caller may use the route.

    A route requires a sign-in unless it has the option `public=True`, a verified e-mail address
    unless it has `own=True` without `verified=True`, and a permission with `needs="..."`. With
    `keyed="only"` it requires an embed key; with `keyed="either"` an embed key may replace the
    sign-in. The key itself is verified afterwards. With `handler_checks=True` the handler checks
    the permission.
    """
    options = handler.opt
    key_mode = options.get("keyed")
    if uses_embed_key(connection, handler):
        return
    if key_mode == "only":
        raise Unauthorized(_SEND_KEY, headers={"WWW-Authenticate": "Bearer"})
    if options.get("public") and not key_mode:
        return
    principal = principal_of(connection)
    if not principal.is_verified and not is_open_to_unverified(options):
        raise EmailNotVerified(
            _VERIFY_EMAIL,
            details={"required": "email_verified", "your_role": principal.role},
        )
    permission = options.get("needs")
    if permission is not None and not options.get("handler_checks"):
        principal.require(permission)
