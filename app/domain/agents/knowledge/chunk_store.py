"""The LanceDB tables of chunks: one per agent and generation, with those of their encodings.

Writers hold the lease of the knowledge base (`writer_lease.py`), so that no two of them change a
table at the same time.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from . import arrow_rows, vector_index
from .chunks import DocumentState, EmbeddedDocument, StoredChunk
from .encodings import KEPT_VERSIONS, EncodedPlace, Encodings, count_rows_by_document
from .lance import (
    LanceDatabase,
    OpenTable,
    TableMissing,
    TableRef,
    index,
    of_documents,
    of_places,
)
from .restriction import EVERYTHING, Restriction, read_rows

_COPY_ROWS = 5000
_MODEL_KEY = "embedding_model"
_COLUMNS = [
    *("document_id", "document_name", "position", "text", "page", "row", "heading"),
    *("version", "terms"),
]


class Matches(NamedTuple):
    """What each part of a search found, the best first: chunks with their cosine similarity, chunks
    with their BM25 score, and for each encoder chunks with their similarity.
    """

    by_vector: list[tuple[StoredChunk, float]]
    by_text: list[tuple[StoredChunk, float]]
    by_encoding: Mapping[str, list[tuple[StoredChunk, float]]] = {}


class TableDescription(NamedTuple):
    model: str
    dimensions: int


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    table: TableRef
    # The table is read at least as new as this.
    revision: int
    text: str
    # The terms of the text, for tables that have terms.
    terms: str = ""
    # None when the text could not be embedded, or need not be.
    vector: list[float] | None = None
    # By the names of encoders.
    encodings: Mapping[str, list[float]] = {}
    limit: int
    # What each part of the search may find.
    restriction: Restriction = EVERYTHING


class ChunkStore:
    """The tables of one LanceDB database, in a folder or an object store."""

    def __init__(self, uri: str, data_dir: Path) -> None:
        self._database = LanceDatabase(uri, data_dir)
        self.encodings = Encodings(self._database)
        # Compaction and indexing use all processors; one table at a time.
        self.maintaining = asyncio.Semaphore(1)

    # Reading

    async def search(self, request: SearchRequest) -> Matches:
        """Runs all parts side by side. Raises TableMissing."""

        async def read(opened: OpenTable) -> Matches:
            return await self._search(opened, request)

        return await self._database.read(request.table.name, request.revision, read)

    async def _search(self, opened: OpenTable, request: SearchRequest) -> Matches:
        searches = [
            self.encodings.search(
                request.table, name, request.revision, vector, request.limit, request.restriction
            )
            for name, vector in request.encodings.items()
        ]
        matching, nearest, encoded = await asyncio.gather(
            _find_by_text(opened, request),
            _find_by_vector(opened, request),
            asyncio.gather(*searches),
        )
        known = {chunk.key: chunk for chunk, _ in [*matching, *nearest]}
        missing = {place.key for places in encoded for place in places} - known.keys()
        if missing:
            query = opened.table.query().where(of_places(missing)).select(_columns_of(opened))
            known |= {chunk.key: chunk for chunk in map(_stored, await query.to_list())}
        by_encoding = {
            name: list(_join(places, known))
            for name, places in zip(request.encodings, encoded, strict=True)
        }
        return Matches(nearest, matching, by_encoding)

    async def find_texts(
        self, request: SearchRequest, terms: str, mistakes: int, limit: int
    ) -> list[str]:
        """Returns the texts of chunks that the request may find and that have one of the terms, or
        a term with so many letters added, left out or replaced.
        """
        match = importlib.import_module("lancedb.query").MatchQuery

        async def read(opened: OpenTable) -> list[str]:
            column = "terms" if "terms" in opened.columns else "text"
            query = match(terms, column, fuzziness=mistakes)
            columns = ["document_id", "text", "_score"]

            def start_query(_surplus: float) -> Any:
                return opened.table.query().nearest_to_text(query).select(columns)

            rows = await read_rows(request.restriction, limit, start_query)
            return [row["text"] for row in rows]

        return await self._database.read(request.table.name, request.revision, read)

    async def list_chunks(
        self, table: TableRef, revision: int, document_id: str, start: int, limit: int
    ) -> list[StoredChunk]:
        """Returns a document's chunks from the position `start` on, in their order."""
        place = f"position >= {start} AND position < {start + limit}"
        condition = f"{of_documents([document_id])} AND {place}"

        async def read(opened: OpenTable) -> list[StoredChunk]:
            query = opened.table.query().where(condition)
            rows = await query.select(_columns_of(opened)).to_list()
            return sorted(map(_stored, rows), key=lambda chunk: chunk.position)

        return await self._database.read(table.name, revision, read)

    # Writing

    async def create(self, ref: TableRef, model: str, dimensions: int) -> None:
        """Creates the table with its full-text index, unless it exists."""
        connection = await self._database.connect()
        schema = arrow_rows.build_schema(dimensions).with_metadata({_MODEL_KEY: model})
        table = await connection.create_table(ref.name, schema=schema, exist_ok=True)
        if not await table.list_indices():
            await table.create_index("terms", config=_index_of_terms())

    async def replace(self, ref: TableRef, document: EmbeddedDocument) -> bool:
        """Replaces all chunks of a document in one commit; True when it had any before."""
        table = await self._open(ref)
        if missing := arrow_rows.find_missing(await table.schema()):
            await table.add_columns(missing)
        rows = await asyncio.to_thread(arrow_rows.build_rows, document)
        rows = rows.select((await table.schema()).names)
        condition = of_documents([document.document_id])
        if not await table.count_rows(condition):
            await table.add(rows)
            return False
        # No row of the new version matches an old one.
        merge = table.merge_insert(["document_id", "version", "position"])
        merge = merge.when_not_matched_insert_all().when_not_matched_by_source_delete(condition)
        await merge.execute(rows)
        await self.encodings.delete_documents(ref, [document.document_id])
        return True

    async def delete_documents(self, ref: TableRef, document_ids: Collection[str]) -> bool:
        """Deletes the documents' chunks; True when there were any."""
        condition = of_documents(document_ids)
        try:
            table = await self._open(ref)
        except TableMissing:
            return False
        if not await table.count_rows(condition):
            return False
        await table.delete(condition)
        await self.encodings.delete_documents(ref, document_ids)
        return True

    async def optimize(self, ref: TableRef) -> None:
        """Merges small files, brings the indexes up to date, and deletes old versions."""
        with suppress(TableMissing):
            table = await self._open(ref)
            await vector_index.create(table)
            await _create_place_index(table)
            await table.optimize(cleanup_older_than=KEPT_VERSIONS)
        await self.encodings.optimize(ref)

    async def drop(self, ref: TableRef) -> None:
        await self.encodings.drop(ref)
        await self._database.drop(ref.name)

    async def list_tables(self, agent_id: str = "") -> list[TableRef]:
        """Returns all tables, or those of one agent."""
        refs = filter(None, map(TableRef.parse, await self._database.list_names()))
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
        return await count_rows_by_document(table)

    async def read_batches(
        self, ref: TableRef, document_ids: Collection[str]
    ) -> AsyncIterator[Any]:
        """Yields Arrow batches with all columns of the documents' chunks."""
        table = await self._open(ref)
        query = table.query().where(of_documents(document_ids))
        async for batch in await query.to_batches(max_batch_length=_COPY_ROWS):
            yield batch

    async def add_batch(
        self,
        ref: TableRef,
        batch: Any,
        vectors: Any = None,
        languages: Mapping[str, str | None] = {},
    ) -> None:
        """Adds a batch of another table, with its own vectors or these."""
        rows = await asyncio.to_thread(arrow_rows.convert, batch, vectors, languages)
        await (await self._open(ref)).add(rows)

    async def _open(self, ref: TableRef) -> Any:
        return await self._database.open(ref.name)


def _index_of_terms() -> Any:
    """The terms are analysed already (`terms.py`)."""
    return index(
        "FTS",
        with_position=False,
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
    )


async def _create_place_index(table: Any) -> None:
    """Of large tables, from which passages are read by their places."""
    indexed = {column for row in await table.list_indices() for column in row.columns}
    if "document_id" not in indexed and await table.count_rows() >= vector_index.MIN_INDEXED_CHUNKS:
        for column in ("document_id", "position"):
            await table.create_index(column, config=index("BTree"))


async def _find_by_text(
    opened: OpenTable, request: SearchRequest
) -> list[tuple[StoredChunk, float]]:
    column, text = "text", request.text
    if "terms" in opened.columns:
        column, text = "terms", request.terms
    if not text.strip():
        return []
    match = importlib.import_module("lancedb.query").MatchQuery(text, column)
    columns = [*_columns_of(opened), "_score"]

    def start_query(_surplus: float) -> Any:
        return opened.table.query().nearest_to_text(match).select(columns)

    rows = await read_rows(request.restriction, request.limit, start_query)
    return [(_stored(row), row["_score"]) for row in rows]


async def _find_by_vector(
    opened: OpenTable, request: SearchRequest
) -> list[tuple[StoredChunk, float]]:
    vector = request.vector
    if vector is None:
        return []
    columns = [*_columns_of(opened), "_distance"]

    def start_query(surplus: float) -> Any:
        return vector_index.nearest(opened.table, vector, surplus).select(columns)

    rows = await read_rows(request.restriction, request.limit, start_query)
    return [(_stored(row), 1.0 - row["_distance"]) for row in rows]


def _join(
    places: Collection[EncodedPlace], known: Mapping[tuple[str, int], StoredChunk]
) -> Iterator[tuple[StoredChunk, float]]:
    """Leaves out encodings of earlier versions."""
    for place in places:
        chunk = known.get(place.key)
        if chunk is not None and chunk.version == place.version:
            yield chunk, place.similarity


def _columns_of(opened: OpenTable) -> list[str]:
    """Tables of earlier releases lack some."""
    return [name for name in _COLUMNS if name in opened.columns]


def _stored(row: dict[str, Any]) -> StoredChunk:
    return StoredChunk(**{name: row[name] for name in _COLUMNS if name in row})
