"""What a tenant's plan allows to whom, and that it is told when that was not enough."""

import time
from contextlib import suppress

from redis.exceptions import RedisError

from app.domain.events import service as events
from app.domain.events.events import RateLimitExceeded
from app.http.errors import RateLimited
from app.http.given import HttpRequest
from app.http.limits import Plan, Verdict
from app.kit import background
from app.parts import Parts, parts_of
from app.security.principal import Principal

_EVERY_SECONDS = 60
_MOST_REMEMBERED = 10_000
# When this process last asked, by tenant: a flood of refusals is no flood of questions.
_asked: dict[str, float] = {}


async def tell_caller(parts: Parts, principal: Principal, verdict: Verdict) -> None:
    await tell(parts, principal.tenant_id, verdict, principal.user_id)


async def tell(parts: Parts, tenant_id: str, verdict: Verdict, user_id: str | None = None) -> None:
    """Without a user, where visitors or senders of the tenant were refused."""
    first, now = False, time.monotonic()
    if now - _asked.get(tenant_id, -_EVERY_SECONDS) < _EVERY_SECONDS:
        return
    if len(_asked) >= _MOST_REMEMBERED:
        _asked.clear()
    _asked[tenant_id] = now
    with suppress(RedisError, OSError, TimeoutError):
        key = f"parley:limited:{tenant_id}"
        first = bool(await parts.redis.set(key, "1", nx=True, ex=_EVERY_SECONDS))
    if not first:
        return
    exceeded = RateLimitExceeded(verdict.limit, verdict.window, user_id)
    async with parts.db.tx(tenant_id) as tx:
        await events.emit(tx, exceeded, tenant_id=tenant_id)


async def charge(
    request: HttpRequest, kind: str, tenant_id: str, plan: Plan, units: int, refusal: str
) -> None:
    """All who come to a tenant in one way, without signing in, have together what its plan allows,
    apart from its own people: nobody is locked out of the console by its visitors.
    """
    gate = request.app.state.gate
    verdict: Verdict | None = await gate.charge(f"{kind}:{tenant_id}", plan.packed(), units)
    if verdict is None:
        return
    request.scope["state"]["verdict"] = verdict
    if not verdict.allowed:
        background.spawn(tell(parts_of(request), tenant_id, verdict))
        wait = max(1, verdict.retry_after)
        raise RateLimited(
            f"{refusal}; try again in {wait} seconds",
            details={"limit": verdict.limit, "window": verdict.window, "retry_after": wait},
        )
