"""The authenticated caller of a request."""

from typing import Literal

import msgspec

from app.kit.errors import Forbidden
from db.session import ALL_TENANTS, Scope

# Embed keys, and the short-lived tokens that visitors get for them.
EMBED_PREFIX = "emb_"
VISITOR_PREFIX = "vst_"
# Keys with which programs act for themselves.
SERVICE_PREFIX = "svc_"


class Principal(msgspec.Struct, frozen=True):
    user_id: str
    tenant_id: str
    role: str
    session_id: str
    permissions: frozenset[str]
    # False until the user has verified their e-mail address.
    is_verified: bool = True
    # The tenant that super_admin selected with X-Tenant-ID.
    narrowed_to: str | None = None
    # A service key is its own user and session. `agent_ids` None means all agents.
    is_service_key: bool = False
    agent_ids: frozenset[str] | None = None

    @property
    def is_super_admin(self) -> bool:
        return self.role == "super_admin"

    @property
    def scope(self) -> Scope:
        """The tenant, or all tenants, whose rows this caller can access."""
        if self.is_super_admin:
            return self.narrowed_to or ALL_TENANTS
        return self.tenant_id

    @property
    def home(self) -> str:
        """The tenant that owns the resources this caller creates."""
        return self.narrowed_to or self.tenant_id

    def may(self, permission: str) -> bool:
        return permission in self.permissions

    def require(self, permission: str) -> None:
        if not self.may(permission):
            raise self.refusal(permission)

    @property
    def kind(self) -> Literal["user", "service_key"]:
        return "service_key" if self.is_service_key else "user"

    def may_use_agent(self, agent_id: str | None) -> bool:
        return self.agent_ids is None or agent_id in self.agent_ids

    def require_agent(self, agent_id: str | None) -> None:
        """Raises Forbidden for a service key that is for other agents."""
        if not self.may_use_agent(agent_id):
            raise self.refusal("agents:all", "This service key is for certain agents only")

    def refusal(self, permission: str, message: str | None = None) -> Forbidden:
        """Returns the error for a caller without the permission. `message` says what to do."""
        holder = "this service key" if self.is_service_key else f"the role {self.role}"
        return Forbidden(
            message or f"This needs the permission {permission}, which {holder} does not have",
            details={"required": permission, "your_role": self.role},
        )


class ClientInfo(msgspec.Struct, frozen=True):
    """Where a sign-in comes from; the User-Agent header is the client's own claim."""

    address: str
    # What is throttled: an IPv4 address, or the network of an IPv6 customer.
    network: str
    user_agent: str | None = None


class Caller(msgspec.Struct):
    """The gate's information about a request, set before any handler runs."""

    # The rate-limited unit: an IPv4 address, or the network of an IPv6 customer.
    address: str
    principal: Principal | None = None
    problem: str = "Sign in first: send an access token as 'Authorization: Bearer …'"
    # The full network address of the client.
    source: str = "unknown"
