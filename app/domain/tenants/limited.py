"""A tenant that asks for more than its plan allows is told so, once a minute."""

import time
from contextlib import suppress

from redis.exceptions import RedisError

from app.domain.events import service as events
from app.domain.events.events import RateLimitExceeded
from app.http.limits import Verdict
from app.parts import Parts
from app.security.principal import Principal

_EVERY_SECONDS = 60
# When this process last asked, by tenant: a flood of refusals is no flood of questions.
_asked: dict[str, float] = {}


async def tell(parts: Parts, principal: Principal, verdict: Verdict) -> None:
    first, now = False, time.monotonic()
    if now - _asked.get(principal.tenant_id, -_EVERY_SECONDS) < _EVERY_SECONDS:
        return
    _asked[principal.tenant_id] = now
    with suppress(RedisError, OSError, TimeoutError):
        key = f"parley:limited:{principal.tenant_id}"
        first = bool(await parts.redis.set(key, "1", nx=True, ex=_EVERY_SECONDS))
    if not first:
        return
    exceeded = RateLimitExceeded(verdict.limit, verdict.window, principal.user_id)
    async with parts.db.tx(principal.tenant_id) as tx:
        await events.emit(tx, exceeded, tenant_id=principal.tenant_id)
