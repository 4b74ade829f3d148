"""Reads XML lists of documents in a child process with limits: they come from servers of others.
Each function raises DocumentSkipped for a list that cannot be read.
"""

import asyncio
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from app.kit import logs
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

from .failures import DocumentSkipped

log = logs.get("sources")

MAX_BYTES: Final = 20 * 1024 * 1024
_SCRIPT = Path(__file__).with_name("xml_child.py")
_LIMITS = Limits(
    seconds=60.0,
    cpu_seconds=30,
    memory_mib=1024,
    output_bytes=64 * 1024 * 1024,
    open_files=64,
    niceness=10,
)


class Sitemap(msgspec.Struct, frozen=True, array_like=True):
    is_index: bool
    addresses: list[str]


class FeedEntry(msgspec.Struct, frozen=True, array_like=True):
    address: str
    title: str
    id: str
    html: str


class BucketKey(msgspec.Struct, frozen=True, array_like=True):
    key: str
    etag: str
    size: str


class BucketPage(msgspec.Struct, frozen=True, array_like=True):
    objects: list[BucketKey]
    next_token: str


async def read_sitemap(content: bytes) -> Sitemap:
    sitemap: Sitemap = await _read(content, "sitemap", Sitemap)
    return sitemap


async def read_feed(content: bytes) -> list[FeedEntry]:
    entries: list[FeedEntry] = await _read(content, "feed", list[FeedEntry])
    return entries


async def read_keys(content: bytes) -> BucketPage:
    page: BucketPage = await _read(content, "keys", BucketPage)
    return page


async def _read(content: bytes, kind: Literal["sitemap", "feed", "keys"], struct: Any) -> Any:
    try:
        response = await child_process.request(_SCRIPT, content, kind, limits=_LIMITS)
    except ScriptRefused as error:
        raise DocumentSkipped(str(error)) from None
    except ProcessFailed as error:
        log.info("a list could not be read", kind=kind, code=error.exit_code)
        raise DocumentSkipped("takes too much time or memory to read") from None
    return await asyncio.to_thread(msgspec.json.decode, response.body, type=struct)
