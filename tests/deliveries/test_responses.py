"""What endpoints answer, and what the record of a delivery says of it."""

import asyncio
import gzip
from typing import Any

import pytest

from app.domain.deliveries import sending
from tests.deliveries.raw_server import encode_response, respond_with, run_raw_server
from tests.deliveries.receiver import Receiver
from tests.deliveries.sender import Sender

CUT = 16 * 1024


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_SECONDS", 0.3)


def _last(delivery: dict[str, Any]) -> dict[str, Any]:
    last: dict[str, Any] = delivery["attempts"][0]
    return last


async def _answered(sender: Sender, *said: bytes) -> dict[str, Any]:
    async with run_raw_server(respond_with(*said)) as url:
        return await sender.send_event(url)


def _is_to_be_tried_again(delivery: dict[str, Any]) -> None:
    assert (delivery["status"], delivery["attempt"]) == ("pending", 1)
    assert delivery["next_attempt_at"] is not None
    assert delivery["finished_at"] is None
    assert _last(delivery)["status"] == "failed"
    assert _last(delivery)["error"] == delivery["error"]


# Codes


@pytest.mark.parametrize("code", [200, 201, 202, 204, 206, 226, 299])
async def test_every_2xx_is_a_success(sender: Sender, receiver: Receiver, code: int) -> None:
    delivery = await sender.send_event(f"{receiver.url}/{code}")
    assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)
    assert (delivery["response_code"], delivery["error"]) == (code, None)
    assert delivery["finished_at"] is not None
    assert delivery["next_attempt_at"] is None


@pytest.mark.parametrize("code", [300, 304, 400, 401, 403, 404, 409, 418, 429, 500, 502, 503, 599])
async def test_every_other_code_is_tried_again(
    sender: Sender, receiver: Receiver, code: int
) -> None:
    delivery = await sender.send_event(f"{receiver.url}/{code}")
    _is_to_be_tried_again(delivery)
    assert delivery["response_code"] == code
    assert f"the endpoint answered {code}" in delivery["error"]


async def test_an_attempt_tells_all_of_its_answer(sender: Sender, receiver: Receiver) -> None:
    delivery = await sender.send_event(f"{receiver.url}/500")
    attempt = _last(delivery)
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


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_is_not_followed(
    sender: Sender, receiver: Receiver, code: int
) -> None:
    location = f"Location: {receiver.url}/200/after-redirect"
    delivery = await _answered(sender, encode_response(b"", f"{code} Moved", location))
    _is_to_be_tried_again(delivery)
    assert delivery["response_code"] == code
    assert "redirects are not followed" in delivery["error"]
    assert receiver.requests == []


@pytest.mark.parametrize("said", [b"101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade"])
async def test_an_upgrade_is_no_success(sender: Sender, said: bytes) -> None:
    delivery = await _answered(sender, b"HTTP/1.1 " + said + b"\r\n\r\nhello")
    _is_to_be_tried_again(delivery)


async def test_a_hint_before_the_answer_is_not_the_answer(sender: Sender) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    delivery = await _answered(sender, hint, encode_response(b"fine"))
    assert (delivery["status"], delivery["response_code"]) == ("delivered", 200)
    assert _last(delivery)["response_body"] == "fine"


# Silence, and worse


async def _failed_without_a_code(delivery: dict[str, Any]) -> None:
    _is_to_be_tried_again(delivery)
    assert delivery["response_code"] is None
    assert delivery["response_time_ms"] >= 0
    assert _last(delivery)["response_body"] is None
    assert delivery["error"]


async def test_an_endpoint_that_hangs_fails_at_the_limit(
    sender: Sender, receiver: Receiver, hurried: None
) -> None:
    delivery = await sender.send_event(f"{receiver.url}/hang")
    await _failed_without_a_code(delivery)
    assert delivery["error"] == "no answer within 0.3 s"
    assert delivery["response_time_ms"] >= 290


def test_the_limit_is_fifteen_seconds() -> None:
    assert sending.TIMEOUT_SECONDS == 15.0


async def test_an_answer_that_does_not_end_fails_at_the_limit(
    sender: Sender, receiver: Receiver, hurried: None
) -> None:
    delivery = await sender.send_event(f"{receiver.url}/drip")
    _is_to_be_tried_again(delivery)
    assert delivery["error"] == "no answer within 0.3 s"


async def test_hints_without_end_fail_at_the_limit(sender: Sender, hurried: None) -> None:
    async def hint(writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with run_raw_server(hint) as url:
        await _failed_without_a_code(await sender.send_event(url))


async def test_a_connection_that_is_reset_fails(sender: Sender, receiver: Receiver) -> None:
    await _failed_without_a_code(await sender.send_event(f"{receiver.url}/reset"))


async def test_a_port_that_nobody_listens_on_fails(sender: Sender) -> None:
    async with run_raw_server(respond_with()) as url:
        closed = url
    await _failed_without_a_code(await sender.send_event(closed))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"\x00\xff\xfe" * 50,
    ],
    ids=["nothing", "ssh", "half", "short", "words", "long", "minus", "noise"],
)
async def test_what_is_not_http_fails_without_a_code(sender: Sender, said: bytes) -> None:
    await _failed_without_a_code(await _answered(sender, said))


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnot hex\r\n",
    ],
    ids=["short", "chunks"],
)
async def test_an_answer_that_breaks_off_is_tried_again(sender: Sender, said: bytes) -> None:
    _is_to_be_tried_again(await _answered(sender, said))


async def test_an_answer_that_ends_with_its_connection_is_whole(sender: Sender) -> None:
    delivery = await _answered(sender, b"HTTP/1.0 200 OK\r\n\r\nold but fine")
    assert delivery["status"] == "delivered"
    assert _last(delivery)["response_body"] == "old but fine"


# Bodies


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", None),
        (b"ok", "ok"),
        (b"a\x00b\x00", "ab"),
        (b"caf\xe9 \xff", "caf� �"),
        (b"\xed\xa0\x80", "���"),
        ("grün 🚀".encode(), "grün 🚀"),
        (b'{"a": "\\u0000"}', '{"a": "\\u0000"}'),
        (b"\x1b[31m\x07\r\n", "\x1b[31m\x07\r\n"),
    ],
)
async def test_a_body_is_kept_as_text(sender: Sender, body: bytes, shown: str | None) -> None:
    delivery = await _answered(sender, encode_response(body))
    assert delivery["status"] == "delivered"
    assert _last(delivery)["response_body"] == shown


@pytest.mark.parametrize("code", ["200 OK", "500 Oh"])
@pytest.mark.parametrize("length", [CUT - 1, CUT, CUT + 1, 200_000])
async def test_a_body_is_cut_at_16_kib(sender: Sender, length: int, code: str) -> None:
    delivery = await _answered(sender, encode_response(b"a" * length, code))
    assert _last(delivery)["response_body"] == "a" * min(length, CUT)
    assert delivery["response_code"] == int(code[:3])
    assert (delivery["status"] == "delivered") == code.startswith("200")


async def test_a_character_on_the_cut_does_no_harm(sender: Sender) -> None:
    delivery = await _answered(sender, encode_response(b"a" * (CUT - 1) + "ü".encode()))
    assert delivery["status"] == "delivered"
    assert _last(delivery)["response_body"].rstrip("�") == "a" * (CUT - 1)


async def test_a_body_without_end_is_not_read_to_its_end(sender: Sender) -> None:
    async def babble(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"a" * 65_536)
            await writer.drain()

    async with run_raw_server(babble) as url:
        delivery = await sender.send_event(url)
    assert delivery["status"] == "delivered"
    assert _last(delivery)["response_body"] == "a" * CUT


async def test_a_packed_body_is_not_unpacked(sender: Sender) -> None:
    bomb = gzip.compress(b"a" * 50_000_000)
    delivery = await _answered(sender, encode_response(bomb, "200 OK", "Content-Encoding: gzip"))
    assert delivery["status"] == "delivered"
    assert "a" * 100 not in _last(delivery)["response_body"]
    assert len(_last(delivery)["response_body"]) <= CUT


@pytest.mark.parametrize("encoding", ["br", "zstd", "nonsense", "gzip"])
async def test_a_wrong_encoding_is_no_failure(sender: Sender, encoding: str) -> None:
    delivery = await _answered(
        sender, encode_response(b"plain", "200 OK", f"Content-Encoding: {encoding}")
    )
    assert (delivery["status"], _last(delivery)["response_body"]) == ("delivered", "plain")


async def test_an_endpoint_that_repeats_its_headers_shows_no_secret(
    sender: Sender, receiver: Receiver
) -> None:
    given = {"Authorization": "Bearer of-bad-news-0815", "X-Team": "sales-and-more"}
    delivery = await sender.send_event(f"{receiver.url}/echo", headers=given)
    assert receiver.requests[0].headers["Authorization"] == given["Authorization"]
    assert "of-bad-news" not in str(delivery)
    assert "sales-and-more" in _last(delivery)["response_body"]


async def test_one_record_is_spoilt_by_no_other(sender: Sender, receiver: Receiver) -> None:
    """Outcomes are written together."""
    odd = respond_with(encode_response(b"\x00" * 100 + b"\xed\xbf\xbf\xff"))
    async with run_raw_server(odd) as url:
        urls = (url, f"{receiver.url}/200", f"{receiver.url}/204", url)
        made = [await sender.create_webhook(address) for address in urls]
        await sender.emit_events(20)
        for webhook_id in made:
            await sender.wait_until_finished(webhook_id, 20)
    for webhook_id in made:
        assert (
            await sender.count_deliveries(webhook_id, "status = 'delivered' AND attempt = 1") == 20
        )
