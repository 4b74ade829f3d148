"""Who is calling, and the one check that every route goes through."""

from typing import Any

import msgspec
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from app.http.errors import Forbidden, Unauthorized
from db.session import ALL_TENANTS, Scope


class Principal(msgspec.Struct, frozen=True):
    user_id: str
    tenant_id: str
    role: str
    session_id: str
    permissions: frozenset[str]
    narrowed_to: str | None = None

    @property
    def is_super_admin(self) -> bool:
        return self.role == "super_admin"

    @property
    def scope(self) -> Scope:
        """Whose rows this caller reaches."""
        if self.is_super_admin:
            return self.narrowed_to or ALL_TENANTS
        return self.tenant_id

    @property
    def home(self) -> str:
        """The tenant that what this caller creates belongs to."""
        return self.narrowed_to or self.tenant_id

    def may(self, permission: str) -> bool:
        return permission in self.permissions

    def require(self, permission: str) -> None:
        if permission not in self.permissions:
            raise Forbidden(
                f"This needs the permission {permission}, which the role {self.role} does not have",
                details={"required": permission, "your_role": self.role},
            )


class Caller(msgspec.Struct):
    """What the gate found out about a request before any handler ran."""

    # What is limited together: an address, or the network that one customer holds.
    address: str
    principal: Principal | None = None
    problem: str = "Sign in first: send an access token as 'Authorization: Bearer …'"
    # Where the request came from, exactly.
    source: str = "unknown"


Connection = ASGIConnection[Any, Any, Any, Any]


def caller_of(connection: Connection) -> Caller:
    caller: Caller = connection.scope["state"]["caller"]
    return caller


def principal_of(connection: Connection) -> Principal:
    caller = caller_of(connection)
    if caller.principal is None:
        raise Unauthorized(caller.problem, headers={"WWW-Authenticate": "Bearer"})
    return caller.principal


EMBED_PREFIX = "emb_"
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
