"""The egress client connects only to checked addresses, and TLS verifies the host name."""

import asyncio
from pathlib import Path

import pytest

from app.net.egress import Answer, BlockedAddress, Egress, EgressError
from tests.certificates import create_server_context, write_certificate
from tests.net.egress_servers import (
    LOOPBACK,
    METADATA,
    FakeResolver,
    Site,
    open_egress,
    run_raw_server,
    run_site,
)

# Addresses in other notations


_CASES: dict[str, str] = {
    "plain": "127.0.0.1",
    "decimal": "2130706433",
    "octal": "0177.0.0.1",
    "octal, one number": "017700000001",
    "hex, short": "0x7f.1",
    "hex, one number": "0x7f000001",
    "hex, four numbers": "0x7f.0x0.0x0.0x1",
    "short": "127.1",
    "trailing dot": "127.0.0.1.",
    "zero": "0",
    "unspecified": "0.0.0.0",
    "fullwidth digits": "\uff11\uff12\uff17.0.0.1",
    "ideographic dots": "127\u30020\u30020\u30021",
    "IPv6": "[::1]",
    "unspecified 6": "[::]",
    "mapped": "[::ffff:127.0.0.1]",
    "mapped in hex": "[::ffff:7f00:1]",
    "compatible": "[::127.0.0.1]",
    "NAT64": "[64:ff9b::7f00:1]",
    "zone": "[::1%25lo]",
    "name": "localhost",
    "name in mixed case": "LocalHost",
}


async def test_loopback_is_blocked_in_every_notation(
    strict: Egress, site: Site, subtests: pytest.Subtests
) -> None:
    for name, host in _CASES.items():
        with subtests.test(name):
            with pytest.raises(BlockedAddress):
                await strict.request("GET", site.url(host=host))
            assert site.requests == []


async def test_a_literal_address_that_is_not_public_is_blocked(
    strict: Egress, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        METADATA,
        "10.0.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ]
    for host in cases:
        with subtests.test(host=host), pytest.raises(BlockedAddress):
            await strict.request("GET", f"http://{host}/latest/meta-data/")


async def test_localhost_is_reached_once_it_is_allowed(site: Site) -> None:
    async with open_egress("localhost") as egress:
        answer = await egress.request("GET", site.url(host="localhost"))
    assert answer.body == b"site"


async def test_a_literal_address_is_reached_once_its_network_is_allowed(
    loopback: Egress, site: Site
) -> None:
    answer = await loopback.request("GET", site.url("/hello"))
    assert answer == Answer(200, answer.headers, b"site", site.url("/hello"))


async def test_a_name_with_one_private_address_is_never_connected_to(site: Site) -> None:
    resolver = FakeResolver({"mixed.test": [["127.0.0.1", "10.0.0.1"]]})
    async with open_egress("127.0.0.1", resolve=resolver) as egress:
        with pytest.raises(BlockedAddress):
            await egress.request("GET", site.url(host="mixed.test"))
    assert site.requests == []


async def test_a_name_whose_addresses_change_is_resolved_once(site: Site) -> None:
    resolver = FakeResolver({"rebind.test": [["127.0.0.1"], [METADATA]]})
    async with open_egress(LOOPBACK, resolve=resolver) as egress:
        await egress.request("GET", site.url(host="rebind.test"))
    assert resolver.hosts == ["rebind.test"]


async def test_the_connection_goes_to_the_address_that_was_checked(site: Site) -> None:
    resolver = FakeResolver({"rebind.test": [["127.0.0.1"], ["127.0.0.2"]]})
    async with (
        run_site("elsewhere", "127.0.0.2", site.port) as elsewhere,
        open_egress(LOOPBACK, resolve=resolver) as egress,
    ):
        answer = await egress.request("GET", site.url(host="rebind.test"))
    assert (answer.body, elsewhere.requests) == (b"site", [])


async def test_every_new_connection_is_checked_again() -> None:
    async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()

    resolver = FakeResolver({"rebind.test": [["127.0.0.1"], [METADATA]]})
    async with run_raw_server(close) as port, open_egress(LOOPBACK, resolve=resolver) as egress:
        await egress.request("GET", f"http://rebind.test:{port}/")
        with pytest.raises(BlockedAddress):
            await egress.request("GET", f"http://rebind.test:{port}/")


async def test_the_host_header_has_the_name_and_not_the_address(site: Site) -> None:
    async with open_egress(
        LOOPBACK, resolve=FakeResolver({"shop.test": [["127.0.0.1"]]})
    ) as egress:
        await egress.request("GET", site.url(host="shop.test"))
    assert site.requests[0].host == f"shop.test:{site.port}"


async def test_a_proxy_of_the_environment_is_not_used(
    loopback: Egress, site: Site, other: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.url())
    answer = await loopback.request("GET", site.url())
    assert (answer.body, other.requests) == (b"site", [])


async def test_a_cookie_is_not_carried_into_the_next_request(loopback: Egress, site: Site) -> None:
    await loopback.request("GET", site.url("/cookie"))
    await loopback.request("GET", site.url())
    assert "cookie" not in site.requests[1].headers


# TLS


async def _send_ok(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    await writer.drain()


async def test_a_self_signed_certificate_is_refused(tmp_path: Path) -> None:
    tls = create_server_context(write_certificate(tmp_path, "shop.test"))
    resolver = FakeResolver({"shop.test": [["127.0.0.1"]]})
    async with (
        run_raw_server(_send_ok, tls) as port,
        open_egress(LOOPBACK, resolve=resolver) as egress,
    ):
        with pytest.raises(EgressError, match="certificate that is not trusted"):
            await egress.request("GET", f"https://shop.test:{port}/")


async def test_tls_sends_the_host_name_and_not_the_address(tmp_path: Path) -> None:
    server_names: list[str | None] = []
    tls = create_server_context(write_certificate(tmp_path, "shop.test"))
    tls.sni_callback = lambda _socket, name, _context: server_names.append(name)
    resolver = FakeResolver({"shop.test": [["127.0.0.1"]]})
    async with (
        run_raw_server(_send_ok, tls) as port,
        open_egress(LOOPBACK, resolve=resolver) as egress,
    ):
        with pytest.raises(EgressError):
            await egress.request("GET", f"https://shop.test:{port}/")
    assert server_names == ["shop.test"]
