"""Tables that release 0.1.0 wrote, which have no headings."""

from pathlib import Path
from typing import Any

import pytest

from app.domain.agents.knowledge import arrow_rows
from app.domain.agents.knowledge.chunk_store import ChunkStore, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument
from app.domain.agents.knowledge.lance import TableRef
from tests.agents.knowledge.tables import ones

_OLD, _NEW = TableRef("agt_old", 1), TableRef("agt_old", 2)
_DIMENSIONS = 4


def _embed(document_id: str, version: int, *chunks: Chunk) -> EmbeddedDocument:
    vectors = ones(len(chunks), _DIMENSIONS)
    return EmbeddedDocument(document_id, "a.md", version, "local/x", list(chunks), vectors)


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChunkStore:
    """A table with one document, as the old release wrote it."""
    store = ChunkStore("", tmp_path)
    build_schema, build_rows = arrow_rows.build_schema, arrow_rows.build_rows
    with monkeypatch.context() as patch:
        patch.setattr(arrow_rows, "build_schema", lambda size: _without_heading(build_schema(size)))
        await store.create(_OLD, "local/x", _DIMENSIONS)
    with monkeypatch.context() as patch:
        patch.setattr(arrow_rows, "find_missing", lambda _schema: [])
        patch.setattr(
            arrow_rows, "build_rows", lambda document: build_rows(document).drop(["heading"])
        )
        await store.replace(_OLD, _embed("doc_old", 1, Chunk("an old text")))
    return store


def _without_heading(schema: Any) -> Any:
    return schema.remove(schema.get_field_index("heading"))


async def _search(store: ChunkStore, revision: int, table: TableRef = _OLD) -> set[tuple[str, Any]]:
    request = SearchRequest(
        table=table, revision=revision, text="text", vector=[1.0] * _DIMENSIONS, limit=5
    )
    matches = await store.search(request)
    return {(chunk.document_id, chunk.heading) for chunk, _ in matches.by_vector}


async def test_an_old_table_is_searched_and_listed(store: ChunkStore) -> None:
    assert await _search(store, 1) == {("doc_old", None)}
    (chunk,) = await store.list_chunks(_OLD, 1, "doc_old", 0, 5)
    assert (chunk.text, chunk.heading) == ("an old text", None)


async def test_an_old_table_takes_new_documents_while_it_is_read(store: ChunkStore) -> None:
    assert await _search(store, 1) == {("doc_old", None)}
    new = _embed("doc_new", 1, Chunk("a new text", heading="Terms"))
    await store.replace(_OLD, new)
    # Readers of the last revision, and of the new one.
    assert await _search(store, 1)
    assert await _search(store, 2) == {("doc_old", None), ("doc_new", "Terms")}
    await store.replace(_OLD, _embed("doc_old", 2, Chunk("a text", heading="Old")))
    assert await _search(store, 3) == {("doc_old", "Old"), ("doc_new", "Terms")}


@pytest.mark.parametrize("has_vectors", [True, False])
async def test_rows_of_an_old_table_are_copied_into_a_new_one(
    store: ChunkStore, *, has_vectors: bool
) -> None:
    await store.create(_NEW, "local/x", _DIMENSIONS)
    async for batch in store.read_batches(_OLD, ["doc_old"]):
        vectors = None if has_vectors else ones(batch.num_rows, _DIMENSIONS)
        await store.add_batch(_NEW, batch, vectors)
    assert await _search(store, 1, _NEW) == {("doc_old", None)}
