"""When a source is synced next."""

import random
from datetime import datetime, timedelta
from typing import Final, Literal

ScheduleName = Literal["manual", "hourly", "daily", "weekly"]

# So many failures in a row are reported.
MAX_FAILURES: Final = 3
_INTERVALS: Final[dict[ScheduleName, timedelta | None]] = {
    "manual": None,
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
}
_FIRST_RETRY = timedelta(minutes=10)
_MAX_DOUBLINGS = 12
# Sources that were created together are not synced together for ever.
_SPREAD = 0.05
MAX_WAIT_SECONDS: Final = 86_400.0


def find_next(schedule: ScheduleName, now: datetime) -> datetime | None:
    """Returns when a source is due after a sync that succeeded."""
    interval = _INTERVALS[schedule]
    if interval is None:
        return None
    return now + interval * (1 - _SPREAD * random.random())  # noqa: S311  # no secret


def find_retry(
    schedule: ScheduleName, now: datetime, failed_count: int, wait_seconds: float | None
) -> datetime | None:
    """Returns when a source is due after its last so many syncs have failed: sooner than otherwise,
    but each time later, and not before its server wants it.
    """
    interval = _INTERVALS[schedule]
    if interval is None:
        return None
    factor: int = 2 ** min(max(failed_count - 1, 0), _MAX_DOUBLINGS)
    wait = min(_FIRST_RETRY * factor, interval)
    return max(now + wait, find_wait(now, wait_seconds) or now)


def find_wait(now: datetime, wait_seconds: float | None) -> datetime | None:
    """Returns until when the server of a source wants no more requests."""
    if wait_seconds is None:
        return None
    return now + timedelta(seconds=min(wait_seconds, MAX_WAIT_SECONDS))


def is_failed(schedule: ScheduleName, failed_count: int) -> bool:
    """True after as many failures in a row as are reported; a source that is not tried again by
    itself fails at once.
    """
    return failed_count >= (1 if schedule == "manual" else MAX_FAILURES)
