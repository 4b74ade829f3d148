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
    times: int = 1
    burst: int = 0
    charged: list[tuple[int, int]] = field(default_factory=list)
    burst_from: int | None = None

    def _units(self, at: int) -> int:
        return sum(units for second, units in self.charged if second > at - MINUTE)

    def _requests(self, at: int, span: int) -> int:
        return sum(1 for second, _ in self.charged if second > at - span)

    def _burst_at(self, at: int) -> int | None:
        """Returns the start of the burst, or None once it is over and usage is below the limit."""
        start = self.burst_from
        if start is not None and at >= start + self.burst and self._units(at) < self.minute:
            return None
        return start

    def _minute_admits(self, at: int, units: int) -> bool:
        ceiling = self.minute
        if self.times > 1 and self.burst > 0:
            start = self._burst_at(at)
            if start is None or at < start + self.burst:
                ceiling = self.minute * self.times
        return self._units(at) + units <= ceiling

    def _count_admits(self, at: int, limit: int, span: int) -> bool:
        return limit == 0 or self._requests(at, span) + 1 <= limit

    def ask(self, now: int, units: int) -> tuple[bool, int]:
        """Returns whether the request is admitted, and if not, the seconds until it would be."""
        checks: tuple[tuple[Callable[[int], bool], int], ...] = (
            (lambda at: self._minute_admits(at, units), MINUTE),
            (lambda at: self._count_admits(at, self.hour, HOUR), HOUR),
            (lambda at: self._count_admits(at, self.day, DAY), DAY),
        )
        waits = [self._wait(now, admits, span) for admits, span in checks if not admits(now)]
        if self.times > 1 and self.burst > 0:
            self.burst_from = self._burst_at(now)
        if waits:
            return False, max(waits)
        self.charged.append((now, units))
        bursting = self.times > 1 and self.burst > 0
        if bursting and self.burst_from is None and self._units(now) > self.minute:
            self.burst_from = now
        return True, 0

    def _wait(self, now: int, admits: Callable[[int], bool], span: int) -> int:
        seconds = {second + span - now for second, _ in self.charged if second > now - span}
        if span == MINUTE and self.burst_from is not None:
            seconds.add(self.burst_from + self.burst - now)
        return next((wait for wait in sorted(seconds) if wait > 0 and admits(now + wait)), span)

    def remaining(self, now: int) -> int:
        """Returns the units or requests that remain in the tightest window."""
        ceiling = self.minute
        if self.burst_from is not None and now < self.burst_from + self.burst:
            ceiling = self.minute * self.times
        left = [max(0, ceiling - self._units(now))]
        if self.hour:
            left.append(self.hour - self._requests(now, HOUR))
        if self.day:
            left.append(self.day - self._requests(now, DAY))
        return min(left)
