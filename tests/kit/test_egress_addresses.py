"""The egress client connects only to checked addresses, and TLS verifies the host name."""

import asyncio
from pathlib import Path

import pytest

from app.kit.egress import Answer, BlockedAddress, Egress, EgressError
from tests.certificates import create_server_context, write_certificate
from tests.kit.egress_servers import (
    LOOPBACK,
    METADATA,
    FakeResolver,
    Site,
    open_egress,
    run_raw_server,
    run_site,
)

# Addresses in other notations


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
async def test_loopback_is_blocked_in_every_notation(strict: Egress, site: Site, host: str) -> None:
    with pytest.raises(BlockedAddress):
        await strict.request("GET", site.url(host=host))
    assert site.requests == []


@pytest.mark.parametrize(
    "host", [METADATA, "10.0.0.1", "192.168.0.1", "100.64.0.1", "[fd00:ec2::254]", "[fe80::1]"]
)
async def test_a_literal_address_that_is_not_public_is_blocked(strict: Egress, host: str) -> None:
    with pytest.raises(BlockedAddress):
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
        with pytest.raises(EgressError, match="Certificate"):
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
