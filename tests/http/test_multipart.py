"""Multipart bodies: texts are short and in UTF-8, whatever charset the client names."""

import time

import pytest

from tests.assertions import refused
from tests.scripted_agents import Talker
from tests.world import Client

_BOUNDARY = "frontier"


def _body(charset: str, text: bytes) -> bytes:
    part = (
        f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name=conversation_id\r\n"
        f"Content-Type: text/plain{charset}\r\n\r\n"
    ).encode()
    file = (
        f"\r\n--{_BOUNDARY}\r\n"
        'Content-Disposition: form-data; name=audio; filename="a.wav"\r\n\r\nx'
        f"\r\n--{_BOUNDARY}--\r\n"
    ).encode()
    return part + text + file


async def _send(talk: Talker, body: bytes) -> object:
    headers = {"content-type": f"multipart/form-data; boundary={_BOUNDARY}"}
    return await talk.client.http.post(f"{talk.path}/chat/audio", content=body, headers=headers)


async def test_a_text_is_not_decoded_by_the_charset_of_its_part(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for name, body in (
        ("a charset that decodes slowly", _body("; charset=punycode", b"a-" * 200_000)),
        ("bytes that are no UTF-8", _body("", b"\xff\xfe")),
        ("bytes that are no UTF-8, of an unknown charset", _body("; charset=bogus", b"\xff")),
    ):
        with subtests.test(name):
            started = time.process_time()
            error = refused(await _send(talk, body), 422, "validation_error")  # type: ignore[arg-type]
            assert "conversation_id" in error["details"]
            assert time.process_time() - started < 1


async def test_an_unfinished_body_is_refused(talk: Talker) -> None:
    body = _body("", b"x")
    for length in (10, 60, len(body) - 20):
        answer = await _send(talk, body[:length])
        assert answer.status_code in {400, 422}, answer.text  # type: ignore[attr-defined]


async def test_the_body_is_not_kept_beside_its_parts(developer: Client) -> None:
    """With a key, the body is read as a whole for its fingerprint."""
    for headers in ({}, {"idempotency-key": "upload-1"}):
        answer = await developer.http.post(
            "/test/file", files={"file": ("a.txt", b"content")}, headers=headers
        )
        assert answer.json() == {"file": "content", "body_is_kept": False}
