"""A tenant that asks for more than its plan allows is told so, once a minute."""

from contextlib import suppress

from redis.exceptions import RedisError

from app.domain.events import service as events
from app.domain.events.events import RateLimitExceeded
from app.http.limits import Verdict
from app.parts import Parts
from app.security.principal import Principal

_EVERY_SECONDS = 60


async def tell(parts: Parts, principal: Principal, verdict: Verdict) -> None:
    first = False
    with suppress(RedisError, OSError, TimeoutError):
        key = f"parley:limited:{principal.tenant_id}"
        first = bool(await parts.redis.set(key, "1", nx=True, ex=_EVERY_SECONDS))
    if not first:
        return
    exceeded = RateLimitExceeded(verdict.limit, verdict.window, principal.user_id)
    async with parts.db.tx(principal.tenant_id) as tx:
        await events.emit(tx, exceeded, tenant_id=principal.tenant_id)
