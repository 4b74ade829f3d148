"""Stored files, in a local folder or an object store. Keys are ids, never names from users."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import obstore
from obstore.store import LocalStore, from_url

from app.kit import disk


class StoredFile(msgspec.Struct, frozen=True):
    key: str
    size_bytes: int
    sha256: str


class FileNotStored(LookupError):
    """Nothing is stored under this key."""


class Files:
    def __init__(self, store: Any, folder: Path | None = None) -> None:
        self._store = store  # obstore's stores share no base class
        self._folder = folder

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
        if self._folder is not None:
            await asyncio.to_thread(disk.fsync, self._folder / key)
        # Off the event loop: a large file takes some ten milliseconds.
        digest = await asyncio.to_thread(hashlib.sha256, content)
        return StoredFile(key, len(content), digest.hexdigest())

    async def read(self, key: str) -> bytes:
        try:
            result = await obstore.get_async(self._store, key)
        except FileNotFoundError:
            raise FileNotStored(key) from None
        return bytes(await result.bytes_async())

    async def read_range(self, key: str, start: int, end: int) -> bytes:
        try:
            return bytes(await obstore.get_range_async(self._store, key, start=start, end=end))
        except FileNotFoundError:
            raise FileNotStored(key) from None

    async def open(self, key: str) -> AsyncIterator[bytes]:
        """Returns the parts of a file, which are read one at a time."""
        try:
            result = await obstore.get_async(self._store, key)
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
        return [
            item["path"]
            async for batch in obstore.list(self._store, folder)
            for item in batch
            if item["last_modified"] < moment
        ]

    async def delete_older(self, folder: str, moment: datetime) -> None:
        """Deletes the files of a folder that were stored before a moment."""
        for key in await self.list_older(folder, moment):
            await self.delete(key)

    async def delete(self, key: str) -> None:
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return


async def _read_parts(result: Any) -> AsyncIterator[bytes]:
    async for part in result.stream(min_chunk_size=64 * 1024):
        yield bytes(part)
