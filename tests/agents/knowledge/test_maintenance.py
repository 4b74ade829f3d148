"""Tables are compacted, indexed and swept; readers notice nothing."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import app.domain.agents.knowledge.jobs
from app.domain.agents.knowledge import (
    chunk_store,
    ingestion,
    maintenance,
    queries,
    table_queries,
    vector_index,
)
from app.domain.agents.knowledge.chunk_store import ChunkStore, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.parsing import Unreadable
from app.domain.agents.knowledge.work_kinds import MAINTAIN, REMOVE_DOCUMENT
from app.domain.agents.knowledge.writer_lease import TableBusy, TableReplaced, Writer, hold_table
from app.jobs import work
from app.kit import clock
from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.agents.knowledge.tables import (
    find_base,
    list_generations,
    maintain,
    ones,
    random_vectors,
)
from tests.assertions import until, wait_until
from tests.database import fetch_rows
from workers.main import WorkerProcess


async def test_another_model_or_removed_text_makes_a_table_due_unless_it_is_attended_to(
    librarian: Librarian, services: Services
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    tenant_id, agent_id = librarian.client.tenant_id, librarian.agent_id
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()

        async def is_due(model: str) -> bool:
            """In this transaction alone, so that no worker takes it."""
            clear = "UPDATE knowledge_bases SET maintain_at = NULL WHERE agent_id = $1"
            await raw.execute(clear, agent_id)
            await table_queries.mark_due(tx, MAINTAIN.name, model)
            sql = "SELECT maintain_at IS NOT NULL FROM knowledge_bases WHERE agent_id = $1"
            return bool(await raw.fetchval(sql, agent_id))

        assert await is_due("openai/another")
        assert not await is_due(services.settings.embedding_model)
        removed = "UPDATE knowledge_bases SET has_removed_chunks = true WHERE agent_id = $1"
        await raw.execute(removed, agent_id)
        assert await is_due(services.settings.embedding_model)
        later = clock.now() + timedelta(days=1)
        await work.accept(tx, MAINTAIN, tenant_id=tenant_id, ref_id=agent_id, run_at=later)
        assert not await is_due("openai/another")
        await raw.execute("ROLLBACK AND CHAIN")


async def test_a_large_table_gets_an_index_of_its_vectors(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "MIN_INDEXED_CHUNKS", 50)
    text = "\n\n".join(f"# Part {number}\n\nText number {number}." for number in range(60))
    await librarian.add(parts_md=text)
    await maintain(services, librarian)
    store = services.get(ChunkStore)
    table = await store._open(TableRef(librarian.agent_id, 1))
    columns = [index.columns for index in await table.list_indices()]
    assert sorted(columns) == [["document_id"], ["position"], ["terms"], ["vector"]]
    found = await librarian.search("Text number 17")
    assert "Text number 17." in found[0]["content"]


async def test_an_index_of_many_parts_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "MIN_INDEXED_CHUNKS", 300)
    monkeypatch.setattr(vector_index, "MAX_INDEX_PARTS", 2)
    store, table = ChunkStore("", tmp_path), TableRef("agt_parts", 1)
    await store.create(table, "m", 8)
    counts = []
    for number in range(5):
        vectors = random_vectors(300, 8, seed=number)
        chunks = [Chunk(f"Text {number}")] * 300
        await store.replace(table, EmbeddedDocument(f"d{number}", "x", 1, "m", chunks, vectors))
        await store.optimize(table)
        indexes = await (await store._open(table)).list_indices()
        counts += [index.num_segments for index in indexes if index.columns == ["vector"]]
    assert max(counts) > 1
    assert max(counts) <= 3


async def test_vectors_of_any_length_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(vector_index, "MIN_INDEXED_CHUNKS", 300)
    store = ChunkStore("", tmp_path)
    for dimensions, kind in ((64, "IvfRq"), (12, "IvfFlat")):
        with subtests.test(dimensions=dimensions):
            await _check_index(store, dimensions, kind)


async def _check_index(store: ChunkStore, dimensions: int, kind: str) -> None:
    table = TableRef(f"agt_{dimensions}", 1)
    await store.create(table, "m", dimensions)
    vectors = random_vectors(1000, dimensions)
    chunks = [Chunk(f"Text {number}") for number in range(1000)]
    await store.replace(table, EmbeddedDocument("doc", "x", 1, "m", chunks, vectors))
    await store.optimize(table)
    indexes = await (await store._open(table)).list_indices()
    assert [index.index_type for index in indexes if index.columns == ["vector"]] == [kind]
    for number in range(0, 1000, 100):
        request = SearchRequest(
            table=table, revision=1, text="", vector=vectors[number].tolist(), limit=5
        )
        ((chunk, similarity), *_) = (await store.search(request)).by_vector
        assert (chunk.position, round(similarity, 4)) == (number, 1.0)


async def test_a_reader_follows_every_change_of_the_table(librarian: Librarian) -> None:
    """It keeps the table open, and reads it again when the revision has changed."""
    for number in range(3):
        await librarian.add(**{f"note{number}_txt": f"Note number {number} about tides."})
        found = await librarian.search("notes about tides", limit=10)
        assert len(found) == number + 1


async def test_a_sweep_deletes_what_belongs_to_no_agent(
    librarian: Librarian, services: Services
) -> None:
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    store, orphan = services.get(ChunkStore), "agt_00000000000000000000000009"
    await store.create(TableRef(orphan, 1), "local/wordllama", 4)
    await store.create(TableRef(librarian.agent_id, 0), "local/wordllama", 4)
    await services.files.put(f"documents/{orphan}/doc_1/fil_1", b"text")
    await maintenance.sweep(services)
    assert await store.list_tables(orphan) == []
    assert await list_generations(services, librarian.agent_id) == [1]
    assert orphan not in await services.files.list_folders("documents/")
    assert (await librarian.chunks(document["id"]))["data"]


async def test_a_reader_whose_files_were_deleted_opens_the_table_again(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_store, "KEPT_VERSIONS", timedelta(milliseconds=1))
    await librarian.add(handbook_md=HANDBOOK)
    assert await librarian.search("When does the shop open?")
    table = TableRef(librarian.agent_id, 1)
    base = await find_base(services, librarian.agent_id)
    store = services.get(ChunkStore)
    opened = store._database._open_tables[table.name]
    assert opened.revision == base["revision"]
    other = ChunkStore("", services.settings.data_dir)
    vectors = ones(1, 256)
    chunks = [Chunk("Another text")]
    await other.replace(table, EmbeddedDocument("doc_2", "x.txt", 1, "m", chunks, vectors))
    await other.optimize(table)
    (document,) = (await librarian.client.get(f"{librarian.path}/documents")).json()["data"]
    assert len((await librarian.chunks(document["id"]))["data"]) == 2
    store._database._open_tables[table.name] = opened
    assert await librarian.search("When does the shop open?")


async def test_one_writer_at_a_time_has_a_table(librarian: Librarian, services: Services) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    ids = (librarian.client.tenant_id, librarian.agent_id)
    order = []

    async def write(number: int) -> None:
        async with hold_table(services, *ids, wait_seconds=10):
            order.append(number)
            await asyncio.sleep(0.01)
            order.append(number)

    await asyncio.gather(*(write(number) for number in range(5)))
    assert sorted(order[::2]) == [0, 1, 2, 3, 4]
    assert order[::2] == order[1::2]


async def test_who_lost_the_lease_records_nothing(librarian: Librarian, services: Services) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    tenant_id, agent_id = librarian.client.tenant_id, librarian.agent_id
    # The worker releases the table just after the document is ready.
    async with hold_table(services, tenant_id, agent_id, wait_seconds=10) as writer:
        expire = "UPDATE knowledge_bases SET writer_until = now() WHERE agent_id = $1"
        await fetch_rows(services, expire, agent_id)
        async with hold_table(services, tenant_id, agent_id) as next_writer:
            assert next_writer.table == writer.table
            with pytest.raises(TableReplaced):
                async with services.db.tx(tenant_id) as tx:
                    await writer.record_change(tx, removed=False, maintain_seconds=1)


async def test_deleted_documents_wait_for_the_table_without_a_slot_and_go_together(
    librarian: Librarian, services: Services, reader: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = await librarian.add(
        **{f"note{number}_txt": f"Note {number}." for number in range(8)}
    )
    ids = [document["id"] for document in documents]
    removals = _record_removals(monkeypatch, librarian.agent_id)
    async with hold_table(services, librarian.client.tenant_id, librarian.agent_id, 10):
        for document_id in ids:
            await librarian.client.delete(f"{librarian.path}/documents/{document_id}")
        sql = "SELECT last_error FROM work WHERE kind = $1 AND ref_id = ANY($2)"

        async def are_postponed() -> bool:
            rows = await fetch_rows(services, sql, REMOVE_DOCUMENT.name, ids)
            return all(row["last_error"] == "waits its turn" for row in rows)

        await wait_until(are_postponed)
        await until(lambda: reader.runner.running_count == 0)
        assert await librarian.search("Note 7") == []

    async def are_removed() -> bool:
        sql = "SELECT 1 FROM documents WHERE agent_id = $1"
        return await fetch_rows(services, sql, librarian.agent_id) == []

    await wait_until(are_removed)
    assert await services.get(ChunkStore).list_documents(TableRef(librarian.agent_id, 1)) == {}
    assert [len(removed) for removed in removals] == [len(ids)]


def _record_removals(patch: pytest.MonkeyPatch, agent_id: str) -> list[list[str]]:
    """Returns the lists of ids that are removed from the agent's table from now on."""
    removals: list[list[str]] = []
    delete_documents = ChunkStore.delete_documents

    async def record(self: ChunkStore, ref: TableRef, document_ids: list[str]) -> bool:
        if ref.agent_id == agent_id:
            removals.append(document_ids)
        return await delete_documents(self, ref, document_ids)

    patch.setattr(ChunkStore, "delete_documents", record)
    return removals


async def test_a_removal_that_other_work_has_done_meanwhile_is_done(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the document, and then the table without hidden documents."""
    await librarian.add(handbook_md=HANDBOOK)

    async def find_hidden(*_args: object) -> dict[str, str]:
        return {"agent_id": librarian.agent_id}

    monkeypatch.setattr(queries, "find_hidden", find_hidden)
    tenant_id = librarian.client.tenant_id
    async with services.db.tx(tenant_id) as tx:
        work_id = await work.accept(tx, REMOVE_DOCUMENT, tenant_id=tenant_id, ref_id="doc_gone")

    async def find_finished() -> list[dict[str, Any]]:
        sql = "SELECT state, last_error FROM work WHERE id = $1 AND finished_at IS NOT NULL"
        return await fetch_rows(services, sql, work_id)

    assert await wait_until(find_finished) == [{"state": "done", "last_error": None}]
    assert not (await find_base(services, librarian.agent_id))["has_removed_chunks"]


async def test_a_process_maintains_one_table_at_a_time(
    librarian: Librarian, services: Services
) -> None:
    """Others wait without a slot of the queue."""
    await librarian.add(handbook_md=HANDBOOK)
    async with services.get(ChunkStore).maintaining:
        with pytest.raises(TableBusy):
            await maintain(services, librarian)
    await maintain(services, librarian)


async def test_each_removal_removes_its_own_document(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when there are more deleted documents than one removal takes."""
    monkeypatch.setattr(app.domain.agents.knowledge.jobs, "_MAX_REMOVED", 1)
    notes = {f"note{number}_txt": f"Note {number}." for number in range(4)}
    documents = await librarian.add(**notes)
    async with hold_table(services, librarian.client.tenant_id, librarian.agent_id, 10):
        for document in documents:
            await librarian.client.delete(f"{librarian.path}/documents/{document['id']}")

    async def are_removed() -> bool:
        sql = "SELECT 1 FROM documents WHERE agent_id = $1"
        return await fetch_rows(services, sql, librarian.agent_id) == []

    await wait_until(are_removed)


async def test_vectors_of_another_length_are_refused_with_a_reason(
    librarian: Librarian, services: Services
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    table = TableRef(librarian.agent_id, 1)
    writer = Writer(librarian.client.tenant_id, "wrt_1", table, "local/wordllama")
    chunks, vectors = [Chunk("Text")], ones(1, 8)
    document = EmbeddedDocument("doc_1", "x.txt", 1, "local/wordllama", chunks, vectors)
    with pytest.raises(Unreadable, match="vectors of another length"):
        await ingestion.replace_chunks(services, writer, document)
