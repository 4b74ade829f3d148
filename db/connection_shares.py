"""Shares the connections of a process between tenants.

A tenant has at most two thirds of them, and at most one third while another tenant waits: many slow
statements of one tenant leave connections to the others.
"""

import asyncio
from collections import Counter, OrderedDict, deque

from sqlalchemy.exc import TimeoutError as PoolTimeout

from db import connection_use

_WAIT_SECONDS = 10.0


class ConnectionShares:
    """Grants connections in the order of requests, first to the tenants that hold the fewest. None
    stands for the system itself, which has no share of its own.
    """

    def __init__(self, size: int, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._free = size
        self._wait_seconds = wait_seconds
        self._max = max(1, size * 2 // 3)
        self._max_contended = max(1, size // 3)
        self._held: Counter[str | None] = Counter()
        self._waiting: OrderedDict[str | None, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, tenant: str | None) -> None:
        """Raises sqlalchemy.exc.TimeoutError when none is free in time."""
        if not self._waiting and self._is_allowed(tenant, self._max):
            self._grant(tenant)
            return
        grant: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(grant)
        self._dispatch()
        try:
            async with asyncio.timeout(self._wait_seconds):
                await grant
        except BaseException as error:
            self._withdraw(tenant, grant)
            if isinstance(error, TimeoutError):
                raise PoolTimeout(
                    f"no connection was free within {self._wait_seconds:g} s"
                ) from None
            raise

    def release(self, tenant: str | None) -> None:
        self._free += 1
        self._held[tenant] -= 1
        if self._held[tenant] <= 0:
            del self._held[tenant]
        if self._waiting:
            self._dispatch()

    def _is_allowed(self, tenant: str | None, maximum: int) -> bool:
        return self._free > 0 and (tenant is None or self._held[tenant] < maximum)

    def _grant(self, tenant: str | None) -> None:
        self._free -= 1
        self._held[tenant] += 1

    def _dispatch(self) -> None:
        while self._waiting:
            maximum = self._max if len(self._waiting) == 1 else self._max_contended
            tenant = min(self._waiting, key=self._held.__getitem__)
            if not self._is_allowed(tenant, maximum):
                # The system may have more, so that it is not always the one with the fewest.
                tenant = None
                if None not in self._waiting or not self._free:
                    return
            grants = self._waiting[tenant]
            grant = grants.popleft()
            if not grants:
                del self._waiting[tenant]
            if not grant.done():
                self._grant(tenant)
                grant.set_result(None)

    def _withdraw(self, tenant: str | None, grant: asyncio.Future[None]) -> None:
        """Takes back what was asked for, or granted at the moment of the cancellation."""
        if grant.done() and not grant.cancelled():
            self.release(tenant)
            return
        grant.cancel()
        grants = self._waiting.get(tenant)
        if grants is not None and grant in grants:
            grants.remove(grant)
            if not grants:
                del self._waiting[tenant]
                self._dispatch()


class ConnectionClaim:
    """What a transaction has of its tenant's share, while it holds a connection."""

    __slots__ = ("_shares", "_tenant", "_use")

    def __init__(
        self, shares: ConnectionShares, tenant: str | None, use: connection_use.ConnectionUse
    ) -> None:
        self._shares = shares
        self._tenant = tenant
        self._use = use
        use.held += 1

    @classmethod
    async def make(cls, shares: ConnectionShares, tenant: str | None) -> "ConnectionClaim":
        use = connection_use.current()
        if use.held:
            # Whoever holds one already must not wait for others of the same tenant.
            tenant = None
        await shares.acquire(tenant)
        return cls(shares, tenant, use)

    def end(self) -> None:
        self._use.held -= 1
        self._shares.release(self._tenant)
