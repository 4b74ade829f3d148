"""Stored files, in a local folder or an object store. Keys are ids, never names from users."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec
import obstore
from obstore.store import LocalStore, from_url

from db.connection_use import check_wait


def fsync(path: Path) -> None:
    """Returns once the file and its folder's entry are on disk."""
    for target in (path, path.parent):
        fsync_one(target)


def fsync_one(path: Path) -> None:
    """Like `fsync`, for a file or a folder without the entry of its folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# What is hashed and written at a time, off the event loop.
_BLOCK_BYTES = 1024 * 1024
# The least that S3 takes as a part of a large file. So much is in memory for each part on its way.
_PART_BYTES = 5 * 1024 * 1024
_PARTS_ON_THE_WAY = 2
# The local store writes a large file beside its place, and renames it when it is complete.
_UNFINISHED = re.compile(r"#\d+\Z")


class StoredFile(msgspec.Struct, frozen=True):
    key: str
    size_bytes: int
    sha256: str


class FileNotStored(LookupError):
    """Nothing is stored under this key."""


class Files:
    def __init__(self, store: Any, folder: Path | None = None) -> None:
        self._any_store = store  # obstore's stores share no base class
        self._folder = folder

    @property
    def _store(self) -> Any:
        check_wait("a file store")
        return self._any_store

    @classmethod
    def at(cls, uri: str, data_dir: Path) -> "Files":
        if uri:
            return cls(from_url(uri))
        folder = data_dir / "files"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(LocalStore(folder, automatic_cleanup=True), folder)

    async def check(self) -> None:
        """Raises unless the store responds."""
        with suppress(FileNotFoundError):
            await obstore.head_async(self._store, "check")

    async def put(self, key: str, content: bytes) -> StoredFile:
        """Stores a file durably. The caller commits the row with its key afterwards."""
        await obstore.put_async(self._store, key, content)
        await self._make_durable(key)
        # Off the event loop: a large file takes some ten milliseconds.
        digest = await asyncio.to_thread(hashlib.sha256, content)
        return StoredFile(key, len(content), digest.hexdigest())

    async def put_stream(
        self,
        key: str,
        chunks: AsyncIterable[bytes],
        observe: Callable[[bytes], None] = lambda _block: None,
    ) -> StoredFile:
        """Stores a file durably while its chunks arrive; a few MB of it are in memory. `observe`
        receives all of it in blocks, in a thread. When the chunks end with an error, nothing is
        stored under the key.
        """
        digest, size = hashlib.sha256(), 0

        def process(block: bytes) -> None:
            digest.update(block)
            observe(block)

        writer = obstore.open_writer_async(
            self._store, key, buffer_size=_PART_BYTES, max_concurrency=_PARTS_ON_THE_WAY
        )
        try:
            async for block in _join(chunks):
                size += len(block)
                await asyncio.gather(writer.write(block), asyncio.to_thread(process, block))
            await writer.close()
        finally:
            # A writer that was not closed deletes what it wrote with its last reference, which the
            # traceback of an error would keep.
            del writer
        await self._make_durable(key)
        return StoredFile(key, size, digest.hexdigest())

    async def _make_durable(self, key: str) -> None:
        if self._folder is not None:
            await asyncio.to_thread(_fsync_path, self._folder, key)

    async def read(self, key: str) -> bytes:
        try:
            result = await obstore.get_async(self._store, key)
        except FileNotFoundError:
            raise FileNotStored(key) from None
        return bytes(await result.bytes_async())

    async def open(self, key: str, span: tuple[int, int] | None = None) -> AsyncIterator[bytes]:
        """Returns the parts of a file, which are read one at a time; of those from the first to
        before the second position of `span`, which has at least one byte.
        """
        try:
            result = await obstore.get_async(
                self._store, key, options={} if span is None else {"range": span}
            )
        except FileNotFoundError:
            raise FileNotStored(key) from None
        return _read_parts(result)

    async def list_folders(self, folder: str) -> list[str]:
        """Returns the names of the folders in `folder`, which ends with a slash."""
        listing = await obstore.list_with_delimiter_async(self._store, folder)
        return [path.rstrip("/").rpartition("/")[2] for path in listing["common_prefixes"]]

    async def delete_folder(self, folder: str) -> None:
        """Deletes the files whose keys start with `folder`, which ends with a slash."""
        async for page in obstore.list(self._store, folder):
            await obstore.delete_async(self._store, [item["path"] for item in page])

    async def list_older(self, folder: str, moment: datetime) -> list[str]:
        """Returns the keys of a folder's files that were stored before a moment."""
        return [key async for keys in self.iterate_older(folder, moment) for key in keys]

    async def iterate_older(self, folder: str, moment: datetime) -> AsyncIterator[list[str]]:
        """Yields the keys of a folder's files that were stored before a moment, some at a time."""
        async for batch in obstore.list(self._store, folder):
            yield [item["path"] for item in batch if item["last_modified"] < moment]

    async def delete_unfinished(self, folder: str, moment: datetime) -> None:
        """Deletes what processes that were killed while they stored large files left in a local
        folder. An object store does so by its own rule for incomplete uploads.
        """
        if self._folder is not None:
            await asyncio.to_thread(_delete_unfinished, self._folder / folder, moment)

    async def delete_older(self, folder: str, moment: datetime) -> None:
        """Deletes the files of a folder that were stored before a moment."""
        for key in await self.list_older(folder, moment):
            await self.delete(key)

    async def delete(self, key: str) -> None:
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return


async def as_stream(*parts: bytes) -> AsyncIterator[bytes]:
    """Yields what is in memory, for `put_stream`."""
    for part in parts:
        yield part


class Upload(Protocol):
    """An uploaded file. Its name and declared type are not trusted."""

    @property
    def filename(self) -> str: ...

    async def read(self, size: int = -1) -> bytes: ...

    async def close(self) -> None: ...


async def read_blocks(
    upload: Upload, max_bytes: int, too_large: Callable[[], Exception]
) -> AsyncIterator[bytes]:
    """Yields an uploaded file for `put_stream`. Raises `too_large()` when it is larger."""
    size = 0
    while block := await upload.read(_BLOCK_BYTES):
        size += len(block)
        if size > max_bytes:
            raise too_large()
        yield block


async def _join(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yields blocks of at least the size that is worth a thread, and the rest."""
    buffer = bytearray()
    async for chunk in chunks:
        buffer += chunk
        if len(buffer) >= _BLOCK_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _fsync_path(folder: Path, key: str) -> None:
    """Also the entries of the key's folders, which may be new."""
    path = folder / key
    fsync(path)
    for parent in path.parent.parents:
        if not parent.is_relative_to(folder):
            return
        fsync_one(parent)


def _delete_unfinished(folder: Path, moment: datetime) -> None:
    for path in folder.rglob("*#*"):
        with suppress(FileNotFoundError):
            if _UNFINISHED.search(path.name) and path.stat().st_mtime < moment.timestamp():
                path.unlink()


async def _read_parts(result: Any) -> AsyncIterator[bytes]:
    async for part in result.stream(min_chunk_size=64 * 1024):
        yield bytes(part)
