"""Attempts that the throttle records in the database."""

import asyncio
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.kit import clock
from app.kit.errors import RateLimited
from app.kit.ids import new_id
from app.security import throttle
from app.security.throttle import AttemptResult, Rule, Subject
from app.services import Services
from db.session import ALL_TENANTS
from tests.security.locks import wait_for_blocked_transaction
from tests.security.throttle_rules import ACCOUNT, ADDRESS, NOON, after_noon

# Recorded attempts


def _create_account(rule: Rule = ACCOUNT) -> Subject:
    return Subject(rule, new_id("who"))


def _create_address(rule: Rule = ADDRESS) -> Subject:
    return Subject(rule, new_id("where"))


async def _record_attempt(
    services: Services, *subjects: Subject, succeeded: bool = False
) -> AttemptResult:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await throttle.record_attempt(tx, subjects, succeeded=succeeded)


async def _record_failures(
    services: Services, *subjects: Subject, times: int
) -> list[AttemptResult]:
    return [await _record_attempt(services, *subjects) for _ in range(times)]


async def _find_block(services: Services, *subjects: Subject) -> RateLimited | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        try:
            await throttle.refuse_blocked(tx, subjects)
        except RateLimited as problem:
            return problem
    return None


async def _read_failures(services: Services, subject: Subject) -> int | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int | None = await (await tx.raw()).fetchval(
            "SELECT failures FROM attempts WHERE id = $1", subject.id
        )
    return count


async def test_a_subject_without_failures_is_not_blocked(services: Services) -> None:
    assert await _find_block(services, _create_account(), _create_address()) is None


async def test_a_success_without_failures_passes(services: Services) -> None:
    assert await _record_attempt(
        services, _create_account(), _create_address(), succeeded=True
    ) == AttemptResult(passed=True)


async def test_a_success_without_failures_stores_no_count(
    services: Services,
) -> None:
    subject = _create_account()
    await _record_attempt(services, subject, succeeded=True)
    assert await _read_failures(services, subject) is None


async def test_a_failure_counts_against_every_subject(services: Services) -> None:
    subjects = _create_account(), _create_address()
    await _record_failures(services, *subjects, times=2)
    assert [await _read_failures(services, subject) for subject in subjects] == [2, 2]


async def test_failures_below_the_limit_start_no_block(services: Services) -> None:
    subject = _create_account()
    await _record_failures(services, subject, times=2)
    assert await _find_block(services, subject) is None


async def test_the_failure_that_reaches_the_limit_starts_a_block(services: Services) -> None:
    attempts = await _record_failures(services, _create_account(), times=3)
    assert [attempt.starts_block for attempt in attempts] == [False, False, True]


async def test_the_failure_that_starts_a_block_is_not_refused(services: Services) -> None:
    attempts = await _record_failures(services, _create_account(), times=3)
    assert attempts[-1].problem is None


async def test_a_blocked_subject_is_refused(services: Services) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=3)
        problem = await _find_block(services, subject)
    assert problem is not None
    assert problem.details == {"limit": 3, "window": 100, "retry_after": 10}


async def test_an_attempt_during_a_block_is_refused(
    services: Services, subtests: pytest.Subtests
) -> None:
    for succeeded in (False, True):
        with subtests.test(succeeded=succeeded):
            subject = _create_account()
            with clock.frozen(NOON):
                await _record_failures(services, subject, times=3)
                attempt = await _record_attempt(services, subject, succeeded=succeeded)
            assert (attempt.passed, attempt.starts_block) == (False, False)
            assert attempt.problem is not None


async def test_an_attempt_during_a_block_is_not_counted(
    services: Services, subtests: pytest.Subtests
) -> None:
    for succeeded in (False, True):
        with subtests.test(succeeded=succeeded):
            subject, other = _create_account(), _create_address()
            with clock.frozen(NOON):
                await _record_failures(services, subject, other, times=3)
                await _record_attempt(services, subject, other, succeeded=succeeded)
            assert [await _read_failures(services, item) for item in (subject, other)] == [3, 3]


async def test_of_two_blocks_the_longer_is_reported(services: Services) -> None:
    account, address = _create_account(), _create_address()
    with clock.frozen(NOON):
        await _record_failures(services, account, times=3)
        await _record_failures(services, address, times=5)
        problem = await _find_block(services, account, address)
    assert problem is not None
    assert problem.details == {"limit": 5, "window": 100, "retry_after": 60}


async def test_a_block_of_an_address_refuses_every_account(services: Services) -> None:
    address = _create_address()
    with clock.frozen(NOON):
        await _record_failures(services, address, times=5)
        attempt = await _record_attempt(services, _create_account(), address, succeeded=True)
    assert attempt.problem is not None


async def test_a_refusal_has_the_seconds_to_wait_in_message_and_header(services: Services) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=3)
    with clock.frozen(after_noon(7.5)):
        problem = await _find_block(services, subject)
    assert problem is not None
    assert "3 seconds" in problem.message
    assert problem.headers == {"Retry-After": "3"}


async def test_a_failure_after_a_block_starts_a_longer_one(
    services: Services,
) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=3)
    with clock.frozen(after_noon(10)):
        attempt = await _record_attempt(services, subject)
        problem = await _find_block(services, subject)
    assert attempt == AttemptResult(starts_block=True)
    assert problem is not None
    assert problem.headers == {"Retry-After": "20"}


async def test_a_success_after_a_block_passes(services: Services) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=3)
    with clock.frozen(after_noon(10)):
        assert (await _record_attempt(services, subject, succeeded=True)).passed


async def test_a_success_clears_the_count_only_if_its_rule_says_so(services: Services) -> None:
    account, address = _create_account(), _create_address()
    await _record_failures(services, account, address, times=2)
    await _record_attempt(services, account, address, succeeded=True)
    assert [await _read_failures(services, item) for item in (account, address)] == [None, 2]


async def test_a_success_does_not_clear_the_count_of_another_subject(services: Services) -> None:
    account, other = _create_account(), _create_account()
    await _record_failures(services, other, times=2)
    await _record_attempt(services, account, succeeded=True)
    assert await _read_failures(services, other) == 2


async def test_failures_outside_the_window_do_not_count(services: Services) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=2)
    with clock.frozen(after_noon(100)):
        attempts = await _record_failures(services, subject, times=2)
    assert [attempt.starts_block for attempt in attempts] == [False, False]


async def test_clearing_failures_ends_a_block(services: Services) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=3)
        async with services.db.tx(ALL_TENANTS) as tx:
            await throttle.clear_failures(tx, [subject])
        assert await _find_block(services, subject) is None


async def test_clearing_one_subject_does_not_clear_others(services: Services) -> None:
    subject, other = _create_account(), _create_account()
    await _record_failures(services, subject, other, times=2)
    async with services.db.tx(ALL_TENANTS) as tx:
        await throttle.clear_failures(tx, [subject])
    assert await _read_failures(services, other) == 2


async def test_a_failure_that_is_rolled_back_is_not_counted(services: Services) -> None:
    subject = _create_account()
    tx = services.db.begin(ALL_TENANTS)
    await throttle.record_attempt(tx, [subject], succeeded=False)
    await tx.rollback()
    assert await _read_failures(services, subject) is None


class Model:
    """The rules in plain Python, for one account and one network address."""

    def __init__(self) -> None:
        self._rules = {"account": ACCOUNT, "address": ADDRESS}
        self._moments: dict[str, list[datetime]] = {"account": [], "address": []}
        self._until = {"account": NOON, "address": NOON}

    def attempt(self, now: datetime, *, succeeded: bool) -> tuple[bool, int]:
        """Returns whether the attempt passes, and the seconds that it must wait."""
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
async def test_attempts_match_the_plain_model(
    services: Services, attempts: list[tuple[int, bool]]
) -> None:
    model, subjects, now = Model(), (_create_account(), _create_address()), NOON
    for pause, succeeded in attempts:
        now += timedelta(seconds=pause)
        with clock.frozen(now):
            attempt = await _record_attempt(services, *subjects, succeeded=succeeded)
        problem = attempt.problem
        wait = int((problem.headers or {})["Retry-After"]) if problem else 0
        assert (attempt.passed, wait) == model.attempt(now, succeeded=succeeded)


# Many at once


async def test_of_fifty_failures_at_once_those_up_to_the_limit_are_recorded(
    services: Services,
) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(*(_record_attempt(services, subject) for _ in range(50)))
    assert len([item for item in attempts if item.problem is None]) == 3


async def test_of_fifty_failures_at_once_one_starts_the_block(services: Services) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(*(_record_attempt(services, subject) for _ in range(50)))
    assert len([item for item in attempts if item.starts_block]) == 1


async def test_fifty_failures_at_once_from_fifty_addresses_are_counted_for_the_account(
    services: Services,
) -> None:
    subject = _create_account()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(
            *(_record_attempt(services, subject, _create_address()) for _ in range(50))
        )
    assert len([item for item in attempts if item.problem is None]) == 3


async def test_fifty_failures_at_once_on_fifty_accounts_are_counted_for_the_address(
    services: Services,
) -> None:
    address = _create_address()
    with clock.frozen(NOON):
        attempts = await asyncio.gather(
            *(_record_attempt(services, _create_account(), address) for _ in range(50))
        )
    assert len([item for item in attempts if item.problem is None]) == 5


async def test_fifty_successes_at_once_all_pass(services: Services) -> None:
    subjects = _create_account(), _create_address()
    await _record_failures(services, *subjects, times=2)
    attempts = await asyncio.gather(
        *(_record_attempt(services, *subjects, succeeded=True) for _ in range(50))
    )
    assert all(item.passed for item in attempts)


async def test_an_attempt_waits_for_the_commit_of_the_one_before(services: Services) -> None:
    """The count is locked from the read to the commit, so that no attempt uses a stale one."""
    subject = _create_account()
    with clock.frozen(NOON):
        await _record_failures(services, subject, times=2)
        async with services.db.tx(ALL_TENANTS) as tx:
            await throttle.record_attempt(tx, [subject], succeeded=False)
            second = asyncio.create_task(_record_attempt(services, subject, succeeded=True))
            await wait_for_blocked_transaction(services)
        assert (await second).problem is not None


async def test_attempts_with_their_subjects_in_either_order_do_not_deadlock(
    services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[tuple[bool, bool], bool]] = [
        ((False, False), True),
        ((True, True), True),
        ((False, True), False),
        ((False, True), True),
    ]
    for outcomes, cleared in cases:
        with subtests.test(outcomes=outcomes, cleared=cleared):
            account = _create_account(
                Rule("test_ever", 1_000_000, 100, (1,), cleared_by_success=cleared)
            )
            address = _create_address(Rule("test_ever", 1_000_000, 100, (1,)))
            await _record_attempt(services, account, address)
            attempts = list(zip([(account, address), (address, account)], outcomes, strict=True))
            results = await asyncio.gather(
                *(
                    _record_attempt(services, *pair, succeeded=succeeded)
                    for _ in range(30)
                    for pair, succeeded in attempts
                ),
                return_exceptions=True,
            )
            assert [item for item in results if isinstance(item, BaseException)] == []
