"""The arithmetic of the throttle rules."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.security import throttle
from app.security.throttle import FailureCount, Rule, Subject, add_failure
from tests.security.throttle_rules import ACCOUNT, NOON, after_noon

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


# The arithmetic


def _number_failures(rule: Rule, gaps: Sequence[int]) -> list[tuple[datetime, int, datetime]]:
    """Returns time, number within the window and start of the window for each failure."""
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


def _count_failures(rule: Rule, moments: Sequence[datetime]) -> list[FailureCount]:
    counts = [FailureCount(0, moments[0])]
    for now in moments:
        counts.append(add_failure(rule, counts[-1], now))
    return counts[1:]


@given(rule=RULES, gaps=GAPS)
def test_failures_are_counted_from_the_first_of_their_window(rule: Rule, gaps: list[int]) -> None:
    expected = _number_failures(rule, gaps)
    counts = _count_failures(rule, [now for now, _, _ in expected])
    assert [(count.failures, count.since) for count in counts] == [
        (number, since) for _, number, since in expected
    ]


@given(rule=RULES, gaps=GAPS)
def test_each_failure_from_the_limit_on_starts_the_next_wait(rule: Rule, gaps: list[int]) -> None:
    for count, (now, number, _) in zip(
        _count_failures(rule, [now for now, _, _ in _number_failures(rule, gaps)]),
        _number_failures(rule, gaps),
        strict=True,
    ):
        costs = [0] * (rule.limit - 1) + list(rule.waits)
        assert count.wait_seconds(now) == costs[min(number, len(costs)) - 1]


def test_the_last_wait_of_a_rule_repeats() -> None:
    counts = _count_failures(ACCOUNT, [NOON] * 7)
    assert [count.wait_seconds(NOON) for count in counts] == [0, 0, 10, 20, 40, 40, 40]


def test_a_failure_after_the_window_is_the_first_of_the_next() -> None:
    assert add_failure(ACCOUNT, FailureCount(9, NOON), after_noon(100)) == FailureCount(
        1, after_noon(100)
    )


def test_a_failure_at_the_very_end_of_the_window_still_counts() -> None:
    assert add_failure(ACCOUNT, FailureCount(1, NOON), after_noon(99.999)) == FailureCount(2, NOON)


@given(microseconds=st.integers(1, 10**9))
def test_a_wait_is_the_least_number_of_whole_seconds_that_is_enough(microseconds: int) -> None:
    rest = timedelta(microseconds=microseconds)
    wait = timedelta(seconds=FailureCount(3, NOON, NOON + rest).wait_seconds(NOON))
    assert wait - timedelta(seconds=1) < rest <= wait


@given(past=st.integers(0, 10**9))
def test_a_wait_that_is_over_is_zero(past: int) -> None:
    assert FailureCount(3, NOON, NOON - timedelta(microseconds=past)).wait_seconds(NOON) == 0


def test_the_wait_without_a_block_is_zero() -> None:
    assert FailureCount(2, NOON).wait_seconds(NOON) == 0


@given(rule=RULES, failures=st.integers(0, 20))
def test_an_attempt_after_the_whole_wait_is_not_blocked(rule: Rule, failures: int) -> None:
    count = add_failure(rule, FailureCount(failures, NOON), NOON)
    assert count.wait_seconds(after_noon(count.wait_seconds(NOON))) == 0


# The rules in use


def test_an_account_has_five_failures_before_it_waits(subtests: pytest.Subtests) -> None:
    cases: list[Rule] = [throttle.SIGN_IN, throttle.CODE, throttle.PASSWORD]
    for rule in cases:
        with subtests.test(rule=rule):
            waits = [count.wait_seconds(NOON) for count in _count_failures(rule, [NOON] * 5)]
            assert [wait > 0 for wait in waits] == [False, False, False, False, True]


def test_the_waits_of_an_account_grow(subtests: pytest.Subtests) -> None:
    cases: list[Rule] = [throttle.SIGN_IN, throttle.CODE, throttle.PASSWORD]
    for rule in cases:
        with subtests.test(rule=rule):
            assert list(rule.waits) == sorted(set(rule.waits))


def test_an_address_has_fifty_failures_in_fifteen_minutes(subtests: pytest.Subtests) -> None:
    cases: list[Rule] = [throttle.SIGN_IN_ADDRESS, throttle.CODE_ADDRESS]
    for rule in cases:
        with subtests.test(rule=rule):
            assert (rule.limit, rule.window_seconds) == (50, 900)


def test_only_the_count_of_an_account_is_cleared_by_success(subtests: pytest.Subtests) -> None:
    for rule in REAL_RULES:
        with subtests.test(rule=rule):
            accounts = {throttle.SIGN_IN, throttle.CODE, throttle.PASSWORD}
            assert rule.cleared_by_success == (rule in accounts)


def test_the_same_name_is_another_subject_under_every_rule() -> None:
    assert len({Subject(rule, "ada@example.com").id for rule in REAL_RULES}) == len(REAL_RULES)


def test_the_id_of_a_subject_does_not_reveal_its_name() -> None:
    assert "ada" not in Subject(throttle.SIGN_IN, "ada@example.com").id
