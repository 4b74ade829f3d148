"""The rate limit in plain Python, written from its description, independently of gate.lua.

A rolling window has the units charged in the last N seconds. A subject that reaches its limit may
use up to M times the limit for B seconds. Then the plain limit applies, and a new burst starts only
after the usage has fallen below the plain limit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass
class Oracle:
    minute: int
    hour: int = 0
    day: int = 0
    burst_multiplier: int = 1
    burst_seconds: int = 0
    charges: list[tuple[int, int]] = field(default_factory=list)
    burst_start: int | None = None

    @property
    def _has_bursts(self) -> bool:
        return self.burst_multiplier > 1 and self.burst_seconds > 0

    def _sum_units(self, at: int) -> int:
        return sum(units for second, units in self.charges if second > at - MINUTE)

    def _count_requests(self, at: int, span: int) -> int:
        return sum(1 for second, _ in self.charges if second > at - span)

    def _find_burst_start(self, at: int) -> int | None:
        """Returns the start of the burst, or None once it is over and usage is below the limit."""
        start = self.burst_start
        if (
            start is not None
            and at >= start + self.burst_seconds
            and self._sum_units(at) < self.minute
        ):
            return None
        return start

    def _minute_admits(self, at: int, units: int) -> bool:
        ceiling = self.minute
        if self._has_bursts:
            start = self._find_burst_start(at)
            if start is None or at < start + self.burst_seconds:
                ceiling = self.minute * self.burst_multiplier
        return self._sum_units(at) + units <= ceiling

    def _count_admits(self, at: int, limit: int, span: int) -> bool:
        return limit == 0 or self._count_requests(at, span) + 1 <= limit

    def charge(self, now: int, units: int) -> tuple[bool, int]:
        """Returns whether the request is admitted, and if not, the seconds until it would be."""
        checks: tuple[tuple[Callable[[int], bool], int], ...] = (
            (lambda at: self._minute_admits(at, units), MINUTE),
            (lambda at: self._count_admits(at, self.hour, HOUR), HOUR),
            (lambda at: self._count_admits(at, self.day, DAY), DAY),
        )
        waits = [self._wait(now, admits, span) for admits, span in checks if not admits(now)]
        if self._has_bursts:
            self.burst_start = self._find_burst_start(now)
        if waits:
            return False, max(waits)
        self.charges.append((now, units))
        if self._has_bursts and self.burst_start is None and self._sum_units(now) > self.minute:
            self.burst_start = now
        return True, 0

    def _wait(self, now: int, admits: Callable[[int], bool], span: int) -> int:
        seconds = {second + span - now for second, _ in self.charges if second > now - span}
        if span == MINUTE and self.burst_start is not None:
            seconds.add(self.burst_start + self.burst_seconds - now)
        return next((wait for wait in sorted(seconds) if wait > 0 and admits(now + wait)), span)

    def minute_limit(self, now: int) -> int:
        """Returns the limit of the minute that is in force."""
        is_burst = self.burst_start is not None and now < self.burst_start + self.burst_seconds
        return self.minute * (self.burst_multiplier if is_burst else 1)

    def tightest(self, now: int) -> tuple[int, int, int]:
        """Returns the seconds of the tightest window, its limit, and the units or requests that
        remain in it.
        """
        limit = self.minute_limit(now)
        windows = [(max(0, limit - self._sum_units(now)), MINUTE, limit)]
        if self.hour:
            windows.append((self.hour - self._count_requests(now, HOUR), HOUR, self.hour))
        if self.day:
            windows.append((self.day - self._count_requests(now, DAY), DAY, self.day))
        remaining, window, limit = min(windows, key=lambda item: item[0])
        return window, limit, remaining
