"""A table that differs from Postgres is corrected, and so is Postgres."""

import pytest

from app.domain.agents.knowledge import arrow_rows, ingestion, maintenance, reconciliation
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.chunks import Chunk, DocumentState, EmbeddedDocument
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.reconciliation import Differences, compare
from app.domain.agents.knowledge.writer_lease import Writer
from app.kit.files import FileNotStored
from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian, librarian_of
from tests.agents.knowledge.tables import current_table, find_base, ones
from tests.assertions import wait_until
from tests.database import Row, fetch_rows, run_sql
from tests.scripted_agents import Talker


def _row(status: str, *, version: int = 2, chunk_count: int = 5, hidden: bool = False) -> Row:
    return {
        "id": "doc",
        "status": status,
        "version": version,
        "chunk_count": chunk_count,
        "is_hidden": hidden,
    }


def test_differences(subtests: pytest.Subtests) -> None:
    old, current, short = DocumentState(1, 5), DocumentState(2, 5), DocumentState(2, 3)
    cases = [
        ("as it should be", _row("ready"), current, Differences([], {}, {})),
        ("lost", _row("ready"), None, Differences([], {"doc": 2}, {})),
        ("an old version is back", _row("ready"), old, Differences([], {"doc": 2}, {})),
        ("partly lost", _row("ready"), short, Differences([], {"doc": 2}, {})),
        ("being read, old chunks are there", _row("processing"), old, Differences([], {}, {})),
        ("being read, others are there", _row("pending"), short, Differences([], {}, {"doc": 3})),
        ("failed, old chunks are lost", _row("failed"), None, Differences([], {}, {"doc": 0})),
        ("never read", _row("failed", chunk_count=0), None, Differences([], {}, {})),
        ("being removed", _row("ready", hidden=True), None, Differences([], {}, {})),
        ("no row", None, current, Differences(["doc"], {}, {})),
    ]
    for name, row, state, expected in cases:
        with subtests.test(name):
            rows = [row] if row is not None else []
            assert compare(rows, {"doc": state} if state is not None else {}) == expected


async def test_documents_whose_chunks_were_lost_are_read_again(
    librarian: Librarian, services: Services
) -> None:
    lost, kept = await librarian.add(handbook_md=HANDBOOK, cats_txt="Cats purr.")
    store, table = services.get(ChunkStore), TableRef(librarian.agent_id, 1)
    await store.delete_documents(table, [lost["id"]])
    await reconciliation.reconcile_all(services)
    assert (await librarian.wait_for(lost["id"]))["chunk_count"] == 2
    states = await store.list_documents(table)
    assert states == {lost["id"]: (2, 2), kept["id"]: (1, 1)}


async def test_a_late_write_of_a_deleted_document_is_undone(
    librarian: Librarian, services: Services
) -> None:
    """Its writer was suspended for longer than its lease, while the document was removed."""
    deleted, kept = await librarian.add(deleted_txt="Dogs bark.", kept_txt="Cats purr.")
    await librarian.client.delete(f"{librarian.path}/documents/{deleted['id']}")
    await wait_until(lambda: _is_removed(services, deleted["id"]))
    table, store = await current_table(services, librarian.agent_id), services.get(ChunkStore)
    chunks, vectors = [Chunk("Dogs bark.")], ones(1, 256)
    late = EmbeddedDocument(deleted["id"], "deleted.txt", 1, "local/wordllama", chunks, vectors)
    writer = Writer(librarian.client.tenant_id, "wrt_late", table, "local/wordllama")
    await ingestion.replace_chunks(services, writer, late)
    assert set(await store.list_documents(table)) == {deleted["id"], kept["id"]}
    await reconciliation.reconcile_all(services)
    assert set(await store.list_documents(table)) == {kept["id"]}
    base = await find_base(services, librarian.agent_id)
    assert base["has_removed_chunks"]


async def _is_removed(services: Services, document_id: str) -> bool:
    return await fetch_rows(services, "SELECT 1 FROM documents WHERE id = $1", document_id) == []


async def test_a_file_that_replaces_another_while_its_chunks_are_written(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file cannot be read, so the chunks of the replaced one stay, and are counted."""
    await librarian.add(cats_md="# One\n\nCats purr.")
    replace_chunks = ingestion.replace_chunks

    async def upload_meanwhile(services: Services, writer: Writer, document: object) -> bool:
        monkeypatch.setattr(ingestion, "replace_chunks", replace_chunks)
        assert isinstance(document, EmbeddedDocument)
        removed = await replace_chunks(services, writer, document)
        await librarian.upload(cats_md=b"")
        return removed

    monkeypatch.setattr(ingestion, "replace_chunks", upload_meanwhile)
    accepted = await librarian.upload(cats_md="# One\n\nCats purr.\n\n# Two\n\nCats sleep.")
    document_id = accepted["documents"][0]["id"]

    async def is_settled() -> bool:
        document = await librarian.document(document_id)
        return bool(document["status"] == "failed" and document["chunk_count"] == 2)

    await wait_until(is_settled)
    assert len((await librarian.chunks(document_id))["data"]) == 2
    base = await find_base(services, librarian.agent_id)
    assert base["has_removed_chunks"]


async def test_a_sweep_deletes_files_of_uploads_that_did_not_end(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    unused = f"documents/{librarian.agent_id}/doc_1/fil_1"
    await services.files.put(unused, b"text")
    await maintenance.sweep(services)
    assert await services.files.read(unused) == b"text"
    monkeypatch.setattr(maintenance, "_MAX_UPLOAD_TIME", -maintenance._MAX_UPLOAD_TIME)
    await maintenance.sweep(services)
    with pytest.raises(FileNotStored):
        await services.files.read(unused)
    content = await librarian.client.get(f"{librarian.path}/documents/{document['id']}/content")
    assert content.text == HANDBOOK


async def test_a_damaged_table_is_replaced_and_stops_no_other(
    talk: Talker, librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are empty, as after a power failure."""
    monkeypatch.setattr(reconciliation, "_READ_PAUSE_SECONDS", 0)
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    other = librarian_of(await talk.agent())
    (lost,) = await other.add(cats_txt="Cats purr.")
    store = services.get(ChunkStore)
    await store.delete_documents(TableRef(other.agent_id, 1), [lost["id"]])
    folder = services.settings.data_dir / "lancedb" / f"{librarian.agent_id}_1.lance" / "data"
    for path in folder.iterdir():
        path.write_bytes(b"")
    await reconciliation.reconcile_all(services)
    for reader, found in ((librarian, document), (other, lost)):
        assert (await reader.wait_for(found["id"]))["status"] == "ready"
        assert (await reader.chunks(found["id"]))["data"]
    assert (await current_table(services, librarian.agent_id)).generation == 2
    assert await librarian.search("When does the shop open?")


async def test_documents_whose_work_was_given_up_get_new_work(
    librarian: Librarian, services: Services
) -> None:
    removed, read, kept = await librarian.add(
        removed_txt="Dogs bark.", read_txt="Cows moo.", kept_txt="Cats purr."
    )
    hide = "UPDATE documents SET deleted_at = now() WHERE id = $1"
    await run_sql(services, hide, removed["id"])
    await run_sql(services, "UPDATE documents SET status = 'processing' WHERE id = $1", read["id"])
    await reconciliation.reconcile(services, librarian.client.tenant_id, librarian.agent_id)
    await wait_until(lambda: _is_removed(services, removed["id"]))
    assert (await librarian.wait_for(read["id"]))["status"] == "ready"
    table = await current_table(services, librarian.agent_id)
    documents = await services.get(ChunkStore).list_documents(table)
    assert documents == {read["id"]: (2, 1), kept["id"]: (1, 1)}


async def test_chunks_of_two_versions_of_a_document_are_read_again(
    librarian: Librarian, services: Services
) -> None:
    (document,) = await librarian.add(cats_txt="Cats purr.")
    table, store = TableRef(librarian.agent_id, 1), services.get(ChunkStore)
    chunks, vectors = [Chunk("Cats sleep.")], ones(1, 256)
    late = EmbeddedDocument(document["id"], "cats.txt", 0, "local/wordllama", chunks, vectors)
    await (await store._open(table)).add(arrow_rows.build_rows(late))
    await reconciliation.reconcile_all(services)
    await librarian.wait_for(document["id"])
    texts = [chunk["text"] for chunk in (await librarian.chunks(document["id"]))["data"]]
    assert texts == ["Cats purr."]
