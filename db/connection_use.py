"""Connections that the current request or job holds.

Whoever waits for a server, a process, a file store or a lock must hold none: a few slow waits would
otherwise take the whole pool from everybody else.
"""

from collections.abc import Callable
from contextvars import ContextVar, Token


class WaitedInTransaction(RuntimeError):
    """Something else than the database is waited for while a connection is held."""


class ConnectionUse:
    """Counts the connections of one request or job, its child tasks included."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0


_current: ContextVar[ConnectionUse | None] = ContextVar("connection_use", default=None)


def begin() -> Token[ConnectionUse | None]:
    """Starts to count anew, for a request, a job or a task that outlives its creator."""
    return _current.set(ConnectionUse())


def end(token: Token[ConnectionUse | None]) -> None:
    """Ends what `begin` started, in the same task."""
    _current.reset(token)


def current() -> ConnectionUse:
    """Outside requests and jobs nothing is counted: it returns a new one each time."""
    return _current.get() or ConnectionUse()


def check_wait(what: str) -> None:
    """To be called before anything but the database is waited for; `what` names it."""
    use = _current.get()
    if use is not None and use.held:
        _report(what)


def report_to(report: Callable[[str], None]) -> None:
    """Sets what is called with the name of a wait that holds a connection: processes count it, and
    tests refuse it.
    """
    global _report  # noqa: PLW0603  # one per process, like the metrics that it counts in
    _report = report


def refuse(what: str) -> None:
    raise WaitedInTransaction(f"{what} is waited for while a database connection is held")


def _ignore(_what: str) -> None:
    return


_report: Callable[[str], None] = _ignore
