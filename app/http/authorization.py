"""The one check that every route goes through."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from app.kit.errors import Unauthorized
from app.security.principal import EMBED_PREFIX, Caller, Principal

Connection = ASGIConnection[Any, Any, Any, Any]


def caller_of(connection: Connection) -> Caller:
    caller: Caller = connection.scope["state"]["caller"]
    return caller


def principal_of(connection: Connection) -> Principal:
    caller = caller_of(connection)
    if caller.principal is None:
        raise Unauthorized(caller.problem, headers={"WWW-Authenticate": "Bearer"})
    return caller.principal


_SEND_KEY = (
    "Send the agent's embed key: as 'Authorization: Bearer emb_…', in the header X-API-Key, or as "
    "the query parameter api_key"
)


def embed_key_of(connection: Connection) -> str | None:
    """The embed key of a request, however it is sent. Nobody has looked it up yet."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip().startswith(EMBED_PREFIX):
        return token.strip()
    return connection.headers.get("x-api-key") or connection.query_params.get("api_key") or None


def comes_with_key(connection: Connection, handler: BaseRouteHandler) -> bool:
    """True when an embed key is what this caller is to be judged by; a sign-in comes first where
    both would do.
    """
    keyed = handler.opt.get("keyed")
    if not keyed or (keyed == "either" and caller_of(connection).principal is not None):
        return False
    return embed_key_of(connection) is not None


def check(connection: Connection, handler: BaseRouteHandler) -> None:
    """Before every handler. A route is for those who signed in unless it says `public=True`, and
    for those with a permission where it says `needs="…"`; the refusal names it and the role.
    Where it says `keyed="only"` or `"either"`, an embed key opens it, which is looked up next.
    With `judged=True` the handler itself refuses whoever lacks the permission.
    """
    options = handler.opt
    keyed = options.get("keyed")
    if comes_with_key(connection, handler):
        return
    if keyed == "only":
        raise Unauthorized(_SEND_KEY, headers={"WWW-Authenticate": "Bearer"})
    if options.get("public") and not keyed:
        return
    principal = principal_of(connection)
    permission = options.get("needs")
    if permission is not None and not options.get("judged"):
        principal.require(permission)
