"""The limits of a tenant's plan, and what remains of them."""

from pathlib import Path
from typing import Final

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.domain.area import ExecutionLoad
from app.domain.platform.storage.schemas import StorageLimit
from app.kit import logs
from app.security import plans
from app.security.plans import Plan

from .schemas import ConcurrencyLimits, ExecutionLimits, StartLimit, UsageLimits, WindowLimit

log = logs.get("usage")

_SCRIPT: Final = Path(__file__).with_suffix(".lua").read_text(encoding="utf-8")


class LimiterState(msgspec.Struct, frozen=True, array_like=True):
    """What a tenant has used of its windows, as `headroom.lua` returns it."""

    now: int
    burst_start: int
    minute_units: int
    minute_reset: int
    hour_requests: int
    hour_reset: int
    day_requests: int
    day_reset: int


async def read_state(redis: Redis, tenant_id: str) -> LimiterState | None:
    """Returns None while Redis is unavailable. Charges nothing."""
    script = redis.register_script(_SCRIPT)
    try:
        reply = await script(keys=plans.state_keys(tenant_id))
    except (RedisError, OSError, TimeoutError) as error:
        log.warning("the state of the rate limiter is unknown", reason=str(error)[:200])
        return None
    return msgspec.convert(reply, LimiterState)


def build_limits(
    plan_name: str,
    plan: Plan,
    state: LimiterState | None,
    load: ExecutionLoad,
    storage: StorageLimit,
) -> UsageLimits:
    """Without a state, it is unknown what remains."""
    minute, hour, day = build_windows(plan, state)
    starts, concurrent = plan.workflow_executions_per_minute, plan.concurrent_executions
    executions = ExecutionLimits(
        StartLimit(starts, max(0, starts - load.started)),
        ConcurrencyLimits(concurrent, load.running, max(0, concurrent - load.running)),
    )
    return UsageLimits(plan_name, minute, hour, day, executions, storage)


def build_windows(
    plan: Plan, state: LimiterState | None
) -> tuple[WindowLimit, WindowLimit, WindowLimit]:
    """Returns minute, hour and day."""
    minute = WindowLimit(plan.requests_per_minute, None, None)
    hour = WindowLimit(plan.requests_per_hour or None, None, None)
    day = WindowLimit(plan.requests_per_day or None, None, None)
    if state is None:
        return minute, hour, day
    return (
        _build_window(_minute_limit(plan, state), state.minute_units, state.minute_reset),
        _build_window(hour.limit, state.hour_requests, state.hour_reset),
        _build_window(day.limit, state.day_requests, state.day_reset),
    )


def _minute_limit(plan: Plan, state: LimiterState) -> int:
    """Returns the limit that is in force now, which is higher during a burst."""
    is_burst = state.burst_start > 0 and state.now < state.burst_start + plan.burst_seconds
    return plan.requests_per_minute * (plan.burst_multiplier if is_burst else 1)


def _build_window(limit: int | None, used: int, reset: int) -> WindowLimit:
    if limit is None:
        return WindowLimit(None, None, None)
    return WindowLimit(limit, max(0, limit - used), reset)
