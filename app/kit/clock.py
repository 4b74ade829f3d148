"""The current time, in one place, so that tests can freeze it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_frozen: list[datetime] = []


def now() -> datetime:
    return _frozen[-1] if _frozen else datetime.now(UTC)


def epoch() -> float:
    return _frozen[-1].timestamp() if _frozen else time.time()


@contextmanager
def frozen(at: datetime) -> Iterator[None]:
    """Freezes the clock at a time, for tests."""
    _frozen.append(at)
    try:
        yield
    finally:
        _frozen.pop()


def milliseconds(start: datetime, end: datetime) -> float:
    return round(max(0.0, (end - start).total_seconds() * 1000), 1)
