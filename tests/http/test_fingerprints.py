"""Fingerprints of bodies for Idempotency-Key: equal for the same parts, whatever the boundary."""

import asyncio
import itertools
import time
import tracemalloc

import httpx
import pytest

from app.http.idempotency import compute_fingerprint
from tests.asking import refused
from tests.world import Client

_MEGABYTE = 1024 * 1024


def _body(boundary: str, *parts: bytes) -> bytes:
    delimiter = f"--{boundary}\r\n".encode()
    start = b"".join(delimiter + part + b"\r\n" for part in parts)
    return start + f"--{boundary}--\r\n".encode()


def _fingerprint(boundary: str, body: bytes) -> str:
    return compute_fingerprint(body, boundary.encode())


def _part(name: str, content: bytes) -> bytes:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content


_PARTS = (_part("a", b"--x\r\n--xy\r\n"), _part("b", b"\x00\xff" * 40))


def test_the_boundary_does_not_change_the_fingerprint(subtests: pytest.Subtests) -> None:
    expected = _fingerprint("frontier", _body("frontier", *_PARTS))
    for boundary in ("a", "----WebKitFormBoundary7MA4YWxkTrZu0gW", "x" * 70, "a.*(b)"):
        with subtests.test(boundary=boundary):
            assert _fingerprint(boundary, _body(boundary, *_PARTS)) == expected


def test_bodies_that_differ_have_different_fingerprints(subtests: pytest.Subtests) -> None:
    """With the boundary `a`, and pairwise, as an `a` may stand anywhere."""
    bodies = [
        _body("a", b"banana"),
        _body("a", b"bnn"),
        _body("a", b"bann", b"x"),
        _body("a", b"banana", b""),
        _body("a", b"", b"banana"),
        _body("a", b"banana\r\n"),
        _body("a", b"--ab"),
        _body("a", b"--b"),
        _body("a", b"\r\n--ab"),
        _body("a", b"\r\n--b"),
        b"\r\n" + _body("a", b"banana"),
        b"preamble\r\n" + _body("a", b"banana"),
        _body("a", b"banana") + b"epilogue",
        _body("a", b"banana")[:-2],
        _body("a", b"banana").replace(b"\r\n", b"\n"),
        b"--a",
        b"--a--",
        b"a",
        b"",
    ]
    for one, other in itertools.combinations(bodies, 2):
        with subtests.test(one=one, other=other):
            assert _fingerprint("a", one) != _fingerprint("a", other)


def test_a_delimiter_is_found_wherever_it_stands() -> None:
    """The body is searched piece by piece; a delimiter may lie across two of them."""
    contents = [b"x" * (_MEGABYTE - shift) for shift in range(120)]
    for content in contents:
        one, other = (_body(name, content, b"y") for name in ("frontier", "f"))
        assert _fingerprint("frontier", one) == _fingerprint("f", other)


def test_a_body_of_delimiters_only_is_read_in_short_time() -> None:
    body = b"--a\r\n" + b"\r\n--a\r\n" * 1_000_000
    assert _fingerprint("a", body) != _fingerprint("a", body[:-7])
    tracemalloc.start()
    _fingerprint("a", body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < _MEGABYTE


def test_a_fingerprint_needs_no_copy_of_the_body(subtests: pytest.Subtests) -> None:
    content = b"0123456789abcdef" * (_MEGABYTE // 16) * 32
    for boundary, body in (("frontier", _body("frontier", content, content)), ("", content)):
        with subtests.test(boundary=boundary):
            tracemalloc.start()
            _fingerprint(boundary, body)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < _MEGABYTE


async def _measure_longest_pause(body: bytes) -> float:
    """Returns the longest time for which the event loop did not run."""
    task = asyncio.create_task(asyncio.to_thread(_fingerprint, "frontier", body))
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


async def test_the_event_loop_runs_while_a_large_fingerprint_is_computed() -> None:
    """The thread holds the lock of the interpreter for a short time only. Other processes may take
    the processor, so the best of three counts.
    """
    body = _body("frontier", b"\r\n--fron" * (_MEGABYTE // 8) * 64)
    assert min([await _measure_longest_pause(body) for _ in range(3)]) < 0.1


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
