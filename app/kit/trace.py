"""What ties a chain of causes together: one correlation id through requests, jobs and events."""

import re
from contextvars import ContextVar

import msgspec

from app.kit.ids import new_id

_SAFE = re.compile(r"[A-Za-z0-9._:+=-]{1,128}\Z")


class Trace(msgspec.Struct):
    correlation_id: str
    request_id: str | None = None
    cause_event_id: str | None = None
    actor_id: str | None = None
    # How many events, of whatever tenant, led here at least.
    depth: int = 0


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current() -> Trace:
    """The trace of this request or job; outside both, a new one."""
    trace = _current.get()
    if trace is None:
        trace = Trace(correlation_id=new_id("cor"))
        _current.set(trace)
    return trace


def known() -> Trace | None:
    return _current.get()


def begin(trace: Trace) -> None:
    _current.set(trace)


def safe_id(given: str | None, prefix: str) -> str:
    """The caller's own id when it is plain enough for a header and a log, else a new one."""
    return given if given and _SAFE.match(given) else new_id(prefix)
