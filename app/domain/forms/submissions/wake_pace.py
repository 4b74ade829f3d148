"""Limits how often this process wakes a worker for a submission."""

import time
from collections.abc import Callable
from typing import Final

_PER_SECOND: Final = 50.0
_BURST: Final = 50.0


class WakePace:
    """A flood of submissions is left to the workers, which look for due work once a second: each
    wake-up would cost a request to Redis before the visitor gets an answer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = _BURST
        self._seen_at = clock()

    def may_wake(self) -> bool:
        now = self._clock()
        self._left = min(_BURST, self._left + (now - self._seen_at) * _PER_SECOND)
        self._seen_at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
