"""GET and HEAD of a file's content: ranges, conditions and headers."""

from typing import Any

import pytest

from app.domain.platform.files.ranges import (
    ByteRange,
    Unsatisfiable,
    matches_any,
    may_use_range,
    parse_range,
)
from app.services import Services
from tests.assertions import refused, until
from tests.platform.files.api import MEGABYTE, content_path, upload
from tests.world import Client

SIZE = 100
TAG = '"abc"'


def test_a_range_selects_bytes_or_is_ignored(subtests: pytest.Subtests) -> None:
    for header, expected in {
        "bytes=0-0": (0, 1),
        "bytes=0-": (0, 100),
        "bytes=10-19": (10, 20),
        "bytes=99-99": (99, 100),
        "bytes=90-1000": (90, 100),
        "bytes=-1": (99, 100),
        "bytes=-100": (0, 100),
        "bytes=-1000": (0, 100),
        "bytes=-" + "9" * 5000: (0, 100),
        "bytes=5-" + "9" * 5000: (5, 100),
        "BYTES = 1 - 2 ": (1, 3),
        "bytes=000000000000000000000001-2": (1, 3),
        "": None,
        "bytes": None,
        "bytes=": None,
        "bytes=-": None,
        "bytes=20-10": None,
        "bytes=a-b": None,
        "bytes=1-2-3": None,
        "bytes=+1-2": None,
        "bytes=1.0-2": None,
        "bytes=\u0661-\u0662": None,
        "bytes=0-1\r\nX: 1": None,
        "bytes=0-1,5-6": None,
        "lines=0-1": None,
    }.items():
        with subtests.test(header[:40]):
            result = parse_range(header, SIZE)
            assert result == (ByteRange(*expected) if expected else None)


def test_a_range_without_a_byte_of_the_file_is_unsatisfiable(subtests: pytest.Subtests) -> None:
    for header, size in (
        ("bytes=100-", 100),
        ("bytes=100-200", 100),
        (f"bytes={'9' * 5000}-", 100),
        ("bytes=-0", 100),
        ("bytes=0-0", 0),
        ("bytes=-5", 0),
    ):
        with subtests.test(header[:40], size=size), pytest.raises(Unsatisfiable):
            parse_range(header, size)


def test_entity_tags_are_compared(subtests: pytest.Subtests) -> None:
    for header, expected in {
        "*": True,
        TAG: True,
        f"W/{TAG}": True,
        f'"x", {TAG}': True,
        '"x","y"': False,
        "abc": False,
        "": False,
    }.items():
        with subtests.test(header):
            assert matches_any(header, TAG) is expected
    for if_range, expected in {
        None: True,
        TAG: True,
        f"W/{TAG}": False,
        '"x"': False,
        "Wed, 21 Oct 2015 07:28:00 GMT": False,
    }.items():
        with subtests.test("If-Range", header=if_range):
            assert may_use_range(if_range, TAG) is expected


async def test_a_part_of_the_content_is_sent(developer: Client) -> None:
    content = bytes(range(256)) * 8192
    file = await upload(developer, content)
    for header, start, end in (
        ("bytes=0-4", 0, 5),
        ("bytes=-3", len(content) - 3, len(content)),
        (f"bytes={MEGABYTE}-", MEGABYTE, len(content)),
    ):
        answer = await developer.get(content_path(file), headers={"range": header})
        assert answer.status_code == 206
        assert answer.content == content[start:end]
        assert answer.headers["content-length"] == str(end - start)
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(content)}"


async def test_the_whole_content_is_sent_for_several_ranges_and_a_changed_file(
    developer: Client,
) -> None:
    file = await upload(developer, b"0123456789")
    for headers in (
        {"range": "bytes=0-1,4-5"},
        {"range": "bytes=0-1", "if-range": '"other"'},
        {"range": "items=0-1"},
    ):
        answer = await developer.get(content_path(file), headers=headers)
        assert (answer.status_code, answer.content) == (200, b"0123456789")
        assert "content-range" not in answer.headers
    same = {"range": "bytes=0-1", "if-range": f'"{file["sha256"]}"'}
    answer = await developer.get(content_path(file), headers=same)
    assert (answer.status_code, answer.content) == (206, b"01")


async def test_an_unsatisfiable_range_is_416_with_the_size(developer: Client) -> None:
    for content in (b"0123456789", b""):
        file = await upload(developer, content)
        answer = await developer.get(content_path(file), headers={"range": "bytes=10-"})
        message = refused(answer, 416, "range_not_satisfiable")["message"]
        assert message.endswith(f"the end of the file, which has {len(content)} bytes.")
        assert answer.headers["content-range"] == f"bytes */{len(content)}"


async def test_an_unchanged_file_is_304(developer: Client) -> None:
    file = await upload(developer)
    first = await developer.get(content_path(file))
    tag = first.headers["etag"]
    assert tag == f'"{file["sha256"]}"'
    for method in ("GET", "HEAD"):
        answer = await developer(method, content_path(file), headers={"if-none-match": tag})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
    other = await developer.get(content_path(file), headers={"if-none-match": '"x"'})
    assert other.status_code == 200


async def test_head_has_the_headers_of_the_whole_content(developer: Client) -> None:
    file = await upload(developer, b"0123456789")
    whole = await developer.get(content_path(file))
    answer = await developer("HEAD", content_path(file), headers={"range": "bytes=0-1"})
    assert (answer.status_code, answer.content) == (200, b"")
    for name in ("content-length", "content-type", "content-disposition", "etag", "accept-ranges"):
        assert answer.headers[name] == whole.headers[name]


async def test_content_is_sent_as_an_attachment_that_runs_nothing(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for content, mime_type, served in (
        (b"\x89PNG\r\n\x1a\n", "image/png", "image/png"),
        (b"plain", "text/plain", "text/plain; charset=utf-8"),
        (b"%PDF-1.7", "application/pdf", "application/pdf"),
        (b"<html><script>", "text/html", "application/octet-stream"),
        (b"<svg xmlns='x'/>", "image/svg+xml", "application/octet-stream"),
        (b"\x00\x01", "application/octet-stream", "application/octet-stream"),
    ):
        with subtests.test(mime_type):
            file = await upload(developer, content, "a.png")
            assert file["mime_type"] == mime_type
            headers = (await developer.get(content_path(file))).headers
            assert headers.get_list("content-type") == [served]
            assert headers["content-disposition"] == "attachment; filename*=UTF-8''a.png"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers.get_list("content-security-policy") == ["sandbox"]
            assert headers["accept-ranges"] == "bytes"
            assert "private" in headers["cache-control"]


async def test_sending_content_holds_no_connection(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await upload(developer)
    pool: Any = services.db.engine.pool
    open_file, keys = type(services.files).open, []

    async def wait_for_connections(files: Any, key: str, *args: Any) -> Any:
        # Others of this process may have one for a moment.
        await until(lambda: pool.checkedout() == 0)
        keys.append(key)
        return await open_file(files, key, *args)

    monkeypatch.setattr(type(services.files), "open", wait_for_connections)
    assert (await developer.get(content_path(file))).content == b"content"
    assert len(keys) == 1
