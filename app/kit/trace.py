"""The trace of a request or job: one correlation id for all requests, jobs and events it causes."""

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
    # The tenant that the request or job is charged to.
    tenant_id: str | None = None
    # The length of the chain of events that led here, across tenants.
    depth: int = 0
    # The tenants in whose event logs this request or job has written.
    event_tenants: set[str] = set()


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current() -> Trace:
    """Returns the trace of this request or job; outside both, a new one."""
    trace = _current.get()
    if trace is None:
        trace = Trace(correlation_id=new_id("cor"))
        _current.set(trace)
    return trace


def current_or_none() -> Trace | None:
    return _current.get()


def current_tenant() -> str:
    """Returns the tenant of this request or job; empty for the instance itself."""
    trace = _current.get()
    return trace.tenant_id or "" if trace is not None else ""


def begin(trace: Trace) -> None:
    _current.set(trace)


def safe_id(caller_id: str | None, prefix: str) -> str:
    """Returns the caller's id if it is safe in headers and logs, else a new one."""
    return caller_id if caller_id and _SAFE.match(caller_id) else new_id(prefix)
