"""The way out: which addresses a tenant may name, and what a request on it may cost."""

import asyncio
import gzip
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from app.kit.egress import (
    AllowList,
    Answer,
    BlockedAddress,
    Egress,
    EgressError,
    EgressTimeout,
    Guard,
    Resolve,
    ResponseTooLarge,
    custom_headers,
    is_public,
)
from tests.ports import free_port

LOOPBACK = "127.0.0.0/8"
PUBLIC = "93.184.216.34"
METADATA = "169.254.169.254"
BOMB = gzip.compress(bytes(32 * 1024 * 1024), compresslevel=1)

# Which addresses are public


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("127.255.255.254", id="the end of loopback"),
        pytest.param("10.0.0.1", id="private 10"),
        pytest.param("172.16.0.1", id="private 172.16"),
        pytest.param("172.31.255.255", id="private 172.31"),
        pytest.param("192.168.1.1", id="private 192.168"),
        pytest.param(METADATA, id="metadata"),
        pytest.param("169.254.0.1", id="link-local"),
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("0.1.2.3", id="this network"),
        pytest.param("100.64.0.1", id="CGNAT"),
        pytest.param("100.127.255.254", id="the end of CGNAT"),
        pytest.param("192.0.0.1", id="protocol assignments"),
        pytest.param("192.0.0.170", id="NAT64 discovery"),
        pytest.param("192.0.2.1", id="documentation 1"),
        pytest.param("198.51.100.1", id="documentation 2"),
        pytest.param("203.0.113.1", id="documentation 3"),
        pytest.param("192.88.99.1", id="6to4 relay"),
        pytest.param("198.18.0.1", id="benchmarks"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("239.255.255.250", id="SSDP"),
        pytest.param("240.0.0.1", id="reserved"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("::", id="unspecified 6"),
        pytest.param("::1", id="loopback 6"),
        pytest.param("::127.0.0.1", id="IPv4-compatible"),
        pytest.param("::ffff:127.0.0.1", id="mapped loopback"),
        pytest.param("::ffff:7f00:1", id="mapped loopback in hex"),
        pytest.param("::ffff:10.0.0.1", id="mapped private"),
        pytest.param(f"::ffff:{METADATA}", id="mapped metadata"),
        pytest.param("64:ff9b::127.0.0.1", id="NAT64 of loopback"),
        pytest.param("64:ff9b::8.8.8.8", id="NAT64 of a public address"),
        pytest.param("64:ff9b:1::1", id="local NAT64"),
        pytest.param("64:ff9b:1:ffff::a9fe:a9fe", id="local NAT64 of metadata"),
        pytest.param("100::1", id="discard"),
        pytest.param("2001::1", id="Teredo"),
        pytest.param("2001:0:4136:e378:8000:63bf:3fff:fdd2", id="Teredo of a client"),
        pytest.param("2001:10::1", id="ORCHID"),
        pytest.param("2001:20::1", id="ORCHIDv2"),
        pytest.param("2001:db8::1", id="documentation 6"),
        pytest.param("3fff::1", id="new documentation 6"),
        pytest.param("2002:7f00:1::", id="6to4 of loopback"),
        pytest.param("2002:5db8:d822::1", id="6to4 of a public address"),
        pytest.param("5f00::1", id="segment routing"),
        pytest.param("fc00::1", id="unique-local"),
        pytest.param("fd12:3456:789a::1", id="unique-local in use"),
        pytest.param("fd00:ec2::254", id="metadata 6"),
        pytest.param("fe80::1", id="link-local 6"),
        pytest.param("fec0::1", id="site-local"),
        pytest.param("ff02::1", id="multicast 6"),
        pytest.param("fe80::1%eth0", id="link-local with a zone"),
        pytest.param("2606:4700::1111%eth0", id="public with a zone"),
    ],
)
def test_an_address_that_is_not_global_is_refused(address: str) -> None:
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


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_what_is_no_address_is_not_public(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize(
    "address",
    [
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
    ],
)
def test_a_global_address_is_public(address: str) -> None:
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


# What the operator admits


@pytest.mark.parametrize(
    ("items", "host", "admitted"),
    [
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
    ],
)
def test_the_allow_list_admits_hosts_by_their_whole_name(
    items: list[str], host: str, *, admitted: bool
) -> None:
    assert AllowList(items).host(host) is admitted


@pytest.mark.parametrize(
    ("items", "address", "admitted"),
    [
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
    ],
)
def test_the_allow_list_admits_addresses_by_network(
    items: list[str], address: str, *, admitted: bool
) -> None:
    assert AllowList(items).address(address) is admitted


@pytest.mark.parametrize(
    ("allow", "url", "allowed"),
    [
        (["models.internal"], "http://models.internal/", True),
        ([LOOPBACK], "http://127.0.0.1/", True),
        ([], "http://example.com/", False),
        ([], f"http://{PUBLIC}/", False),
    ],
)
def test_plain_http_is_allowed_only_where_the_operator_says_so(
    allow: list[str], url: str, *, allowed: bool
) -> None:
    assert Guard(allow).plain_http_allowed(URL(url)) is allowed


# Names


class Names:
    """A resolver that answers from a table, one answer after the other, and keeps the questions."""

    def __init__(self, table: dict[str, list[list[str]]]) -> None:
        self._table = table
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self._table[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def test_a_name_with_only_public_addresses_is_given_them() -> None:
    names = Names({"example.com": [[PUBLIC, "2606:4700::1111"]]})
    assert await Guard([], names).addresses("example.com", 443) == [PUBLIC, "2606:4700::1111"]


@pytest.mark.parametrize(
    "found",
    [
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
    ],
)
async def test_one_address_that_is_not_public_refuses_the_name(found: list[str]) -> None:
    guard = Guard([], Names({"mixed.test": [found]}))
    with pytest.raises(BlockedAddress):
        await guard.addresses("mixed.test", 443)


async def test_an_allowed_network_admits_only_its_own_addresses() -> None:
    guard = Guard([LOOPBACK], Names({"mixed.test": [["127.0.0.1", "10.0.0.1"]]}))
    with pytest.raises(BlockedAddress):
        await guard.addresses("mixed.test", 443)


async def test_an_allowed_host_is_admitted_wherever_it_leads() -> None:
    guard = Guard(["models.internal"], Names({"models.internal": [["10.0.0.1"]]}))
    assert await guard.addresses("models.internal", 443) == ["10.0.0.1"]


async def test_a_name_without_an_address_is_a_connection_error() -> None:
    guard = Guard([], Names({"empty.test": [[]]}))
    with pytest.raises(EgressError) as raised:
        await guard.addresses("empty.test", 443)
    assert raised.value.code == "connection_error"


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long")])
async def test_a_name_that_does_not_resolve_is_a_connection_error(error: Exception) -> None:
    async def fail(host: str, port: int) -> list[str]:
        raise error

    with pytest.raises(EgressError) as raised:
        await Guard([], fail).addresses("nowhere.test", 443)
    assert raised.value.code == "connection_error"


# URLs


@pytest.mark.parametrize(
    "url",
    [
        "http://user:password@example.com/",
        "http://user@example.com/",
        "http://:password@example.com/",
        "https://127.0.0.1:80@example.com/",
    ],
)
def test_a_url_with_a_user_or_password_is_refused(url: str) -> None:
    with pytest.raises(BlockedAddress, match="user name or password"):
        Guard([]).check_url(url)


@pytest.mark.parametrize(
    "url",
    [
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
    ],
)
def test_a_url_of_another_scheme_or_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(BlockedAddress, match="must start with http"):
        Guard([]).check_url(url)


@pytest.mark.parametrize("url", ["http://[::1/", "http://example.com:99999/", "http://a:b:c/"])
def test_a_url_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises(BlockedAddress):
        Guard([]).check_url(url)


@pytest.mark.parametrize(
    "url", ["http://example.com/", "HTTPS://example.com:8443/a?b=c", f"http://{PUBLIC}/"]
)
def test_a_plain_url_is_accepted(url: str) -> None:
    assert Guard([]).check_url(url) == URL(url)


# A server on loopback, and clients that can reach it or cannot


class Seen(msgspec.Struct, frozen=True):
    method: str
    host: str
    headers: dict[str, str]
    body: bytes


class Site:
    """A server that keeps the requests that it got."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.seen: list[Seen] = []
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def redirect(self, to: str, status: int = 302) -> str:
        return str(URL(self.url(f"/redirect/{status}")).with_query(to=to))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.method, request.host, headers, await request.read()))
        match request.path.split("/")[1:]:
            case ["redirect", status]:
                location = {"Location": request.query["to"]}
                return web.Response(status=int(status), headers=location, text="moved")
            case ["slowly-round"]:
                await asyncio.sleep(0.2)
                return web.Response(status=302, headers={"Location": "/slowly-round"})
            case ["bytes", count]:
                return web.Response(body=b"x" * int(count))
            case ["endless"]:
                return await _endless(request)
            case ["bomb"]:
                return web.Response(body=BOMB, headers={"Content-Encoding": "gzip"})
            case ["broken-gzip"]:
                return web.Response(body=b"no gzip", headers={"Content-Encoding": "gzip"})
            case ["cookie"]:
                return web.Response(headers={"Set-Cookie": "tenant=a; Path=/"})
        return web.Response(text=self.text)


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(bytes(64 * 1024))


@asynccontextmanager
async def _serving(text: str, address: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Site]:
    site = Site(text)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        site.port = runner.addresses[0][1]
        yield site
    finally:
        await runner.cleanup()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def _raw_server(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that does as it likes once a request's head has arrived; gives its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def _egress(*allow: str, resolve: Resolve | None = None) -> AsyncIterator[Egress]:
    egress = Egress(Guard(allow) if resolve is None else Guard(allow, resolve))
    try:
        yield egress
    finally:
        await egress.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with _serving("site") as serving:
        yield serving


@pytest.fixture
async def other() -> AsyncIterator[Site]:
    async with _serving("other") as serving:
        yield serving


@pytest.fixture
async def strict() -> AsyncIterator[Egress]:
    """As in production: nothing is admitted that is not public."""
    async with _egress() as egress:
        yield egress


@pytest.fixture
async def loopback() -> AsyncIterator[Egress]:
    async with _egress(LOOPBACK) as egress:
        yield egress


# Addresses in disguise


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("127.0.0.1", id="plain"),
        pytest.param("2130706433", id="decimal"),
        pytest.param("0177.0.0.1", id="octal"),
        pytest.param("017700000001", id="octal, one number"),
        pytest.param("0x7f.1", id="hex, short"),
        pytest.param("0x7f000001", id="hex, one number"),
        pytest.param("0x7f.0x0.0x0.0x1", id="hex, four numbers"),
        pytest.param("127.1", id="short"),
        pytest.param("127.0.0.1.", id="trailing dot"),
        pytest.param("0", id="zero"),
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("\uff11\uff12\uff17.0.0.1", id="fullwidth digits"),
        pytest.param("127\u30020\u30020\u30021", id="ideographic dots"),
        pytest.param("[::1]", id="IPv6"),
        pytest.param("[::]", id="unspecified 6"),
        pytest.param("[::ffff:127.0.0.1]", id="mapped"),
        pytest.param("[::ffff:7f00:1]", id="mapped in hex"),
        pytest.param("[::127.0.0.1]", id="compatible"),
        pytest.param("[64:ff9b::7f00:1]", id="NAT64"),
        pytest.param("[::1%25lo]", id="zone"),
        pytest.param("localhost", id="name"),
        pytest.param("LocalHost", id="name in mixed case"),
    ],
)
async def test_loopback_is_blocked_in_every_spelling(strict: Egress, site: Site, host: str) -> None:
    with pytest.raises(BlockedAddress):
        await strict.request("GET", site.url(host=host))
    assert site.seen == []


@pytest.mark.parametrize(
    "host", [METADATA, "10.0.0.1", "192.168.0.1", "100.64.0.1", "[fd00:ec2::254]", "[fe80::1]"]
)
async def test_a_literal_address_that_is_not_public_is_blocked(strict: Egress, host: str) -> None:
    with pytest.raises(BlockedAddress):
        await strict.request("GET", f"http://{host}/latest/meta-data/")


async def test_localhost_is_reached_once_it_is_allowed(site: Site) -> None:
    async with _egress("localhost") as egress:
        answer = await egress.request("GET", site.url(host="localhost"))
    assert answer.body == b"site"


async def test_a_literal_address_is_reached_once_its_network_is_allowed(
    loopback: Egress, site: Site
) -> None:
    answer = await loopback.request("GET", site.url("/hello"))
    assert answer == Answer(200, answer.headers, b"site", site.url("/hello"))


async def test_a_name_with_one_private_address_is_never_connected_to(site: Site) -> None:
    names = Names({"mixed.test": [["127.0.0.1", "10.0.0.1"]]})
    async with _egress("127.0.0.1", resolve=names) as egress:
        with pytest.raises(BlockedAddress):
            await egress.request("GET", site.url(host="mixed.test"))
    assert site.seen == []


async def test_a_name_that_changes_its_mind_is_asked_once(site: Site) -> None:
    names = Names({"rebind.test": [["127.0.0.1"], [METADATA]]})
    async with _egress(LOOPBACK, resolve=names) as egress:
        await egress.request("GET", site.url(host="rebind.test"))
    assert names.asked == ["rebind.test"]


async def test_the_connection_goes_to_the_address_that_was_checked(site: Site) -> None:
    names = Names({"rebind.test": [["127.0.0.1"], ["127.0.0.2"]]})
    async with (
        _serving("elsewhere", "127.0.0.2", site.port) as elsewhere,
        _egress(LOOPBACK, resolve=names) as egress,
    ):
        answer = await egress.request("GET", site.url(host="rebind.test"))
    assert (answer.body, elsewhere.seen) == (b"site", [])


async def test_every_new_connection_is_checked_again() -> None:
    async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()

    names = Names({"rebind.test": [["127.0.0.1"], [METADATA]]})
    async with _raw_server(close) as port, _egress(LOOPBACK, resolve=names) as egress:
        await egress.request("GET", f"http://rebind.test:{port}/")
        with pytest.raises(BlockedAddress):
            await egress.request("GET", f"http://rebind.test:{port}/")


async def test_the_server_is_told_the_name_and_not_the_address(site: Site) -> None:
    async with _egress(LOOPBACK, resolve=Names({"shop.test": [["127.0.0.1"]]})) as egress:
        await egress.request("GET", site.url(host="shop.test"))
    assert site.seen[0].host == f"shop.test:{site.port}"


async def test_a_proxy_of_the_environment_is_not_used(
    loopback: Egress, site: Site, other: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.url())
    answer = await loopback.request("GET", site.url())
    assert (answer.body, other.seen) == (b"site", [])


async def test_a_cookie_is_not_carried_into_the_next_request(loopback: Egress, site: Site) -> None:
    await loopback.request("GET", site.url("/cookie"))
    await loopback.request("GET", site.url())
    assert "cookie" not in site.seen[1].headers


# TLS


def _self_signed(folder: Path, name: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


async def _answer_ok(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    await writer.drain()


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    tls = _self_signed(tmp_path, "shop.test")
    names = Names({"shop.test": [["127.0.0.1"]]})
    async with _raw_server(_answer_ok, tls) as port, _egress(LOOPBACK, resolve=names) as egress:
        with pytest.raises(EgressError, match="Certificate"):
            await egress.request("GET", f"https://shop.test:{port}/")


async def test_tls_asks_for_the_name_although_the_address_was_resolved(tmp_path: Path) -> None:
    asked: list[str | None] = []
    tls = _self_signed(tmp_path, "shop.test")
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    names = Names({"shop.test": [["127.0.0.1"]]})
    async with _raw_server(_answer_ok, tls) as port, _egress(LOOPBACK, resolve=names) as egress:
        with pytest.raises(EgressError):
            await egress.request("GET", f"https://shop.test:{port}/")
    assert asked == ["shop.test"]


# Redirects


async def test_a_redirect_is_not_followed_unless_asked_for(
    loopback: Egress, site: Site, other: Site
) -> None:
    answer = await loopback.request("GET", site.redirect(other.url()))
    assert (answer.status, answer.headers["Location"]) == (302, other.url())
    assert other.seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_when_asked_for(
    loopback: Egress, site: Site, other: Site, status: int
) -> None:
    answer = await loopback.request("GET", site.redirect(other.url("/end"), status), redirects=1)
    assert (answer.status, answer.body, answer.url) == (200, b"other", other.url("/end"))


async def test_a_redirect_may_be_relative(loopback: Egress, site: Site) -> None:
    answer = await loopback.request("GET", site.redirect("../end?a=b"), redirects=1)
    assert answer.url == site.url("/end?a=b")


async def test_no_more_redirects_are_followed_than_asked_for(loopback: Egress, site: Site) -> None:
    twice = site.redirect(site.redirect(site.url("/end")))
    answer = await loopback.request("GET", twice, redirects=1)
    assert (answer.status, answer.headers["Location"]) == (302, site.url("/end"))


@pytest.mark.parametrize(
    "target",
    [
        f"http://{METADATA}/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://127.0.0.2/",
        "http://inside.test/",
        "http://user:password@127.0.0.1/",
        "ftp://127.0.0.1/",
        "http://[",
    ],
)
async def test_a_redirect_to_a_refused_address_is_blocked(site: Site, target: str) -> None:
    names = Names({"inside.test": [["10.0.0.1"]]})
    async with _egress("127.0.0.1", resolve=names) as egress:
        with pytest.raises(BlockedAddress):
            await egress.request("GET", site.redirect(target), redirects=5)


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "javascript:alert(1)", "data:text/plain,x", "http:///path"]
)
async def test_a_redirect_to_what_has_no_host_is_blocked(
    loopback: Egress, site: Site, target: str
) -> None:
    with pytest.raises(BlockedAddress):
        await loopback.request("GET", site.redirect(target), redirects=5)


async def test_the_second_hop_is_checked_like_the_first(
    loopback: Egress, site: Site, other: Site
) -> None:
    url = site.redirect(other.redirect("http://10.0.0.1/"))
    with pytest.raises(BlockedAddress):
        await loopback.request("GET", url, redirects=5)


async def test_authorization_stays_on_the_same_origin(loopback: Egress, site: Site) -> None:
    headers = {"Authorization": "Bearer abc"}
    await loopback.request("GET", site.redirect("/end"), headers=headers, redirects=1)
    assert site.seen[1].headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize("name", ["Authorization", "authorization", "Cookie", "X-API-Key"])
async def test_a_secret_header_is_not_shown_to_another_origin(
    loopback: Egress, site: Site, other: Site, name: str
) -> None:
    url = site.redirect(other.url())
    await loopback.request("GET", url, headers={name: "abc"}, redirects=1)
    assert name.lower() not in other.seen[0].headers


async def test_a_secret_header_does_not_come_back_by_a_detour(
    loopback: Egress, site: Site, other: Site
) -> None:
    url = site.redirect(other.redirect(site.url("/end")))
    await loopback.request("GET", url, headers={"Authorization": "abc"}, redirects=2)
    assert "authorization" not in site.seen[1].headers


async def test_what_says_nothing_of_the_caller_reaches_another_origin(
    loopback: Egress, site: Site, other: Site
) -> None:
    headers = {"Accept-Language": "de", "X-Goog-Api-Key": "secret"}
    await loopback.request("GET", site.redirect(other.url()), headers=headers, redirects=1)
    assert other.seen[0].headers["accept-language"] == "de"
    assert "x-goog-api-key" not in other.seen[0].headers


async def test_the_callers_own_headers_are_left_as_they_were(
    loopback: Egress, site: Site, other: Site
) -> None:
    headers = {"Authorization": "abc"}
    await loopback.request("GET", site.redirect(other.url()), headers=headers, redirects=1)
    assert headers == {"Authorization": "abc"}


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_post_becomes_a_get_without_a_body(
    loopback: Egress, site: Site, status: int
) -> None:
    await loopback.request("POST", site.redirect("/end", status), body=b"data", redirects=1)
    assert (site.seen[1].method, site.seen[1].body) == ("GET", b"")


@pytest.mark.parametrize("status", [307, 308])
async def test_a_post_stays_a_post_with_its_body(loopback: Egress, site: Site, status: int) -> None:
    await loopback.request("POST", site.redirect("/end", status), body=b"data", redirects=1)
    assert (site.seen[1].method, site.seen[1].body) == ("POST", b"data")


# Size and time


async def test_an_answer_of_just_the_limit_is_read(loopback: Egress, site: Site) -> None:
    answer = await loopback.request("GET", site.url("/bytes/1000"), max_bytes=1000)
    assert len(answer.body) == 1000


@pytest.mark.parametrize(
    ("path", "limit"), [("/bytes/1001", 1000), ("/endless", 1024 * 1024), ("/bomb", 1024 * 1024)]
)
async def test_an_answer_over_the_limit_is_cut_off(
    loopback: Egress, site: Site, path: str, limit: int
) -> None:
    with pytest.raises(ResponseTooLarge) as raised:
        await loopback.request("GET", site.url(path), max_bytes=limit)
    assert raised.value.code == "output_too_large"


async def _never(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()  # ends when the client gives up


async def _drip_head(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"X-Drip: 1\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _drip_body(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("talk", [_never, _drip_head, _drip_body])
async def test_a_server_that_takes_too_long_is_a_timeout(loopback: Egress, talk: Talk) -> None:
    async with _raw_server(talk) as port:
        with pytest.raises(EgressTimeout) as raised:
            await loopback.request("GET", f"http://127.0.0.1:{port}/", timeout_seconds=0.2)
    assert raised.value.code == "timeout"


async def test_a_name_that_never_resolves_is_a_timeout() -> None:
    async def hang(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with _egress(resolve=hang) as egress:
        with pytest.raises(EgressTimeout):
            await egress.request("GET", "http://slow.test/", timeout_seconds=0.1)


async def test_redirects_that_take_too_long_together_are_a_timeout(
    loopback: Egress, site: Site
) -> None:
    with pytest.raises(EgressTimeout):
        await loopback.request(
            "GET", site.url("/slowly-round"), timeout_seconds=0.5, redirects=1_000
        )


# What else goes wrong on the way


async def test_a_refused_connection_is_a_connection_error(loopback: Egress) -> None:
    with pytest.raises(EgressError) as raised:
        await loopback.request("GET", f"http://127.0.0.1:{free_port()}/")
    assert raised.value.code == "connection_error"


async def _garbage(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await writer.drain()


async def _hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    return


async def _half(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def _bad_chunk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n")
    await writer.drain()


async def _long_head(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000_000 + b"\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize("talk", [_garbage, _hang_up, _half, _bad_chunk, _long_head])
async def test_a_broken_answer_is_a_connection_error(loopback: Egress, talk: Talk) -> None:
    async with _raw_server(talk) as port:
        with pytest.raises(EgressError) as raised:
            await loopback.request("GET", f"http://127.0.0.1:{port}/")
    assert raised.value.code == "connection_error"


async def test_a_body_that_does_not_unpack_is_a_connection_error(
    loopback: Egress, site: Site
) -> None:
    with pytest.raises(EgressError) as raised:
        await loopback.request("GET", site.url("/broken-gzip"))
    assert raised.value.code == "connection_error"


async def test_an_error_does_not_repeat_the_query_of_the_url(loopback: Egress) -> None:
    with pytest.raises(EgressError) as raised:
        await loopback.request("GET", f"http://127.0.0.1:{free_port()}/?api_key=hunter2")
    assert "hunter2" not in str(raised.value)


async def test_an_error_of_the_caller_passes_through_an_open_answer(
    loopback: Egress, site: Site
) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with loopback.open("GET", site.url()):
            raise LookupError("mine")


async def test_an_open_answer_is_read_while_it_is_still_being_sent(
    loopback: Egress, site: Site
) -> None:
    async with loopback.open("GET", site.url("/endless")) as response:
        assert await response.content.readexactly(10) == bytes(10)


async def test_method_headers_and_body_arrive_as_given(loopback: Egress, site: Site) -> None:
    await loopback.request("PUT", site.url(), headers={"X-Custom": "1"}, body=b"data")
    seen = site.seen[0]
    assert (seen.method, seen.headers["x-custom"], seen.body) == ("PUT", "1", b"data")


# A tenant's own headers


def test_ordinary_headers_are_kept() -> None:
    given_headers = {"Authorization": "Bearer a", "X-Custom": "b", "Accept": "text/plain"}
    assert dict(custom_headers(given_headers)) == given_headers


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "HOST",
        " host ",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "X-Service-Token",
        "x-service-name",
        " X-Service-Tenant",
        "X-SERVICE-",
        "Webhook-Id",
        "webhook-signature",
        "\tWebhook-Timestamp",
    ],
)
def test_a_header_that_is_ours_is_dropped(name: str) -> None:
    assert not custom_headers({name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "1\r\nHost: evil.test"),
        ("X-A", "1\nX-Service-Token: abc"),
        ("X-A", "1\r"),
        ("X-A", "a\0b"),
        ("X-A\r\nHost", "evil.test"),
        ("X-A\nHost", "evil.test"),
        ("X-A\0", "b"),
    ],
)
def test_a_header_with_a_line_break_or_nul_is_dropped(name: str, value: str) -> None:
    assert not custom_headers({name: value})


@pytest.mark.parametrize("name", ["Host: evil.test", "Host:", "X A", "", "X-\u00e9", "X(a)"])
def test_a_header_whose_name_is_no_token_is_dropped(name: str) -> None:
    assert not custom_headers({name: "x"})


@pytest.mark.parametrize("value", ["a\x0bb", "a\x7fb", "\x1b[31m"])
async def test_a_custom_header_never_makes_the_request_crash(
    loopback: Egress, site: Site, value: str
) -> None:
    headers = custom_headers({"X-A": value})
    answer = await loopback.request("GET", site.url(), headers=headers)
    assert answer.status == 200
