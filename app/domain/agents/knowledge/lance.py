"""The LanceDB database of an instance, in a folder or an object store.

LanceDB is imported on the first use, because that takes a second and 100 MiB. Its calls run on
threads of its own. Readers keep tables open.
"""

import asyncio
import importlib
import os
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

MAX_OPEN_TABLES: Final = 64
_NAMES_PER_PAGE = 1000


class TableMissing(LookupError):
    """The table was deleted: the knowledge base has another generation, or the agent is gone."""


class TableRef(msgspec.Struct, frozen=True):
    agent_id: str
    generation: int

    @property
    def name(self) -> str:
        return f"{self.agent_id}_{self.generation}"

    @classmethod
    def parse(cls, name: str) -> "TableRef | None":
        agent_id, _, generation = name.rpartition("_")
        return cls(agent_id, int(generation)) if agent_id and generation.isdigit() else None


class OpenTable(NamedTuple):
    table: Any
    revision: int
    columns: list[str]


class LanceDatabase:
    def __init__(self, uri: str, data_dir: Path) -> None:
        self._uri = uri or str(data_dir / "lancedb")
        self._connection: Any = None
        self._connecting = asyncio.Lock()
        self._open_tables: OrderedDict[str, OpenTable] = OrderedDict()

    async def connect(self) -> Any:
        async with self._connecting:
            if self._connection is None:
                lancedb = await asyncio.to_thread(_import_lancedb)
                self._connection = await lancedb.connect_async(self._uri)
            return self._connection

    async def open(self, name: str) -> Any:
        connection = await self.connect()
        try:
            return await connection.open_table(name)
        except ValueError as error:
            raise TableMissing(name) from error

    async def read(self, name: str, revision: int, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        """Reads the table at least as new as this revision; a second time when files of the version
        that is open here were deleted. Raises TableMissing.
        """
        try:
            return await read(await self._open_for_reading(name, revision))
        except (RuntimeError, OSError):
            self._open_tables.pop(name, None)
            return await read(await self._open_for_reading(name, revision))

    async def _open_for_reading(self, name: str, revision: int) -> OpenTable:
        opened = self._open_tables.get(name)
        if opened is None or opened.revision < revision:
            table = await self.open(name) if opened is None else opened.table
            await table.checkout_latest()
            opened = OpenTable(table, revision, (await table.schema()).names)
            self._open_tables[name] = opened
        self._open_tables.move_to_end(name)
        while len(self._open_tables) > MAX_OPEN_TABLES:
            self._open_tables.popitem(last=False)
        return opened

    async def drop(self, name: str) -> None:
        self._open_tables.pop(name, None)
        connection = await self.connect()
        await connection.drop_table(name, ignore_missing=True)

    async def list_names(self) -> list[str]:
        connection = await self.connect()
        names: list[str] = []
        token = None
        while True:
            page = await connection.list_tables(page_token=token, limit=_NAMES_PER_PAGE)
            names += page.tables
            token = page.page_token
            if not page.tables or token is None:
                return names


def index(name: str, **options: Any) -> Any:
    return getattr(importlib.import_module("lancedb.index"), name)(**options)


def of_documents(document_ids: Iterable[str]) -> str:
    """The ids are ours; a quote in one is a mistake, not an attack, and matches nothing."""
    quoted = ", ".join("'" + document_id.replace("'", "''") + "'" for document_id in document_ids)
    return f"document_id IN ({quoted})"


def of_places(places: Collection[tuple[str, int]]) -> str:
    """The condition for passages of documents, by their positions."""
    by_document: dict[str, list[int]] = {}
    for document_id, position in places:
        by_document.setdefault(document_id, []).append(position)
    return " OR ".join(
        f"({of_documents([key])} AND position IN ({', '.join(map(str, sorted(positions)))}))"
        for key, positions in by_document.items()
    )


def _import_lancedb() -> Any:
    with warnings.catch_warnings(), _without_fork_hooks():
        warnings.simplefilter("ignore")
        for module in ("lancedb.index", "lancedb.query"):
            importlib.import_module(module)
        return importlib.import_module("lancedb")


@contextmanager
def _without_fork_hooks() -> Iterator[None]:
    """Leaves out LanceDB's hook for forked processes. It would run in every child process that is
    started, before the child's own program, and may wait there for ever.
    """
    register = os.register_at_fork
    os.register_at_fork = lambda **_hooks: None
    try:
        yield
    finally:
        os.register_at_fork = register
