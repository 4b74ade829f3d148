"""The encodings of passages by sentence encoders, in tables beside those of the chunks.

They are tables of their own, because a row of a table of chunks that got an encoding later would be
moved, and its words indexed again. A row belongs to a version of a document: those of an earlier
version are left out of what is found.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from . import vector_index
from .chunks import DocumentState
from .encoders.registry import ENCODERS
from .lance import LanceDatabase, OpenTable, TableMissing, TableRef, of_documents
from .restriction import Restriction, read_rows

# Versions of a table that a reader may still have open.
KEPT_VERSIONS: Final = timedelta(minutes=10)
_NAMES = [info.name for info in ENCODERS]
_COPY_ROWS = 5000


class Portion(msgspec.Struct, frozen=True):
    """Passages of one document that follow each other."""

    document_id: str
    version: int
    start: int
    count: int


class EncodedPlace(NamedTuple):
    document_id: str
    position: int
    version: int
    similarity: float

    @property
    def key(self) -> tuple[str, int]:
        return self.document_id, self.position


class Encodings:
    def __init__(self, database: LanceDatabase) -> None:
        self._database = database

    async def search(
        self,
        ref: TableRef,
        encoder: str,
        revision: int,
        vector: list[float],
        limit: int,
        restriction: Restriction,
    ) -> list[EncodedPlace]:
        """Returns the places of the nearest passages, the best first."""

        async def read(opened: OpenTable) -> list[EncodedPlace]:
            names = ["document_id", "position", "version", "_distance"]

            def start_query(surplus: float) -> Any:
                return vector_index.nearest(opened.table, vector, surplus).select(names)

            rows = await read_rows(restriction, limit, start_query)
            return [
                EncodedPlace(
                    row["document_id"], row["position"], row["version"], 1 - row["_distance"]
                )
                for row in rows
            ]

        try:
            return await self._database.read(_name(ref, encoder), revision, read)
        except TableMissing:
            return []

    async def write(
        self, ref: TableRef, encoder: str, portions: Collection[Portion], vectors: Any
    ) -> None:
        """Writes the encodings of these passages, one row of `vectors` for each, in the order of
        the portions. Repeating it changes nothing.
        """
        rows = _build_rows(portions, vectors)
        connection = await self._database.connect()
        name = _name(ref, encoder)
        table = await connection.create_table(name, schema=rows.schema, exist_ok=True)
        stale = " OR ".join(map(_from_start, portions))
        if await table.count_rows(stale):
            await table.delete(stale)
        await table.add(rows)

    async def delete_documents(self, ref: TableRef, document_ids: Collection[str]) -> None:
        condition = of_documents(document_ids)
        for name in _NAMES:
            with suppress(TableMissing):
                table = await self._database.open(_name(ref, name))
                if await table.count_rows(condition):
                    await table.delete(condition)

    async def optimize(self, ref: TableRef) -> None:
        for name in _NAMES:
            with suppress(TableMissing):
                table = await self._database.open(_name(ref, name))
                await vector_index.create(table)
                await table.optimize(cleanup_older_than=KEPT_VERSIONS)

    async def drop(self, ref: TableRef) -> None:
        for name in _NAMES:
            await self._database.drop(_name(ref, name))

    async def list_documents(self, ref: TableRef) -> dict[str, DocumentState]:
        """Returns the newest version and the number of encodings of each document, by its id."""
        states: dict[str, DocumentState] = {}
        for name in _NAMES:
            with suppress(TableMissing):
                table = await self._database.open(_name(ref, name))
                states |= await count_rows_by_document(table)
        return states

    async def list_encoders(self, ref: TableRef) -> list[str]:
        """Returns those that have encoded passages of the table."""
        names = await self._database.list_names()
        return [name for name in _NAMES if _name(ref, name) in names]

    async def copy(self, old: TableRef, new: TableRef, versions: Mapping[str, int]) -> None:
        """Copies the encodings of these versions of documents."""
        for name in _NAMES:
            with suppress(TableMissing):
                source = await self._database.open(_name(old, name))
                await self._database.drop(_name(new, name))
                connection = await self._database.connect()
                schema = await source.schema()
                target = await connection.create_table(_name(new, name), schema=schema)
                async for batch in await source.query().to_batches(max_batch_length=_COPY_ROWS):
                    if (rows := _select_versions(batch, versions)).num_rows:
                        await target.add(rows)


async def count_rows_by_document(table: Any) -> dict[str, DocumentState]:
    columns = await table.query().select(["document_id", "version"]).to_arrow()
    counts = [("version", "max"), ([], "count_all")]
    groups = columns.group_by("document_id").aggregate(counts)
    return {
        row["document_id"]: DocumentState(row["version_max"], row["count_all"])
        for row in groups.to_pylist()
    }


def _name(ref: TableRef, encoder: str) -> str:
    return f"{ref.name}.{encoder}"


def _from_start(portion: Portion) -> str:
    """The condition for rows that a portion replaces."""
    place = f"(version <> {portion.version} OR position >= {portion.start})"
    return f"({of_documents([portion.document_id])} AND {place})"


def _build_rows(portions: Collection[Portion], vectors: Any) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415  # with LanceDB

    places = [
        (portion.document_id, portion.version, portion.start + number)
        for portion in portions
        for number in range(portion.count)
    ]
    documents, versions, positions = zip(*places, strict=True)
    numbers = pa.array(vectors.ravel())
    columns = {
        "document_id": pa.array(documents, pa.string()),
        "version": pa.array(versions, pa.int32()),
        "position": pa.array(positions, pa.int32()),
        "vector": pa.FixedSizeListArray.from_arrays(numbers, vectors.shape[1]),
    }
    return pa.table(columns)


def _select_versions(batch: Any, versions: Mapping[str, int]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # with LanceDB

    rows = pa.Table.from_batches([batch])
    columns = (rows.column(name).to_pylist() for name in ("document_id", "version"))
    pairs = zip(*columns, strict=True)
    return rows.filter(pa.array([versions.get(key) == version for key, version in pairs]))
