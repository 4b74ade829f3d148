"""Gives back units of requests that were refused before any work was done: they cost 1 unit. They
still count as requests of the hour and the day.

A 422 is given back to whoever paid: the tenant of a signed-in caller, an address, or the subjects
that pay for a visit. Other refusals are given back for visits only.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from app.http.limiter import Limiter
from app.jobs import background
from app.kit.error_mapping import HTTP_SERVER_ERROR
from app.kit.errors import ClientGone, Invalid
from app.security.plans import Charge, Verdict

_KEY: Final = "payments"
_FIRST_ERROR_STATUS = 400
# Beyond it, while Redis is slow, requests cost their full units.
_MAX_PENDING = 1000


class _Payment(NamedTuple):
    charges: Sequence[Charge]
    # When Redis charged them.
    second: int
    is_visit: bool


def record(
    state: dict[str, Any], charges: Sequence[Charge], verdict: Verdict, *, is_visit: bool = False
) -> None:
    """Remembers what the request with this `state` was charged, if it was."""
    if verdict.allowed:
        state.setdefault(_KEY, []).append(_Payment(charges, verdict.second, is_visit))


def keep_charges(state: dict[str, Any]) -> None:
    """Called when work begins: the request costs its full units even if it is refused later."""
    state.pop(_KEY, None)


class Refunds:
    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._pending = 0

    def give_back(self, state: dict[str, Any], status: int) -> None:
        """Does not wait for Redis."""
        for charges, second, is_visit in state.get(_KEY, ()):
            if status == Invalid.status or (is_visit and _is_refusal(status)):
                self._start(charges, second)

    def _start(self, charges: Sequence[Charge], second: int) -> None:
        excess = [Charge(subject, plan, units - 1) for subject, plan, units in charges if units > 1]
        if excess and self._pending < _MAX_PENDING:
            self._pending += 1
            background.spawn(self._refund(excess, second))

    async def _refund(self, charges: Sequence[Charge], second: int) -> None:
        try:
            await self._limiter.refund(charges, second)
        finally:
            self._pending -= 1


def _is_refusal(status: int) -> bool:
    return _FIRST_ERROR_STATUS <= status < HTTP_SERVER_ERROR and status != ClientGone.status
