"""Regular expressions of authors. The engine takes linear time and lets other threads run
meanwhile; the patterns of one request share a budget of time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from .wordings import refuse

# The time of a processor that the patterns of a form may take for one request.
_MAX_SECONDS: Final = 0.25
# The memory of a compiled pattern, and how many are kept.
_RE2_BYTES = 256 * 1024
_MAX_PATTERNS = 200


@lru_cache(maxsize=_MAX_PATTERNS)
def compile_pattern(pattern: str) -> Any:
    """Raises ValueError with a message for the author. The engine takes linear time for any text,
    and so has neither lookaheads nor references.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _RE2_BYTES
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not understood"
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        if "too large" in text:
            raise ValueError("is too large: let max_length limit the text, not {n,m}") from None
        raise ValueError(
            f"is not a regular expression of RE2, which has no lookaheads and no references: {text}"
        ) from None


class _Budget:
    """The time that is left, and what was matched: a turn of a conversation checks answers several
    times.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._results: dict[tuple[str, str], bool] = {}

    def matches(self, pattern: str, text: str) -> bool:
        key = (pattern, text)
        if key not in self._results:
            if self._seconds <= 0:
                raise refuse("too_slow")
            start = time.thread_time()
            self._results[key] = compile_pattern(pattern).fullmatch(text) is not None
            self._seconds -= time.thread_time() - start
        return self._results[key]


_budget: ContextVar[_Budget | None] = ContextVar("pattern_budget", default=None)


@contextmanager
def share_budget() -> Iterator[None]:
    """All patterns in the block share one budget; a block inside another has that of the other."""
    if _budget.get() is not None:
        yield
        return
    token = _budget.set(_Budget(_MAX_SECONDS))
    try:
        yield
    finally:
        _budget.reset(token)


def matches(pattern: str, text: str) -> bool:
    """True when the whole text matches. Raises WrongValue when the budget is used up."""
    budget = _budget.get() or _Budget(_MAX_SECONDS)
    return budget.matches(pattern, text)
