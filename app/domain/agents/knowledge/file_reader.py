"""Reads the texts of files whose senders wait for them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from app.kit.errors import Unavailable

from . import parsing
from .parsing import Kind

MAX_CHARACTERS: Final = 100_000
MAX_READING: Final = 2
# Those that are read or wait to be: in this process, of one tenant, and of one sender.
MAX_FILES: Final = 20
MAX_FILES_OF_TENANT: Final = 10
MAX_FILES_OF_SENDER: Final = 5
# How long a file waits for its turn.
MAX_WAIT_SECONDS: Final = 45.0
_RETRY_SECONDS = 10


class ReadFile(msgspec.Struct, frozen=True):
    size_bytes: int
    text: str
    is_truncated: bool


class FileReader:
    """Reads two files at a time, and one of each tenant, whose senders take turns: a slow file
    leaves room for those of others.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_READING)
        self._files: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(
        self, tenant_id: str, sender: str, kind: Kind, load: Callable[[], Awaitable[bytes]]
    ) -> ReadFile:
        """Calls `load` when it is the file's turn: files that wait are not in memory. Raises
        Unreadable, and Unavailable when too many wait.
        """
        async with self._wait_for_turn(tenant_id, f"{tenant_id}/{sender}"):
            content = await load()
            file = await parsing.read_text(content, kind, MAX_CHARACTERS)
            return ReadFile(len(content), file.text, is_truncated=file.is_truncated)

    @asynccontextmanager
    async def _wait_for_turn(self, tenant_id: str, sender: str) -> AsyncIterator[None]:
        limits = {"": MAX_FILES, tenant_id: MAX_FILES_OF_TENANT, sender: MAX_FILES_OF_SENDER}
        if any(self._files[name] >= limit for name, limit in limits.items()):
            raise _too_many()
        own_turn, tenant_turn = (
            self._turns.setdefault(name, asyncio.Lock()) for name in (sender, tenant_id)
        )
        self._files.update(limits.keys())
        try:
            async with (
                asyncio.timeout(MAX_WAIT_SECONDS) as waiting,
                own_turn,
                tenant_turn,
                self._slots,
            ):
                waiting.reschedule(None)
                yield
        except TimeoutError:
            if not waiting.expired():
                raise
            raise _too_many() from None
        finally:
            self._files.subtract(limits.keys())
            for name in limits:
                if not self._files[name]:
                    del self._files[name]


def _too_many() -> Unavailable:
    return Unavailable("Too many files are being read; try again soon", _RETRY_SECONDS)
