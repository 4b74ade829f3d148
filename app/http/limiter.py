"""Runs gate.lua: checks a session, charges rate limits and gives units back."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from redis.exceptions import RedisError

from app.kit import logs
from app.kit.redis import LuaScriptClient, ScriptFailed
from app.observe import metrics
from app.security import plans, sessions
from app.security.plans import Charge, Verdict
from app.security.tokens import Claims

log = logs.get("http")

SCRIPT = Path(__file__).with_name("gate.lua").read_text(encoding="utf-8")
# After a failure, Redis is not used for this time.
_REDIS_RETRY_SECONDS = 1.0
_WARN_EVERY_SECONDS = 10.0
_Mode = Literal["session", "charge", "refund"]
_NO_SESSION = ("", sessions.GRANTS_KEY, "")
_NO_COPIES = ("", "", "")


class Limiter:
    """All methods return None while Redis is unavailable; requests are then not limited."""

    def __init__(self, script: LuaScriptClient) -> None:
        self._script = script
        self._redis_retry_at = 0.0
        self._warned_at = -_WARN_EVERY_SECONDS

    async def check_session(
        self, claims: Claims, units: int, copies: tuple[str, str, str] = _NO_COPIES
    ) -> list[Any] | None:
        """Checks a session and charges its tenant. `copies` are the session, grants version and
        plan for Redis to cache. Returns the script's reply.
        """
        keys = (
            sessions.session_key(claims.sid),
            sessions.GRANTS_KEY,
            sessions.plan_key(claims.tid),
        )
        return await self._run("session", [Charge(claims.tid, "", units)], keys, copies)

    async def charge(self, charges: Sequence[Charge]) -> Verdict | None:
        """Charges all subjects, or none: the first that is over its limit refuses the request."""
        reply = await self._run("charge", charges)
        return None if reply is None else to_verdict(reply)

    async def refund(self, charges: Sequence[Charge], charged_at: int) -> None:
        """Gives units back that were charged in the second `charged_at`."""
        await self._run("refund", charges, now=charged_at)

    async def _run(
        self,
        mode: _Mode,
        charges: Sequence[Charge],
        session_keys: tuple[str, str, str] = _NO_SESSION,
        copies: tuple[str, str, str] = _NO_COPIES,
        now: int = 0,
    ) -> list[Any] | None:
        if time.monotonic() < self._redis_retry_at:
            metrics.LIMITER_DEGRADED.inc()
            return None
        keys, args = list(session_keys), [now, mode, *copies, sessions.CACHE_SECONDS]
        for charge in charges:
            keys += plans.state_keys(charge.subject)
            args += (charge.units, charge.plan)
        try:
            return await self._script.run(tuple(keys), tuple(args))
        except ScriptFailed as error:
            log.exception("gate.lua failed", reason=str(error)[:300])
            return None
        except (RedisError, OSError, TimeoutError) as error:
            self._pause_redis(error)
            return None

    def _pause_redis(self, error: Exception) -> None:
        now = time.monotonic()
        self._redis_retry_at = now + _REDIS_RETRY_SECONDS
        metrics.LIMITER_DEGRADED.inc()
        if now - self._warned_at >= _WARN_EVERY_SECONDS:
            self._warned_at = now
            log.warning("Redis is unavailable: requests are not limited", reason=str(error)[:200])


def to_verdict(reply: list[Any]) -> Verdict:
    _, _, allowed, window, limit, remaining, reset, retry_after, subject, second = reply
    return Verdict(bool(allowed), window, limit, remaining, reset, retry_after, subject - 1, second)
