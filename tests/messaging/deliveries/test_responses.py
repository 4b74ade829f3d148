"""Responses of endpoints, and how a delivery records them."""

import asyncio
import gzip
from contextlib import AsyncExitStack
from typing import Any

import pytest

from app.domain.messaging.deliveries import sending
from tests.messaging.deliveries.raw_server import encode_response, respond_with, run_raw_server
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.deliveries.sender import Sender

MAX_BODY_BYTES = 16 * 1024


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_SECONDS", 0.3)


def _last_attempt(delivery: dict[str, Any]) -> dict[str, Any]:
    last: dict[str, Any] = delivery["attempts"][0]
    return last


async def _deliver_to_each(sender: Sender, urls: list[str]) -> list[dict[str, Any]]:
    """Sends one event to all addresses; returns the deliveries after their first attempts."""
    webhook_ids = [await sender.create_webhook(url) for url in urls]
    await sender.emit_events()
    return [await sender.wait_for_attempt(webhook_id) for webhook_id in webhook_ids]


async def _deliver_for_each(sender: Sender, responses: list[bytes]) -> list[dict[str, Any]]:
    """Sends one event to a server for each response; returns the deliveries."""
    async with AsyncExitStack() as stack:
        servers = [run_raw_server(respond_with(response)) for response in responses]
        urls = [await stack.enter_async_context(server) for server in servers]
        return await _deliver_to_each(sender, urls)


async def _deliver_to(sender: Sender, *response: bytes) -> dict[str, Any]:
    async with run_raw_server(respond_with(*response)) as url:
        return await sender.send_event(url)


def _assert_retried(delivery: dict[str, Any]) -> None:
    assert (delivery["status"], delivery["attempt"]) == ("pending", 1)
    assert delivery["next_attempt_at"] is not None
    assert delivery["finished_at"] is None
    assert _last_attempt(delivery)["status"] == "failed"
    assert _last_attempt(delivery)["error"] == delivery["error"]


# Status codes


async def test_every_2xx_is_a_success(
    sender: Sender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    codes = [200, 201, 202, 204, 206, 226, 299]
    deliveries = await _deliver_to_each(sender, [f"{receiver.url}/{code}" for code in codes])
    for code, delivery in zip(codes, deliveries, strict=True):
        with subtests.test(code=code):
            assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)
            assert (delivery["response_code"], delivery["error"]) == (code, None)
            assert delivery["finished_at"] is not None
            assert delivery["next_attempt_at"] is None


async def test_every_other_code_is_retried(
    sender: Sender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    codes = [300, 304, 400, 401, 403, 404, 409, 418, 429, 500, 502, 503, 599]
    deliveries = await _deliver_to_each(sender, [f"{receiver.url}/{code}" for code in codes])
    for code, delivery in zip(codes, deliveries, strict=True):
        with subtests.test(code=code):
            _assert_retried(delivery)
            assert delivery["response_code"] == code
            assert f"the endpoint answered {code}" in delivery["error"]


async def test_an_attempt_shows_its_response(sender: Sender, receiver: Receiver) -> None:
    delivery = await sender.send_event(f"{receiver.url}/500")
    attempt = _last_attempt(delivery)
    assert attempt.pop("created_at") >= delivery["created_at"]
    assert attempt.pop("response_time_ms") == delivery["response_time_ms"]
    assert attempt == {
        "attempt": 1,
        "url": f"{receiver.url}/500",
        "status": "failed",
        "response_code": 500,
        "response_body": "noted",
        "error": "the endpoint answered 500",
    }


async def test_a_redirect_is_a_failure_and_is_not_followed(
    sender: Sender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    codes, location = [301, 302, 303, 307, 308], f"Location: {receiver.url}/200/after-redirect"
    responses = [encode_response(b"", f"{code} Moved", location) for code in codes]
    deliveries = await _deliver_for_each(sender, responses)
    for code, delivery in zip(codes, deliveries, strict=True):
        with subtests.test(code=code):
            _assert_retried(delivery)
            assert delivery["response_code"] == code
            assert "redirects are not followed" in delivery["error"]
    assert receiver.requests == []


async def test_an_upgrade_is_a_failure(sender: Sender) -> None:
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    _assert_retried(await _deliver_to(sender, head, b"hello"))


async def test_an_early_hint_is_not_the_response(sender: Sender) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    delivery = await _deliver_to(sender, hint, encode_response(b"fine"))
    assert (delivery["status"], delivery["response_code"]) == ("delivered", 200)
    assert _last_attempt(delivery)["response_body"] == "fine"


# Missing and invalid responses


def _assert_failed_without_code(delivery: dict[str, Any]) -> None:
    _assert_retried(delivery)
    assert delivery["response_code"] is None
    assert delivery["response_time_ms"] >= 0
    assert _last_attempt(delivery)["response_body"] is None
    assert delivery["error"]


async def test_an_endpoint_that_hangs_fails_at_the_timeout(
    sender: Sender, receiver: Receiver, short_timeout: None
) -> None:
    delivery = await sender.send_event(f"{receiver.url}/hang")
    _assert_failed_without_code(delivery)
    assert delivery["error"] == "no answer within 0.3 s"
    assert delivery["response_time_ms"] >= 290


def test_the_timeout_is_fifteen_seconds() -> None:
    assert sending.TIMEOUT_SECONDS == 15.0


async def test_a_response_that_does_not_end_fails_at_the_timeout(
    sender: Sender, receiver: Receiver, short_timeout: None
) -> None:
    delivery = await sender.send_event(f"{receiver.url}/drip")
    _assert_retried(delivery)
    assert delivery["error"] == "no answer within 0.3 s"


async def test_endless_early_hints_fail_at_the_timeout(sender: Sender, short_timeout: None) -> None:
    async def send_hints(writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with run_raw_server(send_hints) as url:
        _assert_failed_without_code(await sender.send_event(url))


async def test_a_connection_that_is_reset_fails(sender: Sender, receiver: Receiver) -> None:
    _assert_failed_without_code(await sender.send_event(f"{receiver.url}/reset"))


async def test_a_closed_port_fails(sender: Sender) -> None:
    async with run_raw_server(respond_with()) as url:
        closed_url = url
    _assert_failed_without_code(await sender.send_event(closed_url))


_NOT_HTTP: list[bytes] = [
    b"",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"HTTP/1.1",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"\x00\xff\xfe" * 50,
]


async def test_a_response_that_is_not_http_fails_without_a_code(
    sender: Sender, subtests: pytest.Subtests
) -> None:
    deliveries = await _deliver_for_each(sender, _NOT_HTTP)
    for response, delivery in zip(_NOT_HTTP, deliveries, strict=True):
        with subtests.test(response=response[:50]):
            _assert_failed_without_code(delivery)


async def test_an_incomplete_response_is_retried(sender: Sender, subtests: pytest.Subtests) -> None:
    responses = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnot hex\r\n",
    ]
    deliveries = await _deliver_for_each(sender, responses)
    for response, delivery in zip(responses, deliveries, strict=True):
        with subtests.test(response=response):
            _assert_retried(delivery)


async def test_a_response_that_ends_with_its_connection_is_complete(sender: Sender) -> None:
    delivery = await _deliver_to(sender, b"HTTP/1.0 200 OK\r\n\r\nold but fine")
    assert delivery["status"] == "delivered"
    assert _last_attempt(delivery)["response_body"] == "old but fine"


# Bodies


_BODIES: list[tuple[bytes, str | None]] = [
    (b"", None),
    (b"ok", "ok"),
    (b"a\x00b\x00", "ab"),
    (b"caf\xe9 \xff", "caf� �"),
    (b"\xed\xa0\x80", "���"),
    ("grün 🚀".encode(), "grün 🚀"),
    (b'{"a": "\\u0000"}', '{"a": "\\u0000"}'),
    (b"\x1b[31m\x07\r\n", "\x1b[31m\x07\r\n"),
]


async def test_a_body_is_stored_as_text(sender: Sender, subtests: pytest.Subtests) -> None:
    deliveries = await _deliver_for_each(sender, [encode_response(body) for body, _ in _BODIES])
    for (body, text), delivery in zip(_BODIES, deliveries, strict=True):
        with subtests.test(body=body):
            assert delivery["status"] == "delivered"
            assert _last_attempt(delivery)["response_body"] == text


async def test_a_body_is_cut_at_16_kib(sender: Sender, subtests: pytest.Subtests) -> None:
    lengths = (MAX_BODY_BYTES - 1, MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 200_000)
    cases = [(code, length) for code in ("200 OK", "500 Oh") for length in lengths]
    responses = [encode_response(b"a" * length, code) for code, length in cases]
    deliveries = await _deliver_for_each(sender, responses)
    for (code, length), delivery in zip(cases, deliveries, strict=True):
        with subtests.test(code=code, length=length):
            assert _last_attempt(delivery)["response_body"] == "a" * min(length, MAX_BODY_BYTES)
            assert delivery["response_code"] == int(code[:3])
            assert (delivery["status"] == "delivered") == code.startswith("200")


async def test_a_character_at_the_cut_does_not_fail_the_delivery(sender: Sender) -> None:
    delivery = await _deliver_to(
        sender, encode_response(b"a" * (MAX_BODY_BYTES - 1) + "ü".encode())
    )
    assert delivery["status"] == "delivered"
    assert _last_attempt(delivery)["response_body"].rstrip("�") == "a" * (MAX_BODY_BYTES - 1)


async def test_an_endless_body_is_read_in_part(sender: Sender) -> None:
    async def send_endless_body(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"a" * 65_536)
            await writer.drain()

    async with run_raw_server(send_endless_body) as url:
        delivery = await sender.send_event(url)
    assert delivery["status"] == "delivered"
    assert _last_attempt(delivery)["response_body"] == "a" * MAX_BODY_BYTES


async def test_a_compressed_body_is_not_decompressed(sender: Sender) -> None:
    compressed = gzip.compress(b"a" * 50_000_000)
    delivery = await _deliver_to(
        sender, encode_response(compressed, "200 OK", "Content-Encoding: gzip")
    )
    assert delivery["status"] == "delivered"
    assert "a" * 100 not in _last_attempt(delivery)["response_body"]
    assert len(_last_attempt(delivery)["response_body"]) <= MAX_BODY_BYTES


async def test_an_unknown_or_wrong_encoding_is_a_success(
    sender: Sender, subtests: pytest.Subtests
) -> None:
    encodings = ["br", "zstd", "nonsense", "gzip"]
    heads = [f"Content-Encoding: {encoding}" for encoding in encodings]
    responses = [encode_response(b"plain", "200 OK", head) for head in heads]
    deliveries = await _deliver_for_each(sender, responses)
    for encoding, delivery in zip(encodings, deliveries, strict=True):
        with subtests.test(encoding=encoding):
            body = _last_attempt(delivery)["response_body"]
            assert (delivery["status"], body) == ("delivered", "plain")


async def test_an_endpoint_that_repeats_its_headers_shows_no_secret(
    sender: Sender, receiver: Receiver
) -> None:
    headers = {"Authorization": "Bearer of-bad-news-0815", "X-Team": "sales-and-more"}
    delivery = await sender.send_event(f"{receiver.url}/echo", headers=headers)
    assert receiver.requests[0].headers["Authorization"] == headers["Authorization"]
    assert "of-bad-news" not in str(delivery)
    assert "sales-and-more" in _last_attempt(delivery)["response_body"]


async def test_an_odd_response_does_not_affect_other_deliveries(
    sender: Sender, receiver: Receiver
) -> None:
    """Outcomes of several deliveries are written in one statement."""
    respond = respond_with(encode_response(b"\x00" * 100 + b"\xed\xbf\xbf\xff"))
    async with run_raw_server(respond) as url:
        urls = (url, f"{receiver.url}/200", f"{receiver.url}/204", url)
        webhook_ids = [await sender.create_webhook(address) for address in urls]
        await sender.emit_events(20)
        for webhook_id in webhook_ids:
            await sender.wait_until_finished(webhook_id, 20)
    for webhook_id in webhook_ids:
        assert (
            await sender.count_deliveries(webhook_id, "status = 'delivered' AND attempt = 1") == 20
        )
