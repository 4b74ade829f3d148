"""What follows an attempt: the end, a retry, or a wait that does not count."""

from datetime import timedelta

import msgspec
import pytest

from app.domain.messaging.outbox.attempts import Attempt, NextStep, Schedule, next_step
from app.kit import clock

# As webhooks and channels have them.
_WEBHOOK = Schedule(1, (0, 60, 300, 1800, 7200, 28800, 86400), 7, 86400)
_CHANNEL = Schedule(1, (0, 1, 5), 10, 600)

_DELIVERED = Attempt(milliseconds=5, retry_after=60)
_FAILED = Attempt(milliseconds=5, error="the endpoint answered 500")
_PERMANENT = Attempt(milliseconds=5, error="410", is_permanent=True, retry_after=60)
_CANCELLED = Attempt(error="nobody waits for it any more", is_cancelled=True)
_THROTTLED = Attempt(milliseconds=5, error="429", is_throttled=True)


def _ask(seconds: float, attempt: Attempt = _FAILED) -> Attempt:
    return msgspec.structs.replace(attempt, retry_after=seconds)


_CASES: list[tuple[Schedule, Attempt, dict[int, NextStep]]] = [
    (
        _WEBHOOK,
        _FAILED,
        {
            1: NextStep("pending", 60),
            2: NextStep("pending", 300),
            3: NextStep("pending", 1800),
            4: NextStep("pending", 7200),
            5: NextStep("pending", 28800),
            6: NextStep("pending", 86400),
            7: NextStep("failed"),
            8: NextStep("failed"),
            100: NextStep("failed"),
        },
    ),
    (
        _CHANNEL,
        _FAILED,
        {1: NextStep("pending", 1), 2: NextStep("pending", 5), 3: NextStep("failed")},
    ),
    # Once and for all.
    *(
        (schedule, attempt, dict.fromkeys((1, 2, 3, 7, 8), step))
        for schedule in (_WEBHOOK, _CHANNEL)
        for attempt, step in (
            (_DELIVERED, NextStep("delivered")),
            (_PERMANENT, NextStep("failed")),
            (_CANCELLED, NextStep("failed")),
        )
    ),
    # What the receiver asks for: not earlier, and not later than the limit.
    (_WEBHOOK, _ask(0), {1: NextStep("pending", 60)}),
    (_WEBHOOK, _ask(59), {1: NextStep("pending", 60)}),
    (_WEBHOOK, _ask(60), {1: NextStep("pending", 60), 4: NextStep("pending", 7200)}),
    (_WEBHOOK, _ask(61), {1: NextStep("pending", 61), 7: NextStep("failed")}),
    (_WEBHOOK, _ask(7201), {4: NextStep("pending", 7201), 6: NextStep("pending", 86400)}),
    (_WEBHOOK, _ask(86400), {1: NextStep("pending", 86400)}),
    (_WEBHOOK, _ask(86401), {1: NextStep("pending", 86400)}),
    (_WEBHOOK, _ask(999999999), {1: NextStep("pending", 86400), 6: NextStep("pending", 86400)}),
    (_CHANNEL, _ask(0.5), {1: NextStep("pending", 1)}),
    (_CHANNEL, _ask(2), {2: NextStep("pending", 5), 3: NextStep("failed")}),
    (_CHANNEL, _ask(42), {2: NextStep("pending", 42)}),
    (_CHANNEL, _ask(600), {2: NextStep("pending", 600)}),
    (_CHANNEL, _ask(601), {1: NextStep("pending", 600), 2: NextStep("pending", 600)}),
    # The shorter of schedule and limit.
    (Schedule(1, (0,), 7, 9), _FAILED, {1: NextStep("failed")}),
    (Schedule(1, (0, 5), 2, 9), _FAILED, {1: NextStep("pending", 5), 2: NextStep("failed")}),
    (Schedule(1, _WEBHOOK.delays, 1, 9), _FAILED, {1: NextStep("failed")}),
    # A receiver with too many, at any attempt.
    (_CHANNEL, _THROTTLED, {1: NextStep("postponed", 5), 3: NextStep("postponed", 5)}),
    (_CHANNEL, _ask(0, _THROTTLED), {1: NextStep("postponed", 5)}),
    (_CHANNEL, _ask(0.5, _THROTTLED), {1: NextStep("postponed", 1)}),
    (_CHANNEL, _ask(30, _THROTTLED), {1: NextStep("postponed", 30)}),
    (_CHANNEL, _ask(86_400, _THROTTLED), {1: NextStep("postponed", 600)}),
    # A test, whose caller waits, has one attempt.
    (Schedule(1, (0, 1, 5), 1, 600), _THROTTLED, {1: NextStep("failed")}),
]


def test_what_follows_an_attempt(subtests: pytest.Subtests) -> None:
    for schedule, attempt, steps in _CASES:
        for number, step in steps.items():
            with subtests.test(schedule=schedule, attempt=attempt, number=number):
                numbered = msgspec.structs.replace(schedule, number=number)
                assert next_step(attempt, numbered) == step


def test_after_an_hour_throttled_attempts_count() -> None:
    for minutes, step in [(59, NextStep("postponed", 5)), (61, NextStep("pending", 1))]:
        throttled_at = clock.now() - timedelta(minutes=minutes)
        schedule = msgspec.structs.replace(_CHANNEL, throttled_at=throttled_at)
        assert next_step(_THROTTLED, schedule) == step
