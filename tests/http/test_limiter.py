"""Rate limits: gate.lua compared with an oracle, several subjects, and refunds."""

import itertools
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.http.limiter import SCRIPT, to_verdict
from app.security import plans
from app.security.plans import Charge
from tests.http.oracle import Oracle
from tests.lengths import rounds
from tests.stores import Stores

_number = itertools.count()


@pytest.fixture(scope="module")
def script(stores: Stores) -> "Script":
    return Script(redis.Redis.from_url(stores.redis.url))


class Script:
    """gate.lua, run at a time that the test sets."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._run = client.register_script(SCRIPT)

    def charge(self, subject: str, plan: str, now: int, units: int) -> plans.Verdict:
        return self.charge_all([Charge(subject, plan, units)], now)

    def charge_all(self, charges: list[Charge], now: int) -> plans.Verdict:
        return to_verdict(self._call("charge", charges, now))

    def refund(self, charges: list[Charge], charged_at: int) -> None:
        self._call("refund", charges, charged_at)

    def _call(self, mode: str, charges: list[Charge], now: int) -> list[Any]:
        keys = ["", "", ""]
        args: list[str | int] = [now, mode, "", "", "", 60]
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
    max_examples=rounds(80, 600),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
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
        limits = {plans.MINUTE: oracle.minute_limit(now), plans.HOUR: plan[1], plans.DAY: plan[2]}
        assert verdict.limit == limits[verdict.window]
        assert verdict.remaining <= verdict.limit
        if admitted:
            shown = (verdict.window, verdict.limit, verdict.remaining)
            assert shown == oracle.tightest(now)
        else:
            assert verdict.remaining == 0
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
    for second in range(1000):
        assert script.charge(subject, "100,0,90000,1,0", 1000 + second, 1).allowed
    client = script._client
    client.config_resetstat()
    script.charge(subject, "100,0,90000,1,0", 2001, 1)
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
    for name, subject_plans, units, refused, expected in cases:
        with subtests.test(name):
            number = next(_number)
            charges = [Charge(f"all:{number}:{i}", p, units) for i, p in enumerate(subject_plans)]
            assert script.charge_all(charges, 100).allowed
            for _ in range(3):
                verdict = script.charge_all(charges, 100)
                assert (verdict.allowed, verdict.subject) == (False, refused)
                assert (verdict.window, verdict.limit, verdict.retry_after) == expected
            for charge, plan in zip(charges, subject_plans, strict=True):
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
        (plans.PLANS["free"], "30,250,2500,1,0"),
        (plans.PLANS["pro"], "75,2500,25000,1,0"),
        (plans.PLANS["team"], "150,7500,75000,1,0"),
        (plans.PLANS["enterprise"], "300,0,0,1,0"),
        (plans.plan_of("enterprise", own), "8,50,0,1,0"),
    ]
    for plan, expected in cases:
        with subtests.test(expected):
            assert plan.address_share().to_script_argument() == expected
