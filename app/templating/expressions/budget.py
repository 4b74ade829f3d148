"""The time that all evaluations of one request have together."""

from app.kit.errors import Unavailable
from app.templating.expressions.problems import Overrun

_SECONDS = 5.0
_WAIT_SECONDS = 30.0


class Budget:
    def __init__(self, seconds: float = _SECONDS, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._total = seconds
        self.seconds_left = seconds
        self.wait_seconds_left = wait_seconds

    @property
    def overrun_message(self) -> str:
        return f"the expressions take longer than {self._total:g} s together"

    def check(self) -> None:
        """Raises Overrun or Unavailable when nothing is left."""
        if self.seconds_left <= 0:
            raise Overrun(self.overrun_message)
        if self.wait_seconds_left <= 0:
            raise Unavailable("Expressions are busy. Try again in 5 seconds.")
