"""Rate limits: gate.lua compared with an oracle, and the responses of the HTTP API."""

import itertools
from typing import Any

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.http.limiter import SCRIPT, to_verdict
from app.kit import limits
from app.kit.limits import Charge
from app.main import create_app
from app.services import Services
from tests.http.oracle import Oracle
from tests.stores import Stores
from tests.world import Client, World

_number = itertools.count()


@pytest.fixture(scope="module")
def script(stores: Stores) -> "Script":
    return Script(redis.Redis.from_url(stores.redis.url))


class Script:
    """gate.lua, run at a time that the test sets."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._run = client.register_script(SCRIPT)

    def charge(self, subject: str, plan: str, now: int, units: int) -> limits.Verdict:
        return self.charge_all([Charge(subject, plan, units)], now)

    def charge_all(self, charges: list[Charge], now: int) -> limits.Verdict:
        return to_verdict(self._call("charge", charges, now))

    def refund(self, charges: list[Charge], charged_at: int) -> None:
        self._call("refund", charges, charged_at)

    def _call(self, mode: str, charges: list[Charge], now: int) -> list[Any]:
        keys, args = ["", "", ""], [now, mode, "", "", "", 60]
        for subject, plan, units in charges:
            keys += [subject, f"{subject}:m", f"{subject}:h", f"{subject}:d"]
            args += [units, plan]
        reply: list[Any] = self._run(keys=keys, args=args)
        return reply

    def delete(self, subject: str) -> None:
        self._client.delete(subject, f"{subject}:m", f"{subject}:h", f"{subject}:d")


# Limits per minute, hour and day, multiplier and seconds of a burst.
PLANS = st.tuples(
    st.integers(1, 30),
    st.sampled_from([0, 5, 20, 60]),
    st.sampled_from([0, 8, 40, 90]),
    st.integers(1, 4),
    st.sampled_from([0, 1, 5, 10, 30, 60]),
)
# Mostly seconds apart, sometimes across the edge of a window.
STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.integers(0, 3),
            st.sampled_from([9, 10, 29, 30, 58, 59, 60, 61, 3599, 3600, 86399, 86400]),
        ),
        st.sampled_from([1, 2, 5, 10]),
    ),
    max_size=120,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(plan=PLANS, steps=STEPS)
def test_the_script_decides_as_the_oracle_does(
    script: Script, plan: tuple[int, int, int, int, int], steps: list[tuple[int, int]]
) -> None:
    subject = f"oracle:{next(_number)}"
    oracle = Oracle(*plan)
    script_plan = ",".join(map(str, plan))
    now = 1_000_000
    for pause, units in steps:
        now += pause
        verdict = script.charge(subject, script_plan, now, units)
        admitted, wait = oracle.charge(now, units)
        assert verdict.allowed == admitted
        assert verdict.retry_after == wait
        assert verdict.remaining == (oracle.remaining(now) if admitted else 0)
    script.delete(subject)


def test_a_refused_request_costs_nothing(script: Script) -> None:
    subject = f"free:{next(_number)}"
    assert script.charge(subject, "2,0,0,1,0", 100, 2).allowed
    for _ in range(50):
        assert not script.charge(subject, "2,0,0,1,0", 110, 1).allowed
    assert script.charge(subject, "2,0,0,1,0", 160, 2).allowed


def test_a_clock_set_back_a_little_admits_no_more_requests(script: Script) -> None:
    subject = f"back:{next(_number)}"
    assert script.charge(subject, "1,0,0,1,0", 1000, 1).allowed
    assert not script.charge(subject, "1,0,0,1,0", 960, 1).allowed


def test_usage_of_a_clock_that_was_far_ahead_is_dropped(script: Script) -> None:
    subject = f"ahead:{next(_number)}"
    assert script.charge(subject, "1,0,0,1,0", 90_000, 1).allowed
    assert script.charge(subject, "1,0,0,1,0", 1000, 1).allowed
    assert not script.charge(subject, "1,0,0,1,0", 1000, 1).allowed


def test_the_work_of_a_request_does_not_grow_with_earlier_requests(script: Script) -> None:
    """Many requests are stored, and the next request reads only a few entries."""
    subject = f"long:{next(_number)}"
    for second in range(5000):
        assert script.charge(subject, "100,0,90000,1,0", 1000 + second, 1).allowed
    client = script._client
    client.config_resetstat()
    script.charge(subject, "100,0,90000,1,0", 6001, 1)
    stats = client.info("commandstats")
    assert stats["cmdstat_lrange"]["calls"] <= 4


# Several subjects


def test_a_refusal_of_one_subject_charges_none(script: Script, subtests: pytest.Subtests) -> None:
    one, hour, day = "10,0,0,1,0", "99,1,0,1,0", "99,0,1,1,0"
    roomy = "1000,0,0,1,0"
    cases = [
        ("the first is over its minute", [one, roomy], 6, 0, (60, 10, 60)),
        ("the last is over its minute", [roomy, one], 6, 1, (60, 10, 60)),
        ("the first is over its hour", [hour, roomy], 6, 0, (3600, 1, 3600)),
        ("the second of three is over its day", [roomy, day, roomy], 6, 1, (86400, 1, 86400)),
        ("the first of two that are over", [one, hour], 6, 0, (60, 10, 60)),
    ]
    for name, plans, units, refused, expected in cases:
        with subtests.test(name):
            number = next(_number)
            charges = [Charge(f"all:{number}:{i}", p, units) for i, p in enumerate(plans)]
            assert script.charge_all(charges, 100).allowed
            for _ in range(3):
                verdict = script.charge_all(charges, 100)
                assert (verdict.allowed, verdict.subject) == (False, refused)
                assert (verdict.window, verdict.limit, verdict.retry_after) == expected
            for charge, plan in zip(charges, plans, strict=True):
                if plan == roomy:
                    left = script.charge(charge.subject, plan, 100, 1).remaining
                    assert left == 1000 - units - 1


def test_the_verdict_is_of_the_subject_with_the_least_remaining(script: Script) -> None:
    number = next(_number)
    charges = [Charge(f"least:{number}:{limit}", f"{limit},0,0,1,0", 2) for limit in (9, 5, 7)]
    verdict = script.charge_all(charges, 100)
    assert (verdict.subject, verdict.limit, verdict.remaining) == (1, 5, 3)


def test_refunded_units_can_be_used_again_and_leave_nothing_behind(script: Script) -> None:
    plan, subject = "20,5,0,1,0", f"refund:{next(_number)}"
    first = script.charge(subject, plan, 100, 10)
    script.charge(subject, plan, 101, 10)
    assert not script.charge(subject, plan, 102, 1).allowed
    script.refund([Charge(subject, plan, 9)], first.second)
    assert script.charge(subject, plan, 102, 9).allowed
    verdict = script.charge(subject, plan, 103, 1)
    assert (verdict.allowed, verdict.retry_after) == (False, 57)
    # One unit of the first second is over, and with it the request counts in the hour.
    assert script.charge(subject, plan, 160, 1).allowed
    assert not script.charge(subject, plan, 160, 1).allowed
    assert script.charge(subject, plan, 161, 10).allowed
    assert script.charge(subject, plan, 290, 20).window == 3600


def test_a_refund_after_the_minute_gives_nothing_back(script: Script) -> None:
    plan, subject = "10,0,0,1,0", f"late:{next(_number)}"
    first = script.charge(subject, plan, 100, 10)
    assert script.charge(subject, plan, 160, 10).allowed
    script.refund([Charge(subject, plan, 9)], first.second)
    assert not script.charge(subject, plan, 160, 1).allowed


def test_an_address_has_a_share_of_the_tenant_s_limits(subtests: pytest.Subtests) -> None:
    own = {"requests_per_minute": 8, "requests_per_hour": 200}
    cases = [
        (limits.PLANS["free"], "30,250,2500,1,0"),
        (limits.PLANS["pro"], "75,2500,25000,1,0"),
        (limits.PLANS["team"], "150,7500,75000,1,0"),
        (limits.PLANS["enterprise"], "300,0,0,1,0"),
        (limits.plan_of("enterprise", own), "8,50,0,1,0"),
    ]
    for plan, expected in cases:
        with subtests.test(expected):
            assert plan.address_share().to_script_argument() == expected


# Responses of the HTTP API


async def test_headers_show_the_tightest_window(world: World) -> None:
    plan = {"requests_per_minute": 100, "requests_per_hour": 5}
    user = await world.user("agent_user", await world.tenant(limits=plan))
    answer = await user.get("/auth/me")
    assert answer.headers["x-ratelimit-window"] == "3600"
    assert answer.headers["x-ratelimit-limit"] == "5"
    assert answer.headers["x-ratelimit-remaining"] == "4"
    assert answer.headers["ratelimit-policy"] == '"hour";q=5;w=3600'


async def test_a_429_has_the_limit_and_the_time_to_retry(world: World) -> None:
    plan = {"requests_per_minute": 2, "burst_multiplier": 1}
    user = await world.user("agent_user", await world.tenant(limits=plan))
    assert (await user.get("/auth/me")).status_code == 200
    assert (await user.get("/auth/me")).status_code == 200
    answer = await user.get("/auth/me")
    assert answer.status_code == 429
    error = answer.json()["error"]
    assert error["code"] == "rate_limited"
    assert error["details"]["limit"] == 2
    assert error["details"]["window"] == 60
    assert 1 <= error["details"]["retry_after"] <= 60
    assert answer.headers["retry-after"] == str(error["details"]["retry_after"])
    assert answer.headers["x-ratelimit-remaining"] == "0"


@pytest.mark.parametrize(
    ("method", "path", "cost"),
    [
        ("GET", "/auth/me", 1),
        ("POST", "/users/invite", 2),
        ("DELETE", "/api/v1/tenants/ten_none", 2),
        ("PUT", "/api/v1/tenants/ten_none", 2),
        ("POST", "/test/chat", 10),
        ("POST", "/test//chat", 10),
        ("POST", "/test/chat//", 10),
        ("GET", "/nowhere", 1),
    ],
)
async def test_a_request_costs_by_its_type(world: World, method: str, path: str, cost: int) -> None:
    user = await world.user("viewer", await world.tenant(limits={"requests_per_minute": 100}))
    answer = await user(method, path)
    assert answer.headers["x-ratelimit-remaining"] == str(100 - cost)


async def test_all_users_of_a_tenant_share_its_limit(world: World) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 50})
    first, second = await world.user("viewer", tenant), await world.user("viewer", tenant)
    await first.get("/auth/me")
    answer = await second.get("/auth/me")
    assert answer.headers["x-ratelimit-remaining"] == "48"


async def test_free_plan_bursts_to_twice_its_minute(world: World) -> None:
    user = await world.user("viewer", await world.tenant("free"))
    answers = [await user.get("/auth/me") for _ in range(121)]
    assert [answer.status_code for answer in answers] == [200] * 120 + [429]


@pytest.mark.parametrize("plan", ["free", "pro", "team", "enterprise"])
def test_the_plans_have_their_documented_limits(plan: str) -> None:
    expected = {
        "free": (60, 1_000, 10_000, 5, 1, 2, 10, 1_024, 100_000),
        "pro": (300, 10_000, 100_000, 30, 5, 3, 30, 10_240, 1_000_000),
        "team": (600, 30_000, 300_000, 60, 10, 5, 60, 102_400, 5_000_000),
        "enterprise": (1_200, 0, 0, 300, 50, 5, 60, 512_000, 10_000_000),
    }
    # Of events, payloads, executions and conversations.
    days = {
        "free": (30, 30, 30, 365),
        "pro": (90, 90, 90, 1_095),
        "team": (180, 90, 180, 3_650),
        "enterprise": (365, 90, 365, 3_650),
    }
    assert msgspec.structs.astuple(limits.PLANS[plan]) == (*expected[plan], *days[plan])


async def test_callers_without_login_are_limited_by_address(
    stores: Stores, services: Services
) -> None:
    app = create_app(msgspec.structs.replace(stores.settings, anonymous_per_minute=3))
    await services.redis.flushdb()
    anonymous = Client(app)
    statuses = [(await anonymous.get("/auth/me")).status_code for _ in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert (await anonymous.get("/health/live")).status_code == 200
    await services.redis.flushdb()
    await app.state.services.close()


async def test_a_forwarded_address_counts_only_from_a_trusted_proxy(
    stores: Stores, services: Services
) -> None:
    direct = msgspec.structs.replace(stores.settings, anonymous_per_minute=2)
    behind_proxy = msgspec.structs.replace(direct, trusted_proxies=("10.0.0.0/8",))
    for configuration, expected in ((direct, 429), (behind_proxy, 401)):
        await services.redis.flushdb()
        app = create_app(configuration)
        caller = Client(app)
        for number in range(3):
            answer = await caller.get(
                "/auth/me", headers={"x-forwarded-for": f"198.51.100.{number}"}
            )
        assert answer.status_code == expected
        await app.state.services.close()
    await services.redis.flushdb()


async def _count_commands(services: Services, user: Client) -> dict[str, int]:
    """Returns how often Redis ran each command during a request."""
    await services.redis.config_resetstat()
    assert (await user.get("/auth/me")).status_code == 200
    stats = await services.redis.info("commandstats")
    return {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in stats.items()}


async def test_session_check_and_limit_are_one_round_trip(world: World, services: Services) -> None:
    user = await world.user("agent_user")
    await user.get("/auth/me")
    # A worker of another test uses Redis too; the commands of the request are in every count.
    counts = [await _count_commands(services, user) for _ in range(3)]
    assert min(count["evalsha"] for count in counts) == 1
    # All other commands ran inside the script.
    script_commands = {
        "mget",
        "time",
        "hmget",
        "lrange",
        "lindex",
        "rpush",
        "lset",
        "hset",
        "expire",
        "ltrim",
    }
    commands = set.intersection(*map(set, counts))
    assert commands - script_commands <= {"evalsha", "config|resetstat", "config", "info"}


async def _end_session(services: Services, user: Client) -> None:
    async with services.db.tx(user.tenant_id) as tx:
        await (await tx.raw()).execute(
            "UPDATE sessions SET ended_at = now() WHERE id = $1", user.session_id
        )


async def test_without_redis_requests_are_not_limited_but_sessions_are_checked(
    world: World, services: Services, stores: Stores
) -> None:
    user = await world.user("agent_user")
    app = create_app(stores.settings)
    caller = Client(app, user.token)
    assert (await caller.get("/auth/me")).status_code == 200
    stores.stop_redis()
    try:
        answer = await caller.get("/auth/me")
        assert answer.status_code == 200
        assert "x-ratelimit-limit" in answer.headers
        await _end_session(services, user)
        assert (await caller.get("/auth/me")).status_code == 401
        assert b"parley_limiter_degraded_total" in await app.state.reports.metrics.read()
    finally:
        stores.start_redis()
    await app.state.services.close()


async def test_a_request_with_an_ended_session_is_not_charged_to_its_tenant(
    world: World, services: Services
) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 3, "burst_multiplier": 1})
    ended, active = await world.user("viewer", tenant), await world.user("viewer", tenant)
    await _end_session(services, ended)
    assert (await ended.get("/auth/me")).status_code == 401
    statuses = [(await active.get("/auth/me")).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]


async def test_an_ended_session_is_refused_although_its_cached_copy_is_active(
    world: World, services: Services
) -> None:
    user = await world.user("viewer")
    assert (await user.get("/auth/me")).status_code == 200
    await _end_session(services, user)
    await services.redis.delete("parley:grants")
    assert (await user.get("/auth/me")).status_code == 401
    assert (await user.get("/auth/me")).status_code == 401


@pytest.mark.parametrize(
    ("lines", "subject"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9", "10.0.0.1"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9:443"], "203.0.113.9"),
        (["[2001:db8:1:2::7]:443"], "2001:db8:1:2::"),
    ],
)
async def test_the_forwarded_address_is_parsed_in_every_form_of_proxies(
    stores: Stores, services: Services, lines: list[str], subject: str
) -> None:
    app = create_app(msgspec.structs.replace(stores.settings, trusted_proxies=("10.0.0.0/8",)))
    await services.redis.flushdb()
    headers = [("x-forwarded-for", line) for line in lines]
    await Client(app).get("/auth/me", headers=headers)
    assert await services.redis.exists(f"parley:limit:{subject}")
    await app.state.services.close()
