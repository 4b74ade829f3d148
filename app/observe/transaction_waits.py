"""Counts waits that hold a database connection, in processes that serve users."""

import time
import traceback

from app.kit import logs
from app.observe import metrics
from db import connection_use

log = logs.get("database")

_LOG_EVERY_SECONDS = 60.0
_FRAMES = 12
_logged_at: dict[str, float] = {}


def count() -> None:
    """From now on such a wait is counted and logged."""
    connection_use.report_to(_report)


def _report(what: str) -> None:
    metrics.WAITED_IN_TRANSACTION.labels(what).inc()
    now = time.monotonic()
    if now - _logged_at.get(what, -_LOG_EVERY_SECONDS) >= _LOG_EVERY_SECONDS:
        _logged_at[what] = now
        # Without this function and the one that called it.
        stack = traceback.extract_stack(limit=_FRAMES + 2)[:-2]
        frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack]
        log.warning("a database connection was held during a wait", waited_for=what, frames=frames)
