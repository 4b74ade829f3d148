"""Who is calling."""

import msgspec

from app.kit.errors import Forbidden
from db.session import ALL_TENANTS, Scope

EMBED_PREFIX = "emb_"


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
