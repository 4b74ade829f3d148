"""Guessing costs time: the arithmetic of waiting, and how attempts are judged in the database."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.kit import clock
from app.kit.errors import RateLimited
from app.kit.ids import new_id
from app.security import throttle
from app.security.throttle import AttemptResult, FailureCount, Rule, Subject, add_failure
from app.services import Services
from db.session import ALL_TENANTS

NOON = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
ACCOUNT = Rule("test_account", 3, 100, (10, 20, 40), cleared_by_success=True)
ADDRESS = Rule("test_address", 5, 100, (60,))
REAL_RULES = [
    throttle.SIGN_IN,
    throttle.SIGN_IN_ADDRESS,
    throttle.CODE,
    throttle.CODE_ADDRESS,
    throttle.PASSWORD,
    throttle.MAIL,
]

RULES = st.builds(
    Rule,
    st.just("test_any"),
    st.integers(1, 6),
    st.integers(1, 300),
    st.lists(st.integers(1, 100), min_size=1, max_size=5).map(tuple),
)
GAPS = st.lists(st.integers(0, 120), min_size=1, max_size=40)


def _later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


# The arithmetic


def _numbered(rule: Rule, gaps: Sequence[int]) -> list[tuple[datetime, int, datetime]]:
    """When each failure comes, which one of its window it is, and when that window began."""
    failures: list[tuple[datetime, int, datetime]] = []
    now = since = NOON
    number = 0
    for gap in gaps:
        now += timedelta(seconds=gap)
        if number == 0 or (now - since).total_seconds() >= rule.window_seconds:
            number, since = 0, now
        number += 1
        failures.append((now, number, since))
    return failures


def _counted(rule: Rule, moments: Sequence[datetime]) -> list[FailureCount]:
    counts = [FailureCount(0, moments[0])]
    for now in moments:
        counts.append(add_failure(rule, counts[-1], now))
    return counts[1:]


@given(rule=RULES, gaps=GAPS)
def test_failures_are_counted_from_the_first_of_their_window(rule: Rule, gaps: list[int]) -> None:
    expected = _numbered(rule, gaps)
    counts = _counted(rule, [now for now, _, _ in expected])
    assert [(count.failures, count.since) for count in counts] == [
        (number, since) for _, number, since in expected
    ]


@given(rule=RULES, gaps=GAPS)
def test_from_the_last_free_failure_on_each_costs_the_next_wait(
    rule: Rule, gaps: list[int]
) -> None:
    for count, (now, number, _) in zip(
        _counted(rule, [now for now, _, _ in _numbered(rule, gaps)]),
        _numbered(rule, gaps),
        strict=True,
    ):
        costs = [0] * (rule.limit - 1) + list(rule.waits)
        assert count.wait_seconds(now) == costs[min(number, len(costs)) - 1]


def test_the_waits_of_a_rule_are_taken_one_by_one_and_the_last_is_kept() -> None:
    counts = _counted(ACCOUNT, [NOON] * 7)
    assert [count.wait_seconds(NOON) for count in counts] == [0, 0, 10, 20, 40, 40, 40]


def test_a_failure_after_the_window_is_the_first_of_the_next() -> None:
    assert add_failure(ACCOUNT, FailureCount(9, NOON), _later(100)) == FailureCount(1, _later(100))


def test_a_failure_at_the_very_end_of_the_window_still_counts() -> None:
    assert add_failure(ACCOUNT, FailureCount(1, NOON), _later(99.999)) == FailureCount(2, NOON)


@given(microseconds=st.integers(1, 10**9))
def test_a_wait_is_the_least_number_of_whole_seconds_that_is_enough(microseconds: int) -> None:
    rest = timedelta(microseconds=microseconds)
    wait = timedelta(seconds=FailureCount(3, NOON, NOON + rest).wait_seconds(NOON))
    assert wait - timedelta(seconds=1) < rest <= wait


@given(past=st.integers(0, 10**9))
def test_a_wait_that_is_over_is_nothing(past: int) -> None:
    assert FailureCount(3, NOON, NOON - timedelta(microseconds=past)).wait_seconds(NOON) == 0


def test_who_was_never_blocked_waits_for_nothing() -> None:
    assert FailureCount(2, NOON).wait_seconds(NOON) == 0


@given(rule=RULES, failures=st.integers(0, 20))
def test_who_waits_as_told_is_not_made_to_wait_again(rule: Rule, failures: int) -> None:
    count = add_failure(rule, FailureCount(failures, NOON), NOON)
    assert count.wait_seconds(_later(count.wait_seconds(NOON))) == 0


# The rules in use


@pytest.mark.parametrize("rule", [throttle.SIGN_IN, throttle.CODE, throttle.PASSWORD])
def test_an_account_has_five_failures_before_it_waits(rule: Rule) -> None:
    waits = [count.wait_seconds(NOON) for count in _counted(rule, [NOON] * 5)]
    assert [wait > 0 for wait in waits] == [False, False, False, False, True]


@pytest.mark.parametrize("rule", [throttle.SIGN_IN, throttle.CODE, throttle.PASSWORD])
def test_an_accounts_waits_grow(rule: Rule) -> None:
    assert list(rule.waits) == sorted(set(rule.waits))


@pytest.mark.parametrize("rule", [throttle.SIGN_IN_ADDRESS, throttle.CODE_ADDRESS])
def test_an_address_has_fifty_failures_in_fifteen_minutes(rule: Rule) -> None:
    assert (rule.limit, rule.window_seconds) == (50, 900)


@pytest.mark.parametrize("rule", REAL_RULES, ids=lambda rule: rule.name)
def test_only_an_accounts_count_is_cleared_by_success(rule: Rule) -> None:
    accounts = {throttle.SIGN_IN, throttle.CODE, throttle.PASSWORD}
    assert rule.cleared_by_success == (rule in accounts)


def test_the_same_name_is_another_subject_under_every_rule() -> None:
    assert len({Subject(rule, "ada@example.com").id for rule in REAL_RULES}) == len(REAL_RULES)


def test_a_subject_does_not_tell_whom_it_counts() -> None:
    assert "ada" not in Subject(throttle.SIGN_IN, "ada@example.com").id


# Judging, in the database


def _account(rule: Rule = ACCOUNT) -> Subject:
    return Subject(rule, new_id("who"))


def _address(rule: Rule = ADDRESS) -> Subject:
    return Subject(rule, new_id("where"))


async def _judge(services: Services, *subjects: Subject, succeeded: bool = False) -> AttemptResult:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await throttle.record_attempt(tx, subjects, succeeded=succeeded)


async def _fail(services: Services, *subjects: Subject, times: int) -> list[AttemptResult]:
    return [await _judge(services, *subjects) for _ in range(times)]


async def _blocked(services: Services, *subjects: Subject) -> RateLimited | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        try:
            await throttle.refuse_blocked(tx, subjects)
        except RateLimited as problem:
            return problem
    return None


async def _failures(services: Services, subject: Subject) -> int | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int | None = await (await tx.raw()).fetchval(
            "SELECT failures FROM attempts WHERE id = $1", subject.id
        )
    return count


async def test_who_never_failed_is_not_refused(services: Services) -> None:
    assert await _blocked(services, _account(), _address()) is None


async def test_a_right_attempt_of_who_never_failed_passes(services: Services) -> None:
    assert await _judge(services, _account(), _address(), succeeded=True) == AttemptResult(
        passed=True
    )


async def test_a_right_attempt_of_who_never_failed_leaves_nothing_behind(
    services: Services,
) -> None:
    subject = _account()
    await _judge(services, subject, succeeded=True)
    assert await _failures(services, subject) is None


async def test_a_failure_counts_against_every_subject(services: Services) -> None:
    subjects = _account(), _address()
    await _fail(services, *subjects, times=2)
    assert [await _failures(services, subject) for subject in subjects] == [2, 2]


async def test_failures_before_the_last_free_one_refuse_nobody(services: Services) -> None:
    subject = _account()
    await _fail(services, subject, times=2)
    assert await _blocked(services, subject) is None


async def test_the_last_free_failure_starts_a_wait_and_says_so(services: Services) -> None:
    attempts = await _fail(services, _account(), times=3)
    assert [attempt.starts_block for attempt in attempts] == [False, False, True]


async def test_the_failure_that_starts_a_wait_is_itself_still_judged(services: Services) -> None:
    attempts = await _fail(services, _account(), times=3)
    assert attempts[-1].problem is None


async def test_who_must_wait_is_refused_before_any_work(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=3)
        problem = await _blocked(services, subject)
    assert problem is not None
    assert problem.details == {"limit": 3, "window": 100, "retry_after": 10}


@pytest.mark.parametrize("succeeded", [False, True])
async def test_an_attempt_while_one_must_wait_is_not_judged(
    services: Services, *, succeeded: bool
) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=3)
        attempt = await _judge(services, subject, succeeded=succeeded)
    assert (attempt.passed, attempt.starts_block) == (False, False)
    assert attempt.problem is not None


@pytest.mark.parametrize("succeeded", [False, True])
async def test_an_attempt_while_one_must_wait_counts_for_nothing(
    services: Services, *, succeeded: bool
) -> None:
    subject, other = _account(), _address()
    with clock.frozen(NOON):
        await _fail(services, subject, other, times=3)
        await _judge(services, subject, other, succeeded=succeeded)
    assert [await _failures(services, item) for item in (subject, other)] == [3, 3]


async def test_of_two_waits_the_longer_is_told(services: Services) -> None:
    account, address = _account(), _address()
    with clock.frozen(NOON):
        await _fail(services, account, times=3)
        await _fail(services, address, times=5)
        problem = await _blocked(services, account, address)
    assert problem is not None
    assert problem.details == {"limit": 5, "window": 100, "retry_after": 60}


async def test_a_wait_of_the_address_alone_refuses_every_account(services: Services) -> None:
    address = _address()
    with clock.frozen(NOON):
        await _fail(services, address, times=5)
        attempt = await _judge(services, _account(), address, succeeded=True)
    assert attempt.problem is not None


async def test_the_refusal_tells_the_seconds_in_words_and_as_a_header(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=3)
    with clock.frozen(_later(7.5)):
        problem = await _blocked(services, subject)
    assert problem is not None
    assert "3 seconds" in problem.message
    assert problem.headers == {"Retry-After": "3"}


async def test_after_the_wait_the_next_failure_is_judged_and_waits_longer(
    services: Services,
) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=3)
    with clock.frozen(_later(10)):
        attempt = await _judge(services, subject)
        problem = await _blocked(services, subject)
    assert attempt == AttemptResult(starts_block=True)
    assert problem is not None
    assert problem.headers == {"Retry-After": "20"}


async def test_after_the_wait_a_right_attempt_passes(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=3)
    with clock.frozen(_later(10)):
        assert (await _judge(services, subject, succeeded=True)).passed


async def test_success_clears_only_what_success_may_clear(services: Services) -> None:
    account, address = _account(), _address()
    await _fail(services, account, address, times=2)
    await _judge(services, account, address, succeeded=True)
    assert [await _failures(services, item) for item in (account, address)] == [None, 2]


async def test_success_clears_nobody_elses_count(services: Services) -> None:
    account, other = _account(), _account()
    await _fail(services, other, times=2)
    await _judge(services, account, succeeded=True)
    assert await _failures(services, other) == 2


async def test_what_is_outside_the_window_is_forgotten(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=2)
    with clock.frozen(_later(100)):
        attempts = await _fail(services, subject, times=2)
    assert [attempt.starts_block for attempt in attempts] == [False, False]


async def test_forgetting_ends_a_wait(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=3)
        async with services.db.tx(ALL_TENANTS) as tx:
            await throttle.clear_failures(tx, [subject])
        assert await _blocked(services, subject) is None


async def test_forgetting_one_keeps_the_others(services: Services) -> None:
    subject, other = _account(), _account()
    await _fail(services, subject, other, times=2)
    async with services.db.tx(ALL_TENANTS) as tx:
        await throttle.clear_failures(tx, [subject])
    assert await _failures(services, other) == 2


async def test_a_failure_that_is_rolled_back_is_not_counted(services: Services) -> None:
    subject = _account()
    tx = services.db.begin(ALL_TENANTS)
    await throttle.record_attempt(tx, [subject], succeeded=False)
    await tx.rollback()
    assert await _failures(services, subject) is None


class Model:
    """What the rules say, in plain Python: an account and an address that is tried from."""

    def __init__(self) -> None:
        self._rules = {"account": ACCOUNT, "address": ADDRESS}
        self._moments: dict[str, list[datetime]] = {"account": [], "address": []}
        self._until = {"account": NOON, "address": NOON}

    def attempt(self, now: datetime, *, succeeded: bool) -> tuple[bool, int]:
        """Whether it passes, and for how many seconds it is refused."""
        wait = max((until - now).total_seconds() for until in self._until.values())
        if wait > 0:
            return False, int(wait)
        if succeeded:
            self._moments["account"] = []
            return True, 0
        for name, rule in self._rules.items():
            moments = self._moments[name]
            if moments and (now - moments[0]).total_seconds() >= rule.window_seconds:
                moments.clear()
            moments.append(now)
            waits = [0] * (rule.limit - 1) + list(rule.waits)
            cost = waits[min(len(moments), len(waits)) - 1]
            self._until[name] = now + timedelta(seconds=cost)
        return False, 0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    attempts=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 3), st.sampled_from([9, 10, 20, 40, 60, 99, 100, 101])),
            st.sampled_from([False, False, False, True]),
        ),
        max_size=25,
    )
)
async def test_attempts_are_judged_as_the_plain_model_says(
    services: Services, attempts: list[tuple[int, bool]]
) -> None:
    model, subjects, now = Model(), (_account(), _address()), NOON
    for pause, succeeded in attempts:
        now += timedelta(seconds=pause)
        with clock.frozen(now):
            attempt = await _judge(services, *subjects, succeeded=succeeded)
        problem = attempt.problem
        wait = int((problem.headers or {})["Retry-After"]) if problem else 0
        assert (attempt.passed, wait) == model.attempt(now, succeeded=succeeded)


# Many at once


async def test_of_fifty_failures_at_once_only_the_free_ones_are_judged(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(*(_judge(services, subject) for _ in range(50)))
    assert len([item for item in attempts if item.problem is None]) == 3


async def test_of_fifty_failures_at_once_one_starts_the_wait(services: Services) -> None:
    subject = _account()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(*(_judge(services, subject) for _ in range(50)))
    assert len([item for item in attempts if item.starts_block]) == 1


async def test_fifty_failures_at_once_from_fifty_addresses_are_counted_for_the_account(
    services: Services,
) -> None:
    subject = _account()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(*(_judge(services, subject, _address()) for _ in range(50)))
    assert len([item for item in attempts if item.problem is None]) == 3


async def test_fifty_failures_at_once_on_fifty_accounts_are_counted_for_the_address(
    services: Services,
) -> None:
    address = _address()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(*(_judge(services, _account(), address) for _ in range(50)))
    assert len([item for item in attempts if item.problem is None]) == 5


async def test_fifty_right_attempts_at_once_all_pass(services: Services) -> None:
    subjects = _account(), _address()
    await _fail(services, *subjects, times=2)
    attempts = await asyncio.gather(
        *(_judge(services, *subjects, succeeded=True) for _ in range(50))
    )
    assert all(item.passed for item in attempts)


async def test_an_attempt_waits_for_the_judgement_of_the_one_before(services: Services) -> None:
    """The count is locked from its reading to the commit, so nobody judges by a stale one."""
    subject = _account()
    with clock.frozen(NOON):
        await _fail(services, subject, times=2)
        async with services.db.tx(ALL_TENANTS) as tx:
            await throttle.record_attempt(tx, [subject], succeeded=False)
            second = asyncio.create_task(_judge(services, subject, succeeded=True))
            await _until_somebody_waits(services)
        assert (await second).problem is not None


async def _until_somebody_waits(services: Services) -> None:
    """Until another transaction stands before a lock."""
    async with asyncio.timeout(10):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                if await (await tx.raw()).fetchval("SELECT 1 FROM pg_locks WHERE NOT granted"):
                    return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("outcomes", "cleared"),
    [
        pytest.param((False, False), True, id="failures"),
        pytest.param((True, True), True, id="successes that clear"),
        pytest.param((False, True), False, id="failures and successes"),
        pytest.param((False, True), True, id="failures and successes that clear"),
    ],
)
async def test_attempts_that_name_their_subjects_in_either_order_never_wait_for_each_other(
    services: Services, outcomes: tuple[bool, bool], *, cleared: bool
) -> None:
    account = _account(Rule("test_ever", 1_000_000, 100, (1,), cleared_by_success=cleared))
    address = _address(Rule("test_ever", 1_000_000, 100, (1,)))
    await _judge(services, account, address)
    ways = list(zip([(account, address), (address, account)], outcomes, strict=True))
    results = await asyncio.gather(
        *(
            _judge(services, *pair, succeeded=succeeded)
            for _ in range(30)
            for pair, succeeded in ways
        ),
        return_exceptions=True,
    )
    assert [item for item in results if isinstance(item, BaseException)] == []
