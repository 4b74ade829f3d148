"""Stored files."""

import hashlib
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.kit.files import FileNotStored, Files, StoredFile, as_stream
from tests.assertions import until


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files.at("", tmp_path)


async def test_a_stored_file_is_read_as_it_was(files: Files) -> None:
    await files.put("fil_1", b"content")
    assert await files.read("fil_1") == b"content"


async def test_storing_returns_size_and_hash(files: Files) -> None:
    sha256 = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert await files.put("fil_1", b"content") == StoredFile("fil_1", 7, sha256)


async def test_a_file_may_be_empty(files: Files) -> None:
    await files.put("fil_1", b"")
    assert await files.read("fil_1") == b""


async def test_a_file_may_be_replaced(files: Files) -> None:
    await files.put("fil_1", b"first")
    await files.put("fil_1", b"second")
    assert await files.read("fil_1") == b"second"


async def test_a_key_may_have_folders(files: Files, tmp_path: Path) -> None:
    await files.put("ten_1/fil_1", b"content")
    assert (tmp_path / "files" / "ten_1" / "fil_1").read_bytes() == b"content"


async def test_files_outlast_the_process_that_stored_them(files: Files, tmp_path: Path) -> None:
    await files.put("fil_1", b"content")
    assert await Files.at("", tmp_path).read("fil_1") == b"content"


async def test_files_can_be_stored_at_a_url(tmp_path: Path) -> None:
    await Files.at(tmp_path.as_uri(), tmp_path / "unused").put("fil_1", b"content")
    assert (tmp_path / "fil_1").read_bytes() == b"content"


async def test_a_range_of_a_file_is_read(files: Files, subtests: pytest.Subtests) -> None:
    cases: list[tuple[int, int, bytes]] = [
        (0, 3, b"012"),
        (3, 7, b"3456"),
        (9, 10, b"9"),
        (5, 100, b"56789"),
    ]
    for start, end, part in cases:
        with subtests.test(start=start, end=end):
            await files.put("fil_1", b"0123456789")
            parts = [item async for item in await files.open("fil_1", (start, end))]
            assert b"".join(parts) == part


async def test_a_streamed_file_is_whole(files: Files) -> None:
    content = os.urandom(1_000_000)
    await files.put("fil_1", content)
    assert b"".join([part async for part in await files.open("fil_1")]) == content


async def test_a_large_file_is_streamed_in_parts(files: Files) -> None:
    await files.put("fil_1", bytes(10_000_000))
    assert len([part async for part in await files.open("fil_1")]) > 1


async def test_a_deleted_file_is_gone(files: Files) -> None:
    await files.put("fil_1", b"content")
    await files.delete("fil_1")
    with pytest.raises(FileNotStored):
        await files.read("fil_1")


async def test_deleting_a_missing_file_succeeds(files: Files) -> None:
    await files.delete("fil_1")


async def test_reading_a_missing_file_is_an_error(files: Files) -> None:
    with pytest.raises(FileNotStored):
        await files.read("fil_1")


async def test_streaming_a_missing_file_is_an_error(files: Files) -> None:
    with pytest.raises(FileNotStored):
        await files.open("fil_1")


async def test_no_key_leads_out_of_the_folder(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.\."):
        await files.put("../evil", b"content")
    assert not (tmp_path / "evil").exists()


async def test_a_stream_is_stored_as_it_was(files: Files) -> None:
    for parts in ([], [b"", b"one"], [b"x" * 700_000] * 20):
        blocks = list[bytes]()
        stored = await files.put_stream("fil_1", as_stream(*parts), blocks.append)
        content = b"".join(parts)
        assert stored == StoredFile("fil_1", len(content), hashlib.sha256(content).hexdigest())
        assert await files.read("fil_1") == b"".join(blocks) == content


async def test_a_stream_that_fails_leaves_nothing(files: Files, tmp_path: Path) -> None:
    async def fail() -> AsyncIterator[bytes]:
        for _ in range(12):
            yield bytes(1024 * 1024)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await files.put_stream("fil_1", fail())
    await until(lambda: not [path for path in tmp_path.rglob("*") if path.is_file()])


async def test_unfinished_files_are_deleted_once_they_are_old(files: Files, tmp_path: Path) -> None:
    await files.put("folder/fil_1#x", b"content")
    parts = [tmp_path / "files" / "folder" / name for name in ("fil_1#1", "fil_2#12")]
    for path in parts:
        path.write_bytes(b"part")
    now = datetime.now(UTC)
    await files.delete_unfinished("folder/", now - timedelta(hours=1))
    assert all(path.exists() for path in parts)
    await files.delete_unfinished("folder/", now + timedelta(hours=1))
    assert not any(path.exists() for path in parts)
    assert await files.read("folder/fil_1#x") == b"content"


async def test_a_part_of_a_file_is_streamed(files: Files) -> None:
    await files.put("fil_1", b"0123456789")
    parts = [part async for part in await files.open("fil_1", (2, 5))]
    assert b"".join(parts) == b"234"
