"""Fingerprints of bodies for Idempotency-Key: equal for the same parts, whatever the boundary."""

import itertools
import tracemalloc
from collections.abc import AsyncIterator

import httpx
import pytest
from litestar.datastructures import UploadFile

from app.http.multipart import BodyDigest, parse_form
from tests.assertions import refused
from tests.world import Client

_MEGABYTE = 1024 * 1024


def _body(boundary: str, *parts: bytes) -> bytes:
    delimiter = f"--{boundary}\r\n".encode()
    start = b"".join(delimiter + part + b"\r\n" for part in parts)
    return start + f"--{boundary}--\r\n".encode()


async def _fingerprint(boundary: str, body: bytes, piece_bytes: int = 64 * 1024) -> str:
    """Parses a body that arrives in pieces."""

    async def arrive() -> AsyncIterator[bytes]:
        for start in range(0, len(body), piece_bytes):
            yield body[start : start + piece_bytes]

    digest = BodyDigest()
    form = await parse_form(arrive(), boundary.encode(), digest)
    for value in form.values():
        if isinstance(value, UploadFile):
            await value.close()
    return digest.hexdigest()


def _part(name: str, content: bytes) -> bytes:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content


_PARTS = (_part("a", b"--x\r\n--xy\r\n"), _part("b", b"\x00\x7f" * 40))


async def test_the_boundary_does_not_change_the_fingerprint(subtests: pytest.Subtests) -> None:
    expected = await _fingerprint("frontier", _body("frontier", *_PARTS))
    for boundary in ("a", "----WebKitFormBoundary7MA4YWxkTrZu0gW", "x" * 70):
        with subtests.test(boundary=boundary):
            assert await _fingerprint(boundary, _body(boundary, *_PARTS)) == expected


async def test_the_pieces_in_which_a_body_arrives_do_not_change_the_fingerprint() -> None:
    body = _body("frontier", *_PARTS)
    fingerprints = {await _fingerprint("frontier", body, size) for size in (1, 7, 64, len(body))}
    assert len(fingerprints) == 1


async def test_bodies_that_differ_have_different_fingerprints(subtests: pytest.Subtests) -> None:
    bodies = [
        _body("x", _part("a", b"banana")),
        _body("x", _part("a", b"bnn")),
        _body("x", _part("b", b"banana")),
        _body("x", _part("a", b"bann"), _part("a", b"a")),
        _body("x", _part("a", b"banana"), _part("b", b"")),
        _body("x", _part("b", b""), _part("a", b"banana")),
        _body("x", _part("a", b"banana\r\n")),
        _body("x", _part("a", b"\r\n--a")),
        _body("x", _part("a", b"")),
    ]
    fingerprints = [await _fingerprint("x", body) for body in bodies]
    for one, other in itertools.combinations(range(len(bodies)), 2):
        with subtests.test(one=bodies[one], other=bodies[other]):
            assert fingerprints[one] != fingerprints[other]


async def test_a_file_is_not_in_memory_while_it_is_hashed() -> None:
    part = b'Content-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n'
    body = _body("frontier", part + b"0123456789abcdef" * (_MEGABYTE // 16) * 16)
    tracemalloc.start()
    await _fingerprint("frontier", body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * _MEGABYTE


async def test_a_form_is_replayed_although_its_boundary_differs(developer: Client) -> None:
    """A client draws a new boundary for each attempt."""

    async def send(boundary: str, name: bytes) -> httpx.Response:
        headers = {
            "content-type": f"multipart/form-data; boundary={boundary}",
            "idempotency-key": "upload",
        }
        body = _body(boundary, _part("name", name))
        return await developer.http.post("/test/upload", content=body, headers=headers)

    first = await send("one", b"banana")
    again = await send("another", b"banana")
    assert first.status_code == again.status_code == 201, first.text
    assert first.content == again.content
    assert again.headers["idempotent-replayed"] == "true"
    refused(await send("a", b"bnn"), 422, "idempotency_mismatch")
