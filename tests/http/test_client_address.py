"""The client's address behind proxies."""

import time

import pytest
from litestar.types import HTTPScope

from app.http.client_address import ClientAddresses

PROXY = "10.0.0.1"
# By the connection's address and X-Forwarded-For.
RESOLVED = [
    ("203.0.113.9", None, "203.0.113.9"),
    ("203.0.113.9", "198.51.100.7", "203.0.113.9"),
    (PROXY, "198.51.100.7", "198.51.100.7"),
    (PROXY, "192.0.2.1, 198.51.100.7, 10.0.0.2", "198.51.100.7"),
    # The client can write what it likes before the address that the proxy appends.
    (PROXY, "," * 60_000 + "198.51.100.7", "198.51.100.7"),
    (PROXY, "10.0.0.3," * 10_000 + "198.51.100.7", "198.51.100.7"),
    # No more hops are looked at: the last one is a proxy, too.
    (PROXY, "198.51.100.7" + ",10.0.0.3" * 32, "10.0.0.3"),
    (PROXY, "198.51.100.7" + ",10.0.0.3" * 31, "198.51.100.7"),
    (PROXY, "nothing", "unknown"),
]


def _scope(address: str) -> HTTPScope:
    return {"client": (address, 1)}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("peer", "forwarded_for", "expected"), RESOLVED)
def test_the_last_hop_that_is_no_proxy_is_the_client(
    peer: str, forwarded_for: str | None, expected: str
) -> None:
    addresses = ClientAddresses(["10.0.0.0/8"])
    assert addresses.resolve(_scope(peer), forwarded_for) == expected


def test_many_forwarded_hops_take_no_time() -> None:
    addresses = ClientAddresses(["10.0.0.0/8"])
    started = time.perf_counter()
    addresses.resolve(_scope(PROXY), "10.0.0.3," * 250_000 + "10.0.0.3")
    assert time.perf_counter() - started < 0.1
