"""The client's address behind proxies."""

import time

import pytest
from litestar.types import HTTPScope

from app.http.client_address import ClientAddresses, rate_limit_address

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
    # A socket for both versions.
    (f"::ffff:{PROXY}", "198.51.100.7", "198.51.100.7"),
    (PROXY, "198.51.100.7, ::ffff:10.0.0.2", "198.51.100.7"),
    (PROXY, "198.51.100.7, 203.0.113.9:443", "203.0.113.9"),
    (PROXY, "[2001:db8:1:2::7]:443", "2001:db8:1:2::7"),
    (PROXY, "fe80::1%eth0", "fe80::1"),
]


def _scope(address: str) -> HTTPScope:
    return {"client": (address, 1)}  # type: ignore[typeddict-item]


def test_the_last_hop_that_is_no_proxy_is_the_client(subtests: pytest.Subtests) -> None:
    for peer, forwarded_for, expected in RESOLVED:
        with subtests.test(peer=peer, forwarded_for=forwarded_for):
            addresses = ClientAddresses(["10.0.0.0/8"])
            assert addresses.resolve(_scope(peer), forwarded_for) == expected


def test_many_forwarded_hops_take_no_time() -> None:
    addresses = ClientAddresses(["10.0.0.0/8"])
    started = time.perf_counter()
    addresses.resolve(_scope(PROXY), "10.0.0.3," * 250_000 + "10.0.0.3")
    assert time.perf_counter() - started < 0.1


_CASES: list[tuple[str, str]] = [
    ("203.0.113.9", "203.0.113.9"),
    ("::ffff:203.0.113.9", "203.0.113.9"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
    ("2001:db8:1:2::", "2001:db8:1:2::"),
    ("2001:db8:1:3::", "2001:db8:1:3::"),
    ("fe80::1%eth0", "fe80::"),
    # 6to4: whoever has the IPv4 address has 65,536 networks.
    ("2002:cb00:7109:1::5", "203.0.113.9"),
    ("2002:cb00:7109:ffff::5", "203.0.113.9"),
    # NAT64 and Teredo: all clients would share one network.
    ("64:ff9b::203.0.113.9", "203.0.113.9"),
    ("64:ff9b::203.0.113.10", "203.0.113.10"),
    ("2001:0:4136:e378:8000:63bf:34ff:8ef6", "203.0.113.9"),
    ("::1", "::"),
    ("unknown", "unknown"),
    ("", "unknown"),
]


def test_what_is_limited_is_an_ipv4_address_or_an_ipv6_network(subtests: pytest.Subtests) -> None:
    for address, subject in _CASES:
        with subtests.test(address=address, subject=subject):
            assert rate_limit_address(address) == subject
