"""The rate limit of a tenant's visitors, and the event emitted for refused requests."""

import time
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, Protocol

import msgspec
from redis.exceptions import RedisError

from app.domain.platform.events import api as events
from app.domain.platform.events.events import RateLimitExceeded
from app.http import refunds
from app.jobs import background
from app.kit.errors import RateLimited
from app.security.plans import Charge, Plan, Verdict
from app.security.principal import Principal
from app.services import Services

_INTERVAL_SECONDS: Final = 60
_MAX_CHECKED_TENANTS = 10_000
_TOO_MANY_FROM_ADDRESS: Final = "Too many requests came from your address"
# Time of this process's last check by tenant, so that not every refusal asks Redis.
_checked_at: dict[str, float] = {}


class _Request(Protocol):
    """The part of Litestar's request that is used here; workers import this module."""

    @property
    def app(self) -> Any: ...

    @property
    def scope(self) -> Any: ...


async def emit_for_caller(services: Services, principal: Principal, verdict: Verdict) -> None:
    await emit_exceeded(services, principal.tenant_id, verdict, principal.user_id)


async def emit_exceeded(
    services: Services, tenant_id: str, verdict: Verdict, user_id: str | None = None
) -> None:
    """Emits the event at most once a minute per tenant. No `user_id` means visitors."""
    is_first, now = False, time.monotonic()
    if now - _checked_at.get(tenant_id, -_INTERVAL_SECONDS) < _INTERVAL_SECONDS:
        return
    if len(_checked_at) >= _MAX_CHECKED_TENANTS:
        _checked_at.clear()
    _checked_at[tenant_id] = now
    with suppress(RedisError, OSError, TimeoutError):
        key = f"parley:limited:{tenant_id}"
        is_first = bool(await services.redis.set(key, "1", nx=True, ex=_INTERVAL_SECONDS))
    if not is_first:
        return
    exceeded = RateLimitExceeded(verdict.limit, verdict.window, user_id)
    async with services.db.tx(tenant_id) as tx:
        await events.emit(tx, exceeded, tenant_id=tenant_id)


class VisitorLimit(NamedTuple):
    """A limit that a visitor's request is charged for, and the error beyond it."""

    charge: Charge
    refusal: str
    error: type[RateLimited] = RateLimited


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a visitor, for which the tenant pays."""

    # All visitors of one kind share a limit in a tenant. It is separate from the limits of the
    # tenant's users, so that visitors never block the console.
    kind: Literal["embed", "forms", "incoming"]
    tenant_id: str
    plan: Plan
    units: int
    refusal: str
    # The address that pays the same from its share of the tenant's limit; None without shares.
    address: str | None = None
    # Other limits of the address.
    address_limits: tuple[VisitorLimit, ...] = ()

    def list_limits(self) -> list[VisitorLimit]:
        """The tenant's comes last: an address beyond its own limits costs the tenant nothing."""
        subject, limits = f"{self.kind}:{self.tenant_id}", list(self.address_limits)
        if self.address is not None:
            share = self.plan.address_share().to_script_argument()
            charge = Charge(f"{subject}:{self.address}", share, self.units)
            limits.append(VisitorLimit(charge, _TOO_MANY_FROM_ADDRESS))
        charge = Charge(subject, self.plan.to_script_argument(), self.units)
        return [*limits, VisitorLimit(charge, self.refusal)]


async def charge_visitors(request: _Request, visit: Visit) -> None:
    """Charges the limits of a visitor's request, all or none. Raises RateLimited, or the error of
    the limit. A request that is refused later costs one unit, unless `keep_charges` is called.
    """
    gate, limits = request.app.state.gate, visit.list_limits()
    charges = [limit.charge for limit in limits]
    verdict: Verdict | None = await gate.charge_visit(request.scope["state"], charges)
    if verdict is not None and not verdict.allowed:
        limit, wait = limits[verdict.subject], max(1, verdict.retry_after)
        if limit is limits[-1]:
            services = request.app.state.services
            background.spawn(emit_exceeded(services, visit.tenant_id, verdict))
        raise limit.error(
            f"{limit.refusal}; try again in {wait} seconds",
            details={"limit": verdict.limit, "window": verdict.window, "retry_after": wait},
        )
    gate.count_visit(visit.tenant_id)


def keep_charges(request: _Request) -> None:
    """Called when work begins that costs the tenant as much if the request is refused later."""
    refunds.keep_charges(request.scope["state"])
