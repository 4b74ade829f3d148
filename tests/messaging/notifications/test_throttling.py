"""Providers that get too many messages: what waits, what counts as an attempt."""

from datetime import timedelta
from typing import Any

import pytest

from app.domain.messaging.notifications import sending
from app.domain.messaging.notifications.sending import Attempt, NextStep, SendRequest
from app.kit import clock

THROTTLED = Attempt(5, "the provider answered 429", "provider_error", is_throttled=True)


def _request(**values: Any) -> SendRequest:
    fields = dict.fromkeys(SendRequest.__struct_fields__)
    fields |= {"is_test": False, "attempt": 0, **values}
    return SendRequest(**fields)  # type: ignore[arg-type]


def test_a_throttled_message_waits_without_counting(subtests: pytest.Subtests) -> None:
    for retry_after, seconds in [
        (None, 5.0),
        (0.0, 5.0),
        (0.5, 1.0),
        (30.0, 30.0),
        (86_400.0, 600.0),
    ]:
        with subtests.test(retry_after=retry_after, seconds=seconds):
            attempt = Attempt(
                5, "429", "provider_error", is_throttled=True, retry_after=retry_after
            )
            assert sending.throttled_seconds(attempt, _request()) == seconds


def test_after_an_hour_the_attempts_count() -> None:
    now = clock.now()
    recent, old = now - timedelta(minutes=59), now - timedelta(minutes=61)
    assert sending.throttled_seconds(THROTTLED, _request(throttled_at=recent)) is not None
    assert sending.throttled_seconds(THROTTLED, _request(throttled_at=old)) is None


def test_a_test_does_not_wait() -> None:
    assert sending.throttled_seconds(THROTTLED, _request(is_test=True)) is None


def test_other_outcomes_count(subtests: pytest.Subtests) -> None:
    for attempt in [Attempt(5), Attempt(5, "500", "provider_error")]:
        with subtests.test(attempt=attempt):
            assert sending.throttled_seconds(attempt, _request()) is None


_FAILED = Attempt(5, "500", "provider_error")
_STEPS = [
    (Attempt(5), 1, NextStep("delivered")),
    (_FAILED, 1, NextStep("pending", 1.0)),
    (_FAILED, 2, NextStep("pending", 5.0)),
    (_FAILED, 3, NextStep("failed")),
    (Attempt(5, "401", "provider_error", is_permanent=True), 1, NextStep("failed")),
    (Attempt(5, "503", "provider_error", retry_after=0.2), 1, NextStep("pending", 1.0)),
    (Attempt(5, "503", "provider_error", retry_after=42), 2, NextStep("pending", 42)),
    (Attempt(5, "503", "provider_error", retry_after=9_999), 1, NextStep("pending", 600.0)),
]


def test_there_are_three_attempts_after_one_and_five_seconds(subtests: pytest.Subtests) -> None:
    for attempt, number, step in _STEPS:
        with subtests.test(attempt=attempt, number=number, step=step):
            assert sending.next_step(attempt, number, is_test=False) == step


def test_a_test_is_sent_once() -> None:
    assert sending.next_step(_FAILED, 1, is_test=True) == NextStep("failed")
