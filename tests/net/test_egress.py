"""Size limits, timeouts and connection errors of the egress client."""

import asyncio

import pytest

from app.net.egress import Egress, EgressError, EgressTimeout, ResponseTooLarge
from tests.net.egress_servers import RawHandler, Site, open_egress, run_raw_server
from tests.ports import free_port

# Size and time


async def test_an_answer_of_just_the_limit_is_read(loopback: Egress, site: Site) -> None:
    answer = await loopback.request("GET", site.url("/bytes/1000"), max_bytes=1000)
    assert len(answer.body) == 1000


async def test_an_answer_over_the_limit_is_cut_off(
    loopback: Egress, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, int]] = [
        ("/bytes/1001", 1000),
        ("/endless", 1024 * 1024),
        ("/bomb", 1024 * 1024),
    ]
    for path, limit in cases:
        with subtests.test(path=path, limit=limit):
            with pytest.raises(ResponseTooLarge) as raised:
                await loopback.request("GET", site.url(path), max_bytes=limit)
            assert raised.value.code == "output_too_large"


async def _send_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()  # ends when the client gives up


async def _send_head_slowly(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"X-Drip: 1\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _send_body_slowly(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def test_a_server_that_takes_too_long_is_a_timeout(
    loopback: Egress, subtests: pytest.Subtests
) -> None:
    cases: list[RawHandler] = [_send_nothing, _send_head_slowly, _send_body_slowly]
    for handler in cases:
        with subtests.test(handler=handler):
            async with run_raw_server(handler) as port:
                with pytest.raises(EgressTimeout) as raised:
                    await loopback.request("GET", f"http://127.0.0.1:{port}/", timeout_seconds=0.2)
            assert raised.value.code == "timeout"


async def test_a_name_that_never_resolves_is_a_timeout() -> None:
    async def hang(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with open_egress(resolve=hang) as egress:
        with pytest.raises(EgressTimeout):
            await egress.request("GET", "http://slow.test/", timeout_seconds=0.1)


async def test_redirects_that_take_too_long_together_are_a_timeout(
    loopback: Egress, site: Site
) -> None:
    with pytest.raises(EgressTimeout):
        await loopback.request(
            "GET", site.url("/slowly-round"), timeout_seconds=0.5, redirects=1_000
        )


# Connection errors


async def test_a_refused_connection_is_a_connection_error(loopback: Egress) -> None:
    with pytest.raises(EgressError) as raised:
        await loopback.request("GET", f"http://127.0.0.1:{free_port()}/")
    assert raised.value.code == "connection_error"


async def _send_garbage(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await writer.drain()


async def _hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    return


async def _send_half_body(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def _send_bad_chunk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n")
    await writer.drain()


async def _send_long_head(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000_000 + b"\r\n\r\n")
    await writer.drain()


async def test_a_broken_answer_is_a_connection_error(
    loopback: Egress, subtests: pytest.Subtests
) -> None:
    cases: list[RawHandler] = [
        _send_garbage,
        _hang_up,
        _send_half_body,
        _send_bad_chunk,
        _send_long_head,
    ]
    for handler in cases:
        with subtests.test(handler=handler):
            async with run_raw_server(handler) as port:
                with pytest.raises(EgressError) as raised:
                    await loopback.request("GET", f"http://127.0.0.1:{port}/")
            assert raised.value.code == "connection_error"


async def test_a_body_with_invalid_compression_is_a_connection_error(
    loopback: Egress, site: Site
) -> None:
    with pytest.raises(EgressError) as raised:
        await loopback.request("GET", site.url("/broken-gzip"))
    assert raised.value.code == "connection_error"


async def test_an_error_does_not_repeat_the_query_of_the_url(loopback: Egress) -> None:
    with pytest.raises(EgressError) as raised:
        await loopback.request("GET", f"http://127.0.0.1:{free_port()}/?api_key=hunter2")
    assert "hunter2" not in str(raised.value)


async def test_an_error_of_the_caller_passes_through_an_open_response(
    loopback: Egress, site: Site
) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with loopback.open("GET", site.url()):
            raise LookupError("mine")


async def test_an_open_response_is_read_while_the_server_sends_it(
    loopback: Egress, site: Site
) -> None:
    async with loopback.open("GET", site.url("/endless")) as response:
        assert await response.content.readexactly(10) == bytes(10)


async def test_method_headers_and_body_arrive_unchanged(loopback: Egress, site: Site) -> None:
    await loopback.request("PUT", site.url(), headers={"X-Custom": "1"}, body=b"data")
    request = site.requests[0]
    assert (request.method, request.headers["x-custom"], request.body) == ("PUT", "1", b"data")
