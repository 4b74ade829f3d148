"""Authorization: the check that runs before every route handler."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from app.http.route_options import RouteOptions, options_of
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
    key_mode = options_of(handler).keyed
    if key_mode is None or (key_mode == "either" and caller_of(connection).principal is not None):
        return False
    return embed_key_of(connection) is not None


def _authorize_key(connection: Connection, options: RouteOptions, principal: Principal) -> None:
    """A service key has no account of its own; one for certain agents uses their routes only."""
    if options.own:
        raise principal.refusal("account", "A service key has no account; sign in as a user")
    if not options.checks_agent:
        principal.require_agent(connection.path_params.get("agent_id"))


def authorize(connection: Connection, handler: BaseRouteHandler) -> None:
    """Raises Unauthorized or Forbidden unless the caller may use the route, as its options say. An
    embed key itself is verified afterwards.
    """
    options = options_of(handler)
    if options.public or uses_embed_key(connection, handler):
        return
    if options.keyed == "only":
        raise Unauthorized(_SEND_KEY, headers={"WWW-Authenticate": "Bearer"})
    principal = principal_of(connection)
    if principal.is_service_key:
        _authorize_key(connection, options, principal)
    if not principal.is_verified and not options.is_open_to_unverified:
        raise EmailNotVerified(
            _VERIFY_EMAIL,
            details={"required": "email_verified", "your_role": principal.role},
        )
    if options.needs is not None and not options.handler_checks:
        principal.require(options.needs)
