"""Attempts to send something to an endpoint, and what follows each of them."""

from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

import msgspec

from app.kit import clock

Status = Literal["delivered", "failed", "pending"]

# For how long a delivery waits for a receiver that gets too many; then the attempts count.
MAX_THROTTLED: Final = timedelta(hours=1)
_THROTTLED_SECONDS = 5.0


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """`error` is None where the receiver accepted it. Another try of a permanent error would fail
    too. A throttled receiver has got too many. A cancelled attempt was not made, since nobody waits
    for it any more.
    """

    at: datetime | None = None
    milliseconds: int | None = None
    error: str | None = None
    error_code: str | None = None
    response_code: int | None = None
    response_body: str | None = None
    is_permanent: bool = False
    is_throttled: bool = False
    is_cancelled: bool = False
    retry_after: float | None = None


class Schedule(msgspec.Struct, frozen=True):
    """`number` counts the attempts, the current one included. `delays` are the seconds before each
    of them, the first included; there are no more than `max_attempts`. `throttled_at` is since when
    the receiver gets too many.
    """

    number: int
    delays: tuple[float, ...]
    max_attempts: int
    # The longest wait that a receiver may ask for.
    max_retry_after: float
    throttled_at: datetime | None = None


class NextStep(NamedTuple):
    """A postponed attempt does not count."""

    status: Status | Literal["postponed"]
    after_seconds: float | None = None


def next_step(attempt: Attempt, schedule: Schedule) -> NextStep:
    if attempt.error is None:
        return NextStep("delivered")
    if attempt.is_throttled and schedule.max_attempts > 1 and not _is_over(schedule.throttled_at):
        wait = min(attempt.retry_after or _THROTTLED_SECONDS, schedule.max_retry_after)
        return NextStep("postponed", max(1.0, wait))
    is_last = schedule.number >= min(schedule.max_attempts, len(schedule.delays))
    if attempt.is_permanent or attempt.is_cancelled or is_last:
        return NextStep("failed")
    # Not earlier than the receiver asks for.
    wait = min(attempt.retry_after or 0.0, schedule.max_retry_after)
    return NextStep("pending", max(schedule.delays[schedule.number], wait))


def _is_over(throttled_at: datetime | None) -> bool:
    return throttled_at is not None and clock.now() - throttled_at > MAX_THROTTLED
