"""The LanceDB tables of chunks: one per agent and generation.

LanceDB is imported on the first use, because that takes a second and 100 MiB. Its calls run on
threads of its own. Readers keep tables open. Writers hold the lease of the knowledge base
(`writer_lease.py`), so that no two of them change a table at the same time.
"""

import asyncio
import importlib
import math
import os
import warnings
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from . import arrow_rows
from .chunks import EmbeddedDocument, StoredChunk

T = TypeVar("T")

MAX_OPEN_TABLES: Final = 64
# From this size on an index serves the search for vectors.
MIN_INDEXED_CHUNKS: Final = 20_000
MAX_INDEX_PARTS: Final = 8
# A search reads the whole index, since vectors of texts are hardly clustered. The index has a bit
# for each number of a vector, so the best rows, this many times the limit, are compared exactly.
REFINE_FACTOR = 5
_ALL_PARTITIONS = 100_000
# The index of bits takes vectors of these lengths only.
_BITS_PER_BYTE = 8
# Versions of a table that a reader may still have open.
_KEPT_VERSIONS = timedelta(minutes=10)
_COPY_ROWS = 5000
_NAMES_PER_PAGE = 1000
_MODEL_KEY = "embedding_model"
_COLUMNS = ["document_id", "document_name", "position", "text", "page", "row", "heading"]


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


class Matches(NamedTuple):
    """What each half of a search found, the best first: chunks with their cosine similarity, and
    chunks with their BM25 score.
    """

    by_vector: list[tuple[StoredChunk, float]]
    by_text: list[tuple[StoredChunk, float]]


class TableDescription(NamedTuple):
    model: str
    dimensions: int


class DocumentState(NamedTuple):
    version: int
    chunk_count: int


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    table: TableRef
    # The table is read at least as new as this.
    revision: int
    text: str
    # None when the text could not be embedded: then only its words are searched.
    vector: list[float] | None
    limit: int
    hidden_document_ids: Collection[str] = ()


class _OpenTable(NamedTuple):
    table: Any
    revision: int
    # Tables of earlier releases lack some.
    columns: list[str]


class ChunkStore:
    """The tables of one LanceDB database, in a folder or an object store."""

    def __init__(self, uri: str, data_dir: Path) -> None:
        self._uri = uri or str(data_dir / "lancedb")
        self._connection: Any = None
        self._connecting = asyncio.Lock()
        # Compaction and indexing use all processors; one table at a time.
        self.maintaining = asyncio.Semaphore(1)
        self._open_tables: OrderedDict[TableRef, _OpenTable] = OrderedDict()

    # Reading

    async def search(self, request: SearchRequest) -> Matches:
        """Runs both halves side by side. Raises TableMissing."""
        return await self._read(request.table, lambda: self._search(request))

    async def _read(self, table: TableRef, read: Callable[[], Awaitable[T]]) -> T:
        """Reads a second time when files of the version that is open here were deleted."""
        try:
            return await read()
        except (RuntimeError, OSError):
            self._open_tables.pop(table, None)
            return await read()

    async def _search(self, request: SearchRequest) -> Matches:
        opened = await self._open_for_reading(request.table, request.revision)
        by_text = _to_text_query(opened, request)
        if request.vector is None:
            return Matches([], _scored(await by_text.to_list()))
        by_vector = _to_vector_query(opened, request, request.vector)
        nearest, matching = await asyncio.gather(by_vector.to_list(), by_text.to_list())
        return Matches(_scored(nearest), _scored(matching))

    async def list_chunks(
        self, table: TableRef, revision: int, document_id: str, start: int, limit: int
    ) -> list[StoredChunk]:
        """Returns a document's chunks from the position `start` on, in their order."""
        place = f"position >= {start} AND position < {start + limit}"
        condition = f"{_of_documents([document_id])} AND {place}"

        async def read() -> list[StoredChunk]:
            opened = await self._open_for_reading(table, revision)
            query = opened.table.query().where(condition)
            rows = await query.select(opened.columns).to_list()
            return sorted(map(_stored, rows), key=lambda chunk: chunk.position)

        return await self._read(table, read)

    async def _open_for_reading(self, ref: TableRef, revision: int) -> _OpenTable:
        opened = self._open_tables.get(ref)
        if opened is None or opened.revision < revision:
            table = await self._open(ref) if opened is None else opened.table
            await table.checkout_latest()
            names = (await table.schema()).names
            opened = _OpenTable(table, revision, [name for name in _COLUMNS if name in names])
            self._open_tables[ref] = opened
        self._open_tables.move_to_end(ref)
        while len(self._open_tables) > MAX_OPEN_TABLES:
            self._open_tables.popitem(last=False)
        return opened

    # Writing

    async def create(self, ref: TableRef, model: str, dimensions: int) -> None:
        """Creates the table with its full-text index, unless it exists."""
        connection = await self._connect()
        schema = arrow_rows.build_schema(dimensions).with_metadata({_MODEL_KEY: model})
        table = await connection.create_table(ref.name, schema=schema, exist_ok=True)
        if not await table.list_indices():
            await table.create_index("text", config=_index("FTS", with_position=False))

    async def replace(self, ref: TableRef, document: EmbeddedDocument) -> bool:
        """Replaces all chunks of a document in one commit; True when it had any before."""
        table = await self._open(ref)
        if missing := arrow_rows.find_missing(await table.schema()):
            await table.add_columns(missing)
        rows = await asyncio.to_thread(arrow_rows.build_rows, document)
        condition = _of_documents([document.document_id])
        if not await table.count_rows(condition):
            await table.add(rows)
            return False
        # No row of the new version matches an old one.
        merge = table.merge_insert(["document_id", "version", "position"])
        merge = merge.when_not_matched_insert_all().when_not_matched_by_source_delete(condition)
        await merge.execute(rows)
        return True

    async def delete_documents(self, ref: TableRef, document_ids: Collection[str]) -> bool:
        """Deletes the documents' chunks; True when there were any."""
        condition = _of_documents(document_ids)
        try:
            table = await self._open(ref)
        except TableMissing:
            return False
        if not await table.count_rows(condition):
            return False
        await table.delete(condition)
        return True

    async def optimize(self, ref: TableRef) -> None:
        """Merges small files, brings the indexes up to date, and deletes old versions."""
        with suppress(TableMissing):
            table = await self._open(ref)
            await _create_vector_index(table)
            await table.optimize(cleanup_older_than=_KEPT_VERSIONS)

    async def drop(self, ref: TableRef) -> None:
        self._open_tables.pop(ref, None)
        connection = await self._connect()
        await connection.drop_table(ref.name, ignore_missing=True)

    async def list_tables(self, agent_id: str = "") -> list[TableRef]:
        """Returns all tables, or those of one agent."""
        connection = await self._connect()
        names: list[str] = []
        token = None
        while True:
            page = await connection.list_tables(page_token=token, limit=_NAMES_PER_PAGE)
            names += page.tables
            token = page.page_token
            if not page.tables or token is None:
                break
        refs = filter(None, map(TableRef.parse, names))
        return [ref for ref in refs if agent_id in {"", ref.agent_id}]

    # Rebuilding

    async def describe(self, ref: TableRef) -> TableDescription | None:
        """Returns None when there is no such table."""
        try:
            schema = await (await self._open(ref)).schema()
        except TableMissing:
            return None
        metadata = schema.metadata or {}
        model = metadata.get(_MODEL_KEY.encode(), b"").decode()
        return TableDescription(model, schema.field("vector").type.list_size)

    async def list_documents(self, ref: TableRef) -> dict[str, DocumentState]:
        """Returns the newest version and the number of chunks of each document, by its id. Older
        chunks, which a suspended process may have left, are counted too.
        """
        try:
            table = await self._open(ref)
        except TableMissing:
            return {}
        columns = await table.query().select(["document_id", "version"]).to_arrow()
        counts = [("version", "max"), ([], "count_all")]
        groups = columns.group_by("document_id").aggregate(counts)
        return {
            row["document_id"]: DocumentState(row["version_max"], row["count_all"])
            for row in groups.to_pylist()
        }

    async def read_batches(
        self, ref: TableRef, document_ids: Collection[str]
    ) -> AsyncIterator[Any]:
        """Yields Arrow batches with all columns of the documents' chunks."""
        table = await self._open(ref)
        query = table.query().where(_of_documents(document_ids))
        async for batch in await query.to_batches(max_batch_length=_COPY_ROWS):
            yield batch

    async def add_batch(self, ref: TableRef, batch: Any, vectors: Any = None) -> None:
        """Adds a batch of another table, with its own vectors or these."""
        rows = await asyncio.to_thread(arrow_rows.replace_vectors, batch, vectors)
        await (await self._open(ref)).add(rows)

    # The connection

    async def _open(self, ref: TableRef) -> Any:
        connection = await self._connect()
        try:
            return await connection.open_table(ref.name)
        except ValueError as error:
            raise TableMissing(ref.name) from error

    async def _connect(self) -> Any:
        async with self._connecting:
            if self._connection is None:
                lancedb = await asyncio.to_thread(_import_lancedb)
                self._connection = await lancedb.connect_async(self._uri)
            return self._connection


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


def _index(name: str, **options: Any) -> Any:
    return getattr(importlib.import_module("lancedb.index"), name)(**options)


async def _create_vector_index(table: Any) -> None:
    """Creates the index once the table is large enough for it. Later rows are added as further
    parts, each of which a search reads: with many parts the index is created again.
    """
    row_count = await table.count_rows()
    parts = [
        index.num_segments for index in await table.list_indices() if "vector" in index.columns
    ]
    if row_count < MIN_INDEXED_CHUNKS or (parts and max(parts) <= MAX_INDEX_PARTS):
        return
    dimensions = (await table.schema()).field("vector").type.list_size
    name = "IvfFlat" if dimensions % _BITS_PER_BYTE else "IvfRq"
    # The square root would be usual. Fewer are trained faster, and all of them are read anyway.
    partitions = max(1, math.isqrt(row_count) // 4)
    config = _index(name, distance_type="cosine", num_partitions=partitions)
    await table.create_index("vector", config=config)


def _to_vector_query(opened: _OpenTable, request: SearchRequest, vector: list[float]) -> Any:
    query = opened.table.query().nearest_to(vector).distance_type("cosine")
    query = query.nprobes(_ALL_PARTITIONS).refine_factor(REFINE_FACTOR)
    return _restrict(query, request).select([*opened.columns, "_distance"])


def _to_text_query(opened: _OpenTable, request: SearchRequest) -> Any:
    match = importlib.import_module("lancedb.query").MatchQuery(request.text, "text")
    query = opened.table.query().nearest_to_text(match)
    return _restrict(query, request).select([*opened.columns, "_score"])


def _restrict(query: Any, request: SearchRequest) -> Any:
    query = query.limit(request.limit)
    if request.hidden_document_ids:
        query = query.where(f"NOT {_of_documents(request.hidden_document_ids)}")
    return query


def _of_documents(document_ids: Iterable[str]) -> str:
    """The ids are ours; a quote in one is a mistake, not an attack, and matches nothing."""
    quoted = ", ".join("'" + document_id.replace("'", "''") + "'" for document_id in document_ids)
    return f"document_id IN ({quoted})"


def _scored(rows: list[dict[str, Any]]) -> list[tuple[StoredChunk, float]]:
    return [
        (_stored(row), row["_score"] if "_score" in row else 1.0 - row["_distance"]) for row in rows
    ]


def _stored(row: dict[str, Any]) -> StoredChunk:
    return StoredChunk(**{name: row[name] for name in _COLUMNS if name in row})
