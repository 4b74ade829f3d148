"""The egress guard: which addresses, hosts and URLs a request of a tenant may reach."""

import ipaddress
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from app.net.egress import AllowList, BlockedAddress, EgressError, Guard, is_public
from tests.net.blocked_addresses import HOSTS, URLS
from tests.net.egress_servers import LOOPBACK, METADATA, PUBLIC, FakeResolver

# Which addresses are public


_CASES: dict[str, str] = {
    "loopback": "127.0.0.1",
    "the end of loopback": "127.255.255.254",
    "private 10": "10.0.0.1",
    "private 172.16": "172.16.0.1",
    "private 172.31": "172.31.255.255",
    "private 192.168": "192.168.1.1",
    "metadata": METADATA,
    "link-local": "169.254.0.1",
    "unspecified": "0.0.0.0",
    "this network": "0.1.2.3",
    "CGNAT": "100.64.0.1",
    "the end of CGNAT": "100.127.255.254",
    "protocol assignments": "192.0.0.1",
    "NAT64 discovery": "192.0.0.170",
    "documentation 1": "192.0.2.1",
    "documentation 2": "198.51.100.1",
    "documentation 3": "203.0.113.1",
    "6to4 relay": "192.88.99.1",
    "benchmarks": "198.18.0.1",
    "multicast": "224.0.0.1",
    "SSDP": "239.255.255.250",
    "host of Azure's machines": "168.63.129.16",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "unspecified 6": "::",
    "loopback 6": "::1",
    "IPv4-compatible": "::127.0.0.1",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped loopback in hex": "::ffff:7f00:1",
    "mapped private": "::ffff:10.0.0.1",
    "mapped metadata": f"::ffff:{METADATA}",
    "NAT64 of loopback": "64:ff9b::127.0.0.1",
    "NAT64 of a public address": "64:ff9b::8.8.8.8",
    "local NAT64": "64:ff9b:1::1",
    "local NAT64 of metadata": "64:ff9b:1:ffff::a9fe:a9fe",
    "discard": "100::1",
    "Teredo": "2001::1",
    "Teredo of a client": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "ORCHID": "2001:10::1",
    "ORCHIDv2": "2001:20::1",
    "documentation 6": "2001:db8::1",
    "new documentation 6": "3fff::1",
    "6to4 of loopback": "2002:7f00:1::",
    "6to4 of a public address": "2002:5db8:d822::1",
    "segment routing": "5f00::1",
    "unique-local": "fc00::1",
    "unique-local in use": "fd12:3456:789a::1",
    "metadata 6": "fd00:ec2::254",
    "link-local 6": "fe80::1",
    "site-local": "fec0::1",
    "multicast 6": "ff02::1",
    "link-local with a zone": "fe80::1%eth0",
    "public with a zone": "2606:4700::1111%eth0",
}


def test_an_address_that_is_not_global_is_refused(subtests: pytest.Subtests) -> None:
    for name, address in _CASES.items():
        with subtests.test(name):
            assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("::ffff:0:127.0.0.1", id="IPv4-translated loopback"),
        pytest.param("::ffff:0:169.254.169.254", id="IPv4-translated metadata"),
        pytest.param("1::1", id="reserved, below"),
        pytest.param("4000::1", id="reserved, above"),
        pytest.param("c000::1", id="reserved, far above"),
    ],
)
def test_ipv6_outside_of_the_global_unicast_range_is_refused(address: str) -> None:
    assert not is_public(address)


_TEXT_CASES: list[str] = [
    "",
    " ",
    "localhost",
    "example.com",
    "2130706433",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "127.1",
    "8.8.8",
    "8.8.8.8 ",
    "8.8.8.8/32",
    "8.8.8.8:80",
    "[2606:4700::1111]",
    "8.8.8.256",
]


def test_text_that_is_no_address_is_not_public(subtests: pytest.Subtests) -> None:
    for text in _TEXT_CASES:
        with subtests.test(text=text):
            assert not is_public(text)


def test_a_global_address_is_public(subtests: pytest.Subtests) -> None:
    for address in [
        PUBLIC,
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.1",
        "172.32.0.1",
        "223.255.255.254",
        "2606:4700::1111",
        "2001:4860:4860::8888",
        f"::ffff:{PUBLIC}",
    ]:
        with subtests.test(address=address):
            assert is_public(address)


@given(st.ip_addresses(v=4))
@settings(max_examples=100, deadline=None)
def test_a_mapped_address_is_as_public_as_the_one_inside(address: ipaddress.IPv4Address) -> None:
    assert is_public(f"::ffff:{address}") == is_public(str(address))


@given(st.ip_addresses(v=4))
@settings(max_examples=100, deadline=None)
def test_no_tunnel_to_an_ipv4_address_is_public(address: ipaddress.IPv4Address) -> None:
    high, low = int(address) >> 16, int(address) & 0xFFFF
    tunnels = [f"64:ff9b::{address}", f"2002:{high:x}:{low:x}::1", f"::{address}"]
    assert not any(is_public(tunnel) for tunnel in tunnels)


# The operator's allow list


_ITEMS_CASES: list[tuple[list[str], str, bool]] = [
    (["models.internal"], "models.internal", True),
    (["models.internal"], "MODELS.Internal.", True),
    (["Models.Internal."], "models.internal", True),
    (["models.internal"], "a.models.internal", False),
    (["models.internal"], "models.internal.evil.com", False),
    (["*.example.com"], "api.example.com", True),
    (["*.example.com"], "a.b.example.com", True),
    (["*.example.com"], "API.EXAMPLE.COM.", True),
    (["*.example.com"], "example.com", False),
    (["*.example.com"], "evil-example.com", False),
    (["*.example.com"], "evilexample.com", False),
    (["*.example.com"], "api.example.com.evil.com", False),
    ([], "localhost", False),
    ([LOOPBACK], "localhost", False),
]


def test_the_allow_list_admits_hosts_by_their_whole_name(subtests: pytest.Subtests) -> None:
    for items, host, admitted in _ITEMS_CASES:
        with subtests.test(items=items, host=host):
            assert AllowList(items).allows_host(host) is admitted


def test_the_allow_list_admits_addresses_by_network(subtests: pytest.Subtests) -> None:
    for items, address, admitted in [
        (["10.1.0.0/16"], "10.1.2.3", True),
        (["10.1.0.0/16"], "10.2.0.1", False),
        (["10.1.2.3/16"], "10.1.9.9", True),
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.1"], "127.0.0.2", False),
        (["fd00::/8"], "fd12::1", True),
        (["fd00::/8"], "10.0.0.1", False),
        (["0.0.0.0/0"], "::1", False),
        (["models.internal"], "10.0.0.1", False),
        ([LOOPBACK], "not an address", False),
    ]:
        with subtests.test(items=items, address=address, admitted=admitted):
            assert AllowList(items).allows_address(address) is admitted


def test_plain_http_is_allowed_only_where_the_operator_says_so(subtests: pytest.Subtests) -> None:
    for allow, url, allowed in [
        (["models.internal"], "http://models.internal/", True),
        ([LOOPBACK], "http://127.0.0.1/", True),
        ([], "http://example.com/", False),
        ([], f"http://{PUBLIC}/", False),
    ]:
        with subtests.test(allow=allow, url=url, allowed=allowed):
            assert Guard(allow).plain_http_allowed(URL(url)) is allowed


# Name resolution


async def test_a_name_with_only_public_addresses_is_resolved() -> None:
    resolver = FakeResolver({"example.com": [[PUBLIC, "2606:4700::1111"]]})
    assert await Guard([], resolver).resolve_addresses("example.com", 443) == [
        PUBLIC,
        "2606:4700::1111",
    ]


async def test_one_address_that_is_not_public_refuses_the_name(subtests: pytest.Subtests) -> None:
    for addresses in [
        ["10.0.0.1"],
        [METADATA],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["fe80::1%eth0"],
        [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, "::1"],
        ["not an address"],
    ]:
        with subtests.test(addresses=addresses):
            guard = Guard([], FakeResolver({"mixed.test": [addresses]}))
            with pytest.raises(BlockedAddress):
                await guard.resolve_addresses("mixed.test", 443)


async def test_an_allowed_network_admits_only_its_own_addresses() -> None:
    guard = Guard([LOOPBACK], FakeResolver({"mixed.test": [["127.0.0.1", "10.0.0.1"]]}))
    with pytest.raises(BlockedAddress):
        await guard.resolve_addresses("mixed.test", 443)


async def test_an_allowed_host_is_admitted_wherever_it_leads() -> None:
    guard = Guard(["models.internal"], FakeResolver({"models.internal": [["10.0.0.1"]]}))
    assert await guard.resolve_addresses("models.internal", 443) == ["10.0.0.1"]


async def test_a_name_without_an_address_is_a_connection_error() -> None:
    guard = Guard([], FakeResolver({"empty.test": [[]]}))
    with pytest.raises(EgressError) as raised:
        await guard.resolve_addresses("empty.test", 443)
    assert raised.value.code == "connection_error"


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long")])
async def test_a_name_that_does_not_resolve_is_a_connection_error(error: Exception) -> None:
    async def fail(host: str, port: int) -> list[str]:
        raise error

    with pytest.raises(EgressError) as raised:
        await Guard([], fail).resolve_addresses("nowhere.test", 443)
    assert raised.value.code == "connection_error"


async def test_a_literal_address_is_refused_without_a_lookup(subtests: pytest.Subtests) -> None:
    resolver = FakeResolver({})
    guard = Guard(["127.0.0.1", "localhost"], resolver)
    for name, host in HOSTS.items():
        with subtests.test(name), pytest.raises(BlockedAddress):
            await guard.resolve_host(host.strip("[]"), 5432)
    assert resolver.hosts == []


async def test_loopback_is_no_host_unless_the_operator_allows_it(subtests: pytest.Subtests) -> None:
    for host in [
        "127.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "017700000001",
        "0x7f.1",
        "127.1",
        "127.0.0.1.",
    ]:
        with subtests.test(host=host):
            with pytest.raises(BlockedAddress):
                await Guard([], FakeResolver({})).resolve_host(host, 5432)
            assert (
                await Guard(["127.0.0.1"], FakeResolver({})).resolve_host(host, 5432) == "127.0.0.1"
            )


async def test_a_file_is_no_host(subtests: pytest.Subtests) -> None:
    for host in ["", "/var/run/postgresql", "./x", "a/b"]:
        with subtests.test(host=host), pytest.raises(BlockedAddress):
            await Guard([], FakeResolver({})).resolve_host(host, 5432)


# URLs


def test_a_blocked_address_cannot_be_saved(subtests: pytest.Subtests) -> None:
    guard = Guard(["127.0.0.1", "localhost"])
    for name, host in HOSTS.items():
        for url in (f"http://{host}:8080/x", f"https://{host}/token"):
            with subtests.test(name, url=url):
                assert "not a public address" in (guard.problem_with(url, allow_http=True) or "")


def test_an_invalid_url_cannot_be_saved(subtests: pytest.Subtests) -> None:
    guard = Guard(["127.0.0.1", "localhost"])
    for name, url in URLS.items():
        with subtests.test(name, url=url):
            assert guard.problem_with(url, allow_http=True) is not None


def test_a_url_that_receives_a_secret_has_tls_unless_the_operator_says_otherwise(
    subtests: pytest.Subtests,
) -> None:
    for url, problem in [
        ("http://example.com/", "must start with https://"),
        (f"HTTP://{PUBLIC}/", "must start with https://"),
        ("http://127.0.0.1/", None),
        ("https://example.com/", None),
    ]:
        with subtests.test(url=url, problem=problem):
            assert Guard(["127.0.0.1"]).problem_with(url) == problem


def test_a_url_with_a_user_or_password_is_refused(subtests: pytest.Subtests) -> None:
    for url in [
        "http://user:password@example.com/",
        "http://user@example.com/",
        "http://:password@example.com/",
        "https://127.0.0.1:80@example.com/",
    ]:
        with subtests.test(url=url), pytest.raises(BlockedAddress, match="user name or password"):
            Guard([]).check_url(url)


_URL_CASES: list[str] = [
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "ws://example.com/",
    "unix:///run/docker.sock",
    "javascript:alert(1)",
    "data:text/plain,hello",
    "//example.com/",
    "example.com",
    "/path",
    "http:",
    "http://",
    "http:///path",
    "http:example.com",
    "",
]


def test_a_url_of_another_scheme_or_without_a_host_is_refused(subtests: pytest.Subtests) -> None:
    for url in _URL_CASES:
        with (
            subtests.test(url=url),
            pytest.raises(BlockedAddress, match="must start with http"),
        ):
            Guard([]).check_url(url)


def test_a_url_that_cannot_be_read_is_refused(subtests: pytest.Subtests) -> None:
    for url in ["http://[::1/", "http://example.com:99999/", "http://a:b:c/"]:
        with subtests.test(url=url), pytest.raises(BlockedAddress):
            Guard([]).check_url(url)


def test_a_plain_url_is_accepted(subtests: pytest.Subtests) -> None:
    for url in ["http://example.com/", "HTTPS://example.com:8443/a?b=c", f"http://{PUBLIC}/"]:
        with subtests.test(url=url):
            assert Guard([]).check_url(url) == URL(url)


def test_localhost_is_judged_without_a_lookup(subtests: pytest.Subtests) -> None:
    for host in ("localhost", "LOCALHOST.", "app.localhost"):
        with subtests.test(host):
            problem = Guard(()).problem_with(f"https://{host}/x")
            assert problem is not None
            assert "PARLEY_EGRESS_ALLOW" in problem
            assert Guard((host,)).problem_with(f"https://{host}/x") is None
            assert Guard(("127.0.0.0/8",)).problem_with(f"https://{host}/x") is None
    assert Guard(()).problem_with("https://mylocalhost/x") is None
