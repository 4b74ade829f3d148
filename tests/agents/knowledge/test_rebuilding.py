"""A table is replaced by a new one when text was removed or the model has changed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import asyncpg
import msgspec
import pytest

from app import container
from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import lance, maintenance, rebuilding, retrieval, table_queries
from app.domain.agents.knowledge.arrow_rows import TABLE_FORMAT
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.embedding import embed_texts
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.reader import Reader
from app.domain.agents.usage import queries as usage_queries
from app.kit import clock
from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian, librarian_of
from tests.agents.knowledge.tables import current_table, find_base, list_generations, maintain
from tests.agents.usage.rows import get_usage
from tests.assertions import wait_until
from tests.database import fetch_rows, run_sql
from tests.model_server import ModelServer
from tests.scripted_agents import PROVIDER, Talker
from tests.stores import Stores

SECRET = "Zanzibarquartz"


def _contains(folder: Path, text: str) -> bool:
    """Searches again when a worker deletes a file at the same moment."""
    while True:
        try:
            files = [path for path in folder.rglob("*") if path.is_file()]
            return any(text.encode() in path.read_bytes() for path in files)
        except FileNotFoundError:
            continue


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
    monkeypatch.setattr(rebuilding, "_DROP_AFTER", timedelta(0))
    deleted, kept = await librarian.add(
        secret_txt=f"The mineral is called {SECRET}.", handbook_md=HANDBOOK
    )
    folder = services.settings.data_dir / "lancedb"
    assert _contains(folder, SECRET)
    await librarian.client.delete(f"{librarian.path}/documents/{deleted['id']}")

    async def is_due() -> bool:
        base = await find_base(services, librarian.agent_id)
        return bool(base["has_removed_chunks"] and base["maintain_at"])

    await wait_until(is_due)
    await maintain(services, librarian)

    async def is_rebuilt() -> bool:
        return await list_generations(services, librarian.agent_id) == [2]

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
        await maintain(other, librarian)
    base = await find_base(services, librarian.agent_id)
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
    # The scripted model counts a token per text: three old chunks, the question, and a new one.
    sql = """
        SELECT prompt_tokens FROM usage
        WHERE agent_id = $1 AND model = $2 AND source = 'embedding' ORDER BY created_at
    """
    used = await run_sql(services, sql, librarian.agent_id, model)
    assert [row["prompt_tokens"] for row in used] == [3, 1, 1]
    report = await get_usage(librarian.client, agent_id=librarian.agent_id)
    assert [(row["model"], row["total_tokens"]) for row in report["by_model"]] == [(model, 5)]


async def test_texts_are_embedded_although_their_usage_is_not_stored(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object) -> None:
        raise asyncpg.PostgresError

    monkeypatch.setattr(usage_queries, "add", fail)
    model, tenant_id = f"{PROVIDER}/embedder-{talk.model}", talk.client.tenant_id
    vectors = await embed_texts(services, tenant_id, talk.agent_id, model, ["Cats purr."])
    assert vectors.shape[0] == 1


async def test_the_old_table_stays_while_the_new_model_fails(
    talk: Talker, librarian: Librarian, services: Services, stores: Stores
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    async with _with_model(stores, "unknown-provider/model") as other:
        await maintain(other, librarian)
    base = await find_base(services, librarian.agent_id)
    assert (base["generation"], base["embedding_model"]) == (1, "local/wordllama")
    assert base["rebuild_after"] > clock.now()
    assert await librarian.search("When does the shop open?")


async def test_removed_text_leaves_a_table_although_the_new_model_fails(
    librarian: Librarian, services: Services, stores: Stores
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    await _set_removed(services, librarian.agent_id)
    async with _with_model(stores, "unknown-provider/model") as other:
        await maintain(other, librarian)
    base = await find_base(services, librarian.agent_id)
    assert (base["embedding_model"], base["has_removed_chunks"]) == ("local/wordllama", False)
    assert base["generation"] > 1
    assert await librarian.search("When does the shop open?")


async def test_a_table_is_never_rebuilt_into_one_that_exists(
    talk: Talker, librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter may be older than the tables, after a release without it or a restored backup."""
    monkeypatch.setattr(rebuilding, "_DROP_AFTER", timedelta(0))
    for last_generation, reader in ((1, librarian), (2, librarian_of(await talk.agent()))):
        (document,) = await reader.add(handbook_md=HANDBOOK)
        agent_id = reader.agent_id
        await _set_removed(services, agent_id)
        await maintain(services, reader)
        assert (await current_table(services, agent_id)).generation == 2
        await services.get(ChunkStore).create(TableRef(agent_id, 3), "m", 8)
        sql = "UPDATE knowledge_bases SET last_generation = $2, rebuild_after = NULL"
        await run_sql(services, f"{sql} WHERE agent_id = $1", agent_id, last_generation)
        await _set_removed(services, agent_id)
        await maintain(services, reader)
        table = await current_table(services, agent_id)
        assert table.generation == 4, last_generation
        await wait_until(partial(_has_generations, services, agent_id, [4]))
        assert await services.get(ChunkStore).list_documents(table) == {document["id"]: (1, 2)}


async def _has_generations(services: Services, agent_id: str, expected: list[int]) -> bool:
    return await list_generations(services, agent_id) == expected


async def test_a_reader_with_a_replaced_generation_searches_the_new_one(
    librarian: Librarian, services: Services
) -> None:
    """It loaded the agent just before the table was replaced and deleted."""
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    agent_id, tenant_id = librarian.agent_id, librarian.client.tenant_id
    await librarian.client.post(f"{librarian.path}/documents/{document['id']}/reindex")
    await librarian.wait_for(document["id"])
    await maintain(services, librarian)
    assert (await find_base(services, agent_id))["generation"] == 2
    store = services.get(ChunkStore)
    await store.drop(TableRef(agent_id, 1))
    old = KnowledgeInfo(agent_id, 1, 1, "local/wordllama")
    search = partial(retrieval.search, services, tenant_id, reader=Reader.visitor())
    found = await search(old, "When does the shop open?", 5)
    assert found[0].chunk.document_id == document["id"]
    gone = KnowledgeInfo("agt_00000000000000000000000009", 1, 1, "local/wordllama")
    assert await search(gone, "When does the shop open?", 5) == []


async def test_vectors_of_an_attempt_that_did_not_finish_are_not_computed_again(
    talk: Talker,
    librarian: Librarian,
    services: Services,
    stores: Stores,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt has a table of its own, since the process of the last one may still write."""
    monkeypatch.setattr(rebuilding, "_DROP_AFTER", timedelta(0))
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    name = f"embedder-{talk.model}"
    async with _with_model(stores, f"{PROVIDER}/{name}") as other:
        swap = table_queries.swap
        monkeypatch.setattr(table_queries, "swap", _fail)
        with pytest.raises(ConnectionError):
            await maintain(other, librarian)
        monkeypatch.setattr(table_queries, "swap", swap)
        assert await list_generations(services, librarian.agent_id) == [1, 2]
        await maintain(other, librarian)
    assert len(models.asked(name)) == 1
    table = await current_table(services, librarian.agent_id)
    assert table.generation == 3
    assert await services.get(ChunkStore).list_documents(table) == {document["id"]: (1, 2)}

    async def are_others_dropped() -> bool:
        return await list_generations(services, librarian.agent_id) == [3]

    await wait_until(are_others_dropped)


async def _fail(*_args: object, **_options: object) -> bool:
    raise ConnectionError("Postgres was unavailable")


async def test_documents_that_change_while_a_table_is_rebuilt_are_in_the_new_one(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, deleted, kept = await librarian.add(
        changed_txt="Cats purr.", deleted_txt="Birds sing.", kept_md=HANDBOOK
    )

    async def change_documents() -> None:
        await librarian.client.delete(f"{librarian.path}/documents/{deleted['id']}")
        await librarian.add(changed_txt="Cats purr.\n\nDogs bark.", new_txt="Cows moo.")
        # The worker would rebuild the table too.
        sql = "UPDATE knowledge_bases SET maintain_at = NULL WHERE agent_id = $1"
        await run_sql(services, sql, librarian.agent_id)

    await _set_removed(services, librarian.agent_id)
    _call_after_copy(monkeypatch, librarian.agent_id, change_documents)
    await maintain(services, librarian)
    assert (await find_base(services, librarian.agent_id))["generation"] == 2

    async def list_documents() -> dict[str, int]:
        table = await current_table(services, librarian.agent_id)
        states = await services.get(ChunkStore).list_documents(table)
        return {key: state.version for key, state in states.items()}

    async def is_removed() -> bool:
        return deleted["id"] not in await list_documents()

    await wait_until(is_removed)
    versions = await list_documents()
    assert (versions.pop(changed["id"]), versions.pop(kept["id"])) == (2, 1)
    assert list(versions.values()) == [1]
    found = await librarian.search("What do cows do?")
    assert "Cows moo." in [passage["content"] for passage in found]


def _call_after_copy(
    patch: pytest.MonkeyPatch, agent_id: str, call: Callable[[], Awaitable[None]]
) -> None:
    """Between the copy of all documents and that of the last changes the new table is optimized.
    The worker may optimize tables of other tests meanwhile.
    """
    optimize, calls = ChunkStore.optimize, [call]

    async def call_once(self: ChunkStore, ref: TableRef) -> None:
        if ref.agent_id == agent_id and calls:
            await calls.pop()()
        await optimize(self, ref)

    patch.setattr(ChunkStore, "optimize", call_once)


async def _set_removed(services: Services, agent_id: str) -> None:
    sql = "UPDATE knowledge_bases SET has_removed_chunks = true WHERE agent_id = $1"
    await run_sql(services, sql, agent_id)


async def test_a_table_is_not_rebuilt_for_each_removed_document(
    librarian: Librarian, services: Services
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    agent_id = librarian.agent_id
    await _set_removed(services, agent_id)
    await maintain(services, librarian)
    base = await find_base(services, agent_id)
    assert base["generation"] == 2
    assert base["rebuild_after"] > clock.now()
    await _set_removed(services, agent_id)
    await maintain(services, librarian)
    base = await find_base(services, agent_id)
    assert (base["generation"], base["has_removed_chunks"]) == (2, True)
    elapse = "UPDATE knowledge_bases SET rebuild_after = now() WHERE agent_id = $1"
    await run_sql(services, elapse, agent_id)
    await maintain(services, librarian)
    base = await find_base(services, agent_id)
    assert (base["generation"], base["has_removed_chunks"]) == (3, False)


_HURRY_REMOVAL = """
UPDATE work SET run_at = least(run_at, now())
WHERE kind = 'knowledge.remove_agent' AND ref_id = $1 AND state IN ('pending', 'leased')
RETURNING id
"""


async def test_no_table_remains_of_an_agent_that_is_deleted_while_its_table_is_rebuilt(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    agent_id = librarian.agent_id

    async def delete_agent() -> None:
        assert (await librarian.client.delete(librarian.path)).status_code == 204

    _call_after_copy(monkeypatch, agent_id, delete_agent)
    due = "UPDATE knowledge_bases SET has_removed_chunks = true, maintain_at = now()"
    await run_sql(services, f"{due} WHERE agent_id = $1", agent_id)
    await maintenance.accept_due(services)

    async def is_maintained() -> bool:
        sql = "SELECT state FROM work WHERE kind = 'knowledge.maintain' AND ref_id = $1"
        return [row["state"] for row in await fetch_rows(services, sql, agent_id)] == ["done"]

    await wait_until(is_maintained)

    async def is_removed() -> bool:
        # It waited for the table, and would be tried again in some seconds.
        return await run_sql(services, _HURRY_REMOVAL, agent_id) == []

    async def has_no_table() -> bool:
        return await list_generations(services, agent_id) == []

    await wait_until(is_removed)
    await wait_until(has_no_table)


async def test_a_table_of_an_earlier_release_is_searched_and_rebuilt_with_terms(
    librarian: Librarian, services: Services
) -> None:
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    await maintain(services, librarian)
    table = await services.get(ChunkStore)._open(TableRef(librarian.agent_id, 1))
    await table.drop_index("terms_idx")
    await table.drop_columns(["terms"])
    await table.create_index("text", config=lance.index("FTS", with_position=False))
    base_sql = "UPDATE knowledge_bases SET format = 1, languages = '{}', revision = revision + 1"
    for sql in (base_sql, "UPDATE documents SET language = NULL"):
        await run_sql(services, f"{sql} WHERE agent_id = $1", librarian.agent_id)
    assert "eleven" in (await librarian.search("When does it open on Sundays?"))[0]["content"]
    # New documents join it as it is.
    await librarian.add(second_md="# Parking\n\nPark behind the house.")
    assert (await librarian.search("parking"))[0]["document_name"] == "second.md"
    await maintain(services, librarian)
    base = await find_base(services, librarian.agent_id)
    assert (base["generation"], base["format"], base["languages"]) == (2, TABLE_FORMAT, ["en"])
    assert (await librarian.document(document["id"]))["language"] == "en"
    assert "eleven" in (await librarian.search("opens sunday"))[0]["content"]
