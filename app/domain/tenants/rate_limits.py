"""The rate limit of a tenant's visitors, and the event emitted for refused requests."""

import time
from contextlib import suppress
from typing import Any, Final, Protocol

from redis.exceptions import RedisError

from app.domain.events import service as events
from app.domain.events.events import RateLimitExceeded
from app.kit import background
from app.kit.errors import RateLimited
from app.kit.limits import Plan, Verdict
from app.security.principal import Principal
from app.services import Services

_INTERVAL_SECONDS: Final = 60
_MAX_CHECKED_TENANTS = 10_000
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


async def charge_visitors(
    request: _Request, kind: str, tenant_id: str, plan: Plan, units: int, refusal: str
) -> None:
    """Charges the limit that all visitors of one kind share in a tenant. It is separate from the
    limits of the tenant's users, so that visitors never block the console. Raises RateLimited.
    """
    gate, state = request.app.state.gate, request.scope["state"]
    subject = f"{kind}:{tenant_id}"
    verdict: Verdict | None = await gate.charge(subject, plan.to_script_argument(), units)
    if verdict is not None:
        state["verdict"] = verdict
    if verdict is not None and not verdict.allowed:
        background.spawn(emit_exceeded(request.app.state.services, tenant_id, verdict))
        wait = max(1, verdict.retry_after)
        raise RateLimited(
            f"{refusal}; try again in {wait} seconds",
            details={"limit": verdict.limit, "window": verdict.window, "retry_after": wait},
        )
    gate.count_visit(tenant_id)
