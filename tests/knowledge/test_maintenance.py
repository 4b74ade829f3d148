"""Tables are compacted, indexed, rebuilt and swept; readers notice nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from app import container
from app.domain.agents.service import KnowledgeInfo
from app.domain.knowledge import chunk_store, maintenance, queries, retrieval
from app.domain.knowledge.chunk_store import ChunkStore, TableRef
from app.domain.knowledge.chunks import Chunk, EmbeddedDocument
from app.domain.knowledge.work_kinds import MAINTAIN
from app.domain.knowledge.writer_lease import TableReplaced, hold_table
from app.kit import clock, work
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import wait_until
from tests.database import fetch_rows
from tests.knowledge.librarian import HANDBOOK, Librarian
from tests.model_server import ModelServer
from tests.stores import Stores
from tests.talk import PROVIDER, Talker

SECRET = "Zanzibarquartz"


def _contains(folder: Path, text: str) -> bool:
    files = (path for path in folder.rglob("*") if path.is_file())
    return any(text.encode() in path.read_bytes() for path in files)


async def _find_base(services: Services, agent_id: str) -> Any:
    sql = "SELECT * FROM knowledge_bases WHERE agent_id = $1"
    (row,) = await fetch_rows(services, sql, agent_id)
    return row


async def _list_generations(services: Services, agent_id: str) -> list[int]:
    tables = await services.get(ChunkStore).list_tables(agent_id)
    return sorted(ref.generation for ref in tables)


@asynccontextmanager
async def _with_model(stores: Stores, model: str) -> AsyncIterator[Services]:
    """Services of a process that is configured with another embedding model."""
    services = container.build(msgspec.structs.replace(stores.settings, embedding_model=model))
    try:
        yield services
    finally:
        await services.close()


async def test_the_text_of_a_deleted_document_leaves_the_files_of_the_table(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_DROP_AFTER", timedelta(0))
    deleted, kept = await librarian.add(
        secret_txt=f"The mineral is called {SECRET}.", handbook_md=HANDBOOK
    )
    folder = services.settings.data_dir / "lancedb"
    assert _contains(folder, SECRET)
    await librarian.client.delete(f"{librarian.path}/documents/{deleted['id']}")

    async def is_due() -> bool:
        base = await _find_base(services, librarian.agent_id)
        return bool(base["has_removed_chunks"] and base["maintain_at"])

    await wait_until(is_due)
    # The worker would do so seconds later.
    await maintenance.maintain(services, librarian.client.tenant_id, librarian.agent_id)

    async def is_rebuilt() -> bool:
        return await _list_generations(services, librarian.agent_id) == [2]

    await wait_until(is_rebuilt)
    assert not _contains(folder, SECRET)
    assert not _contains(folder, SECRET.lower())
    found = await librarian.search("When does the shop open?")
    assert {passage["document_id"] for passage in found} == {kept["id"]}
    assert (await librarian.chunks(kept["id"]))["data"][0]["text"].startswith("Opening hours")


async def test_another_embedding_model_re_embeds_every_document(
    talk: Talker, librarian: Librarian, services: Services, stores: Stores, models: ModelServer
) -> None:
    first, second = await librarian.add(handbook_md=HANDBOOK, cats_txt="Cats purr.")
    model = f"{PROVIDER}/embedder-{talk.model}"
    async with _with_model(stores, model) as other:
        await maintenance.maintain(other, talk.client.tenant_id, librarian.agent_id)
    base = await _find_base(services, librarian.agent_id)
    assert (base["embedding_model"], base["generation"]) == (model, 2)
    described = await services.get(ChunkStore).describe(TableRef(librarian.agent_id, 2))
    assert described == (model, 2)
    documents = await services.get(ChunkStore).list_documents(TableRef(librarian.agent_id, 2))
    assert documents == {first["id"]: (1, 2), second["id"]: (1, 1)}
    found = await librarian.search("Do cats purr?")
    assert "Cats purr." in [passage["content"] for passage in found]
    # A document that comes later has vectors of the new model too.
    (third,) = await librarian.add(dogs_txt="Dogs bark.")
    assert third["status"] == "ready"


async def test_the_old_table_stays_while_the_new_model_fails(
    talk: Talker, librarian: Librarian, services: Services, stores: Stores
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    async with _with_model(stores, "unknown-provider/model") as other:
        with pytest.raises(Exception, match="needs a key"):
            await maintenance.maintain(other, talk.client.tenant_id, librarian.agent_id)
    assert (await _find_base(services, librarian.agent_id))["generation"] == 1
    assert await librarian.search("When does the shop open?")


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
            await queries.mark_other_models(tx, MAINTAIN.name, model)
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
    monkeypatch.setattr(chunk_store, "MIN_INDEXED_CHUNKS", 50)
    text = "\n\n".join(f"# Part {number}\n\nText number {number}." for number in range(60))
    await librarian.add(parts_md=text)
    await maintenance.maintain(services, librarian.client.tenant_id, librarian.agent_id)
    store = services.get(ChunkStore)
    table = await store._open(TableRef(librarian.agent_id, 1))
    columns = [index.columns for index in await table.list_indices()]
    assert sorted(columns) == [["text"], ["vector"]]
    found = await librarian.search("Text number 17")
    assert "Text number 17." in found[0]["content"]


async def test_an_index_of_many_parts_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_store, "MIN_INDEXED_CHUNKS", 300)
    monkeypatch.setattr(chunk_store, "MAX_INDEX_PARTS", 2)
    store, table = ChunkStore("", tmp_path), TableRef("agt_parts", 1)
    await store.create(table, "m", 8)
    random = np.random.default_rng(1)
    counts = []
    for number in range(5):
        vectors = random.normal(size=(300, 8)).astype(np.float32)
        chunks = [Chunk(f"Text {number}")] * 300
        await store.replace(table, EmbeddedDocument(f"d{number}", "x", 1, "m", chunks, vectors))
        await store.optimize(table)
        indexes = await (await store._open(table)).list_indices()
        counts += [index.num_segments for index in indexes if index.columns == ["vector"]]
    assert max(counts) > 1
    assert max(counts) <= 3


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
    assert await _list_generations(services, librarian.agent_id) == [1]
    assert orphan not in await services.files.list_folders("documents/")
    assert (await librarian.chunks(document["id"]))["data"]


async def test_documents_whose_chunks_were_lost_are_read_again(
    librarian: Librarian, services: Services
) -> None:
    lost, kept = await librarian.add(handbook_md=HANDBOOK, cats_txt="Cats purr.")
    store, table = services.get(ChunkStore), TableRef(librarian.agent_id, 1)
    await store.delete_documents(table, [lost["id"]])
    await maintenance.restore_lost_documents(services)
    assert (await librarian.wait_for(lost["id"]))["chunk_count"] == 2
    states = await store.list_documents(table)
    assert states == {lost["id"]: (2, 2), kept["id"]: (1, 1)}


async def test_a_reader_with_a_replaced_generation_searches_the_new_one(
    librarian: Librarian, services: Services
) -> None:
    """It loaded the agent just before the table was replaced and deleted."""
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    agent_id, tenant_id = librarian.agent_id, librarian.client.tenant_id
    await librarian.client.post(f"{librarian.path}/documents/{document['id']}/reindex")
    await librarian.wait_for(document["id"])
    await maintenance.maintain(services, tenant_id, agent_id)
    assert (await _find_base(services, agent_id))["generation"] == 2
    store = services.get(ChunkStore)
    await store.drop(TableRef(agent_id, 1))
    old = KnowledgeInfo(agent_id, 1, 1, "local/wordllama")
    found = await retrieval.search(services, tenant_id, old, "When does the shop open?", 5)
    assert found[0][0].document_id == document["id"]
    gone = KnowledgeInfo("agt_00000000000000000000000009", 1, 1, "local/wordllama")
    assert await retrieval.search(services, tenant_id, gone, "When does the shop open?", 5) == []


async def test_a_reader_whose_files_were_deleted_opens_the_table_again(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_store, "_KEPT_VERSIONS", timedelta(milliseconds=1))
    await librarian.add(handbook_md=HANDBOOK)
    assert await librarian.search("When does the shop open?")
    table = TableRef(librarian.agent_id, 1)
    base = await _find_base(services, librarian.agent_id)
    store = services.get(ChunkStore)
    opened = store._open_tables[table]
    assert opened.revision == base["revision"]
    other = ChunkStore("", services.settings.data_dir)
    vectors = np.ones((1, 256), np.float32)
    chunks = [Chunk("Another text")]
    await other.replace(table, EmbeddedDocument("doc_2", "x.txt", 1, "m", chunks, vectors))
    await other.optimize(table)
    (document,) = (await librarian.client.get(f"{librarian.path}/documents")).json()["data"]
    assert len((await librarian.chunks(document["id"]))["data"]) == 2
    store._open_tables[table] = opened
    assert await librarian.search("When does the shop open?")


async def test_one_writer_at_a_time_has_a_table(librarian: Librarian, services: Services) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    ids = (librarian.client.tenant_id, librarian.agent_id)
    order = []

    async def write(number: int) -> None:
        async with hold_table(services, *ids):
            order.append(number)
            await asyncio.sleep(0.01)
            order.append(number)

    await asyncio.gather(*(write(number) for number in range(5)))
    assert sorted(order[::2]) == [0, 1, 2, 3, 4]
    assert order[::2] == order[1::2]


async def test_who_lost_the_lease_records_nothing(librarian: Librarian, services: Services) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    tenant_id, agent_id = librarian.client.tenant_id, librarian.agent_id
    async with hold_table(services, tenant_id, agent_id) as writer:
        expire = "UPDATE knowledge_bases SET writer_until = now() WHERE agent_id = $1"
        await fetch_rows(services, expire, agent_id)
        async with hold_table(services, tenant_id, agent_id) as next_writer:
            assert next_writer.table == writer.table
            with pytest.raises(TableReplaced):
                async with services.db.tx(tenant_id) as tx:
                    await writer.record_change(tx, removed=False, maintain_seconds=1)
