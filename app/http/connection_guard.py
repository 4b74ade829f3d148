"""The open connections of a web process: how many an address may have, and how long each may wait.

One sweep a second looks at all of them, so that a request needs no timer of its own.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection
from typing import Protocol

import msgspec

from app.http.client_address import ClientAddresses, rate_limit_address
from app.kit import logs, open_files
from app.kit.errors import TooManyConnections
from app.settings import Settings

log = logs.get("http")

# Open files besides clients' connections: of the database, Redis and outgoing requests.
_MIN_RESERVED_FILES = 200
_RESERVED_SHARE = 5
_WARN_EVERY_SECONDS = 10.0


class Deadlines(msgspec.Struct, frozen=True):
    """Seconds. Only the time counts in which the server waits for the client."""

    # Without a request: a new connection, or one that sends bytes which begin none.
    idle: float = 10.0
    # From the first byte of a head to its end.
    head: float = 10.0
    # A body without a byte.
    body_pause: float = 60.0
    # The average rate of a body, after a time that a bad network may take.
    body_grace: float = 30.0
    body_bytes_per_second: int = 256
    # The same of an upload: only a few arrive at a time, so that each must make room soon.
    upload_grace: float = 10.0
    upload_bytes_per_second: int = 8192
    # The rest of a body whose request has been answered.
    discarded_body: float = 30.0
    # A response of which the client takes nothing.
    unread_response: float = 120.0
    sweep: float = 1.0


class ConnectionLimits(msgspec.Struct, frozen=True):
    per_address: int = 256
    total: int = 10_000
    trusted_proxies: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionLimits":
        files = open_files.read_limit()
        reserved = settings.pool_size + max(_MIN_RESERVED_FILES, files // _RESERVED_SHARE)
        return cls(
            per_address=settings.connections_per_address,
            total=max(1, files - reserved),
            trusted_proxies=settings.trusted_proxies,
        )


class GuardedConnection(Protocol):
    def check_deadlines(self, seconds: float) -> None:
        """Closes a connection that let `seconds` more pass than it may."""


class ConnectionGuard:
    def __init__(
        self,
        connections: Collection[GuardedConnection],
        limits: ConnectionLimits,
        sweep_seconds: float,
    ) -> None:
        self._connections = connections
        self._limits = limits
        self._addresses = ClientAddresses(limits.trusted_proxies)
        self._counts: Counter[str] = Counter()
        self._sweep_seconds = sweep_seconds
        self._sweeps = False
        self._swept_at = 0.0
        self._refused = 0
        self._warned_at = -_WARN_EVERY_SECONDS

    def add(self, client: tuple[str, int] | None) -> str | None:
        """Counts a connection; returns what it is counted by, or None: connections of a proxy are
        those of many clients, and a Unix socket is one.
        """
        if not self._sweeps:
            self._sweeps = True
            self._swept_at = time.monotonic()
            self._sweep_later()
        if client is None or self._addresses.is_trusted(client[0]):
            return None
        address = rate_limit_address(client[0])
        self._counts[address] += 1
        return address

    def remove(self, address: str | None) -> None:
        if address is not None:
            self._counts[address] -= 1
            if self._counts[address] <= 0:
                del self._counts[address]

    def find_problem(self, address: str | None) -> TooManyConnections | None:
        """Returns why a connection that was added is one too many."""
        if len(self._connections) > self._limits.total:
            self._warn(address, "raise the limit of open files of this process")
            return TooManyConnections("Too many connections are open. Try again in 5 seconds")
        if address is not None and self._counts[address] > self._limits.per_address:
            self._warn(
                address,
                "raise PARLEY_CONNECTIONS_PER_ADDRESS, or name a proxy in PARLEY_TRUSTED_PROXIES",
            )
            return TooManyConnections(
                f"Your address has more than {self._limits.per_address} connections open. "
                "Close some of them, and try again in 5 seconds"
            )
        return None

    def is_crowded(self, address: str | None) -> bool:
        """True when there are too many to wait until a client that is refused sends its request."""
        too_many = address is not None and self._counts[address] > 2 * self._limits.per_address
        return too_many or len(self._connections) > self._limits.total

    def _warn(self, address: str | None, advice: str) -> None:
        self._refused += 1
        now = time.monotonic()
        if now - self._warned_at >= _WARN_EVERY_SECONDS:
            self._warned_at = now
            log.warning(
                "connections refused",
                count=self._refused,
                address=address,
                open=len(self._connections),
                advice=advice,
            )
            self._refused = 0

    def _sweep_later(self) -> None:
        asyncio.get_running_loop().call_later(self._sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        now = time.monotonic()
        # Clients are not to blame for the time in which this process was held.
        seconds = min(now - self._swept_at, 2 * self._sweep_seconds)
        self._swept_at = now
        for connection in list(self._connections):
            connection.check_deadlines(seconds)
        self._sweeps = bool(self._connections)
        if self._sweeps:
            self._sweep_later()
