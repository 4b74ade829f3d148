"""The table of plans, and the rate limiter's verdict with its headers."""

from typing import Any, Final, NamedTuple

import msgspec

from app.kit import clock

MINUTE, HOUR, DAY = 60, 3600, 86400
# Test events are deleted after this many days, on every plan.
TEST_EVENTS_DAYS: Final = 7
# The plan whose tenants may have limits of their own.
_ENTERPRISE = "enterprise"
# One address of visitors may use this part of the tenant's limits, and at least this many units: a
# visitor who chats needs 5 to open the chat and 10 for each message.
_ADDRESS_SHARE: Final = 4
_MIN_ADDRESS_SHARE: Final = 30
_NO_BURST: Final = "1x0"
_NAMES = {MINUTE: "minute", HOUR: "hour", DAY: "day"}


def state_keys(subject: str) -> tuple[str, ...]:
    """Returns the keys of a subject's state in Redis: its hash, and a list for each window."""
    key = f"parley:limit:{subject}"
    return key, *(f"{key}:{name}" for name in _NAMES.values())


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one plan; 0 means no limit."""

    requests_per_minute: int
    requests_per_hour: int
    requests_per_day: int
    workflow_executions_per_minute: int
    concurrent_executions: int
    burst_multiplier: int
    burst_seconds: int
    # Of everything that a tenant stores.
    storage_mb: int = 0
    # Of all data tables of a tenant together.
    data_rows: int = 0
    # After how many days a tenant's history is deleted.
    events_days: int = 0
    payloads_days: int = 0
    executions_days: int = 0
    conversations_days: int = 0

    def to_script_argument(self) -> str:
        """Returns the plan in the format of the gate's Lua script."""
        return (
            f"{self.requests_per_minute},{self.requests_per_hour},{self.requests_per_day},"
            f"{self.burst_multiplier},{self.burst_seconds}"
        )

    def address_share(self) -> "Plan":
        """Returns the part of a tenant's limits that one address of its visitors may use. It has no
        bursts, so that one address never uses up the tenant's.
        """
        return _plan(
            _share_of(self.requests_per_minute),
            _share_of(self.requests_per_hour),
            _share_of(self.requests_per_day),
            0,
            0,
            _NO_BURST,
        )


def _share_of(limit: int) -> int:
    return min(limit, max(limit // _ADDRESS_SHARE, _MIN_ADDRESS_SHARE))


def _plan(
    per_minute: int,
    per_hour: int,
    per_day: int,
    workflows: int,
    concurrent: int,
    burst: str,
    storage_mb: int = 0,
    data_rows: int = 0,
) -> Plan:
    multiplier, _, seconds = burst.partition("x")
    return Plan(
        requests_per_minute=per_minute,
        requests_per_hour=per_hour,
        requests_per_day=per_day,
        workflow_executions_per_minute=workflows,
        concurrent_executions=concurrent,
        burst_multiplier=int(multiplier),
        burst_seconds=int(seconds),
        storage_mb=storage_mb,
        data_rows=data_rows,
    )


def _keep(plan: Plan, events: int, payloads: int, executions: int, conversations: int) -> Plan:
    """Sets after how many days history is deleted."""
    return msgspec.structs.replace(
        plan,
        events_days=events,
        payloads_days=payloads,
        executions_days=executions,
        conversations_days=conversations,
    )


#     minute  hour    day      workflows concurrent burst storage_mb data_rows
_FREE = _plan(60, 1_000, 10_000, 5, 1, "2x10", 1_024, 100_000)
_PRO = _plan(300, 10_000, 100_000, 30, 5, "3x30", 10_240, 1_000_000)
_TEAM = _plan(600, 30_000, 300_000, 60, 10, "5x60", 102_400, 5_000_000)
_OWN = _plan(1_200, 0, 0, 300, 50, "5x60", 512_000, 10_000_000)

#                         days of events, payloads, executions, conversations
PLANS: Final = {
    "free": _keep(_FREE, 30, 30, 30, 365),
    "pro": _keep(_PRO, 90, 90, 90, 1_095),
    "team": _keep(_TEAM, 180, 90, 180, 3_650),
    _ENTERPRISE: _keep(_OWN, 365, 90, 365, 3_650),
}


def plan_of(name: str, limits: dict[str, Any]) -> Plan:
    """Returns a tenant's plan; an enterprise tenant's own limits replace those of the plan."""
    plan = PLANS[name]
    if name != _ENTERPRISE or not limits:
        return plan
    own = {key: value for key, value in limits.items() if key in Plan.__struct_fields__ and value}
    return msgspec.structs.replace(plan, **own)


def limit_sql(name: str, tenant: str) -> str:
    """Returns SQL for one limit of a row of `tenants` with this alias, as `plan_of` finds it."""
    cases = " ".join(
        f"WHEN '{plan}' THEN {getattr(limits, name)}"
        for plan, limits in PLANS.items()
        if plan != _ENTERPRISE
    )
    own = f"nullif(({tenant}.limits->>'{name}')::bigint, 0)"
    default = getattr(PLANS[_ENTERPRISE], name)
    return f"(CASE {tenant}.plan {cases} ELSE coalesce({own}, {default}) END)"


def anonymous_plan(per_minute: int) -> Plan:
    """Returns the plan of callers without login, who are counted by address."""
    return _plan(per_minute, 0, 0, 0, 0, _NO_BURST)


class Charge(NamedTuple):
    """Units that one subject of the rate limiter pays for a request. The plan is the argument of
    the gate's Lua script.
    """

    subject: str
    plan: str
    units: int


class Verdict(msgspec.Struct, frozen=True):
    """The limiter's decision on one request."""

    allowed: bool
    window: int
    limit: int
    remaining: int
    reset: int
    retry_after: int
    # Which of the charged subjects the limits are of, and the second of the charge.
    subject: int = 0
    second: int = 0

    def headers(self) -> list[tuple[bytes, bytes]]:
        name = _NAMES[self.window]
        wait = max(0, self.reset - int(clock.epoch()))
        headers = [
            (b"x-ratelimit-limit", b"%d" % self.limit),
            (b"x-ratelimit-remaining", b"%d" % self.remaining),
            (b"x-ratelimit-reset", b"%d" % self.reset),
            (b"x-ratelimit-window", b"%d" % self.window),
            (b"ratelimit", f'"{name}";r={self.remaining};t={wait}'.encode()),
            (b"ratelimit-policy", f'"{name}";q={self.limit};w={self.window}'.encode()),
        ]
        if not self.allowed:
            headers.append((b"retry-after", b"%d" % max(1, self.retry_after)))
        return headers


def uncounted_verdict(plan: Plan) -> Verdict:
    """Returns the verdict on a request that the limiter does not count."""
    limit = plan.requests_per_minute
    reset = int(clock.epoch()) + MINUTE
    return Verdict(True, MINUTE, limit, limit, reset, 0)  # noqa: FBT003
