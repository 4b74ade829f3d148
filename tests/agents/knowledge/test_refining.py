"""Passages are encoded by sentence encoders after they can be found, and found by what they mean.

Needs the packages of `requirements-encoder.lock`.
"""

from typing import Any

import pytest

from app.domain.agents.knowledge import maintenance, reconciliation, refining
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.encoders import english
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders, are_installed
from app.domain.agents.knowledge.encodings import Encodings
from app.domain.agents.knowledge.work_kinds import REFINE
from app.services import Services
from tests.agents.knowledge.librarian import Librarian
from tests.agents.knowledge.tables import current_table, find_base
from tests.assertions import wait_until
from tests.database import fetch_rows, run_sql

pytestmark = pytest.mark.skipif(not are_installed(), reason="the encoders are not installed")

_MANUAL = """# Rubbish bin

Files that were deleted stay in the bin for thirty days. Until then they can be restored.

# Printing

Choose the printer and the number of copies.

# Network

Enter the password of the wireless network.
"""
_PARAPHRASE = "I threw away a document by mistake"


@pytest.fixture
def encoders(services: Services, monkeypatch: pytest.MonkeyPatch) -> SentenceEncoders:
    """Turns them on in this process. Its worker has them off, so a test says when it refines."""
    encoders = services.get(SentenceEncoders)
    monkeypatch.setattr(encoders, "enabled", True)
    return encoders


async def _refine(services: Services, librarian: Librarian) -> None:
    await refining.refine(services, librarian.client.tenant_id, librarian.agent_id)


async def _list_encoded(services: Services, librarian: Librarian) -> dict[str, tuple[int, int]]:
    table = await current_table(services, librarian.agent_id)
    return dict(await services.get(ChunkStore).encodings.list_documents(table))


async def test_a_refined_passage_is_found_by_what_it_means(
    librarian: Librarian, services: Services, encoders: SentenceEncoders
) -> None:
    (document,) = await librarian.add(manual_md=_MANUAL)
    assert (document["chunk_count"], document["refined_count"]) == (3, 0)
    await _refine(services, librarian)
    refined = await librarian.document(document["id"])
    assert (refined["refined_count"], refined["language"]) == (3, "en")
    found = await librarian.search(_PARAPHRASE)
    assert found[0]["heading"] == "Rubbish bin"


async def test_what_is_asked_for_most_is_refined_first(
    librarian: Librarian,
    services: Services,
    encoders: SentenceEncoders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, third = [
        (await librarian.add(**{f"note{number}_md": _MANUAL}))[0] for number in range(3)
    ]
    sql = "UPDATE documents SET asked_count = 2 WHERE id = $1"
    await run_sql(services, sql, second["id"])
    written: list[str] = []
    write = Encodings.write

    async def record(self: Encodings, ref: Any, encoder: str, portions: Any, vectors: Any) -> None:
        written.extend(portion.document_id for portion in portions)
        await write(self, ref, encoder, portions, vectors)

    monkeypatch.setattr(Encodings, "write", record)
    await _refine(services, librarian)
    assert written == [second["id"], third["id"], first["id"]]


async def test_what_was_replaced_while_it_was_encoded_is_encoded_again(
    librarian: Librarian,
    services: Services,
    encoders: SentenceEncoders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (document,) = await librarian.add(manual_md=_MANUAL)
    encode = refining._encode

    async def replace_meanwhile(services: Services, batch: Any) -> Any:
        monkeypatch.setattr(refining, "_encode", encode)
        vectors = await encode(services, batch)
        await librarian.add(manual_md=f"{_MANUAL}\n\n# Sound\n\nTurn it up.")
        # Only this batch: the next one finds the new version.
        monkeypatch.setattr(encoders, "enabled", False)
        return vectors

    monkeypatch.setattr(refining, "_encode", replace_meanwhile)
    await _refine(services, librarian)
    assert (await librarian.document(document["id"]))["refined_count"] == 0
    assert await _list_encoded(services, librarian) == {}
    monkeypatch.setattr(encoders, "enabled", True)
    await _refine(services, librarian)
    assert (await librarian.document(document["id"]))["refined_count"] == 4
    assert await _list_encoded(services, librarian) == {document["id"]: (2, 4)}


async def test_encodings_of_deleted_documents_are_deleted_and_others_survive_a_rebuilding(
    librarian: Librarian, services: Services, encoders: SentenceEncoders
) -> None:
    kept, deleted = await librarian.add(kept_md=_MANUAL, deleted_md="# Sound\n\nTurn it up.")
    await _refine(services, librarian)
    await librarian.client.http.delete(f"{librarian.path}/documents/{deleted['id']}")
    only_kept = {kept["id"]: (1, 3)}

    async def is_removed() -> bool:
        return await _list_encoded(services, librarian) == only_kept

    await wait_until(is_removed)

    async def is_rebuilt() -> bool:
        return bool((await find_base(services, librarian.agent_id))["generation"] > 1)

    await wait_until(is_rebuilt)
    assert await _list_encoded(services, librarian) == only_kept
    base = await find_base(services, librarian.agent_id)
    assert base["encoders"] == [english.INFO.name]
    assert (await librarian.search(_PARAPHRASE))[0]["heading"] == "Rubbish bin"
    await maintenance.remove_agent(services, librarian.agent_id)
    assert await _list_encoded(services, librarian) == {}


async def test_lost_encodings_are_made_again(
    librarian: Librarian, services: Services, encoders: SentenceEncoders
) -> None:
    (document,) = await librarian.add(manual_md=_MANUAL)
    await _refine(services, librarian)
    table = await current_table(services, librarian.agent_id)
    await services.get(ChunkStore).encodings.drop(table)
    await reconciliation.reconcile(services, librarian.client.tenant_id, librarian.agent_id)
    assert (await librarian.document(document["id"]))["refined_count"] == 0
    await _refine(services, librarian)
    assert await _list_encoded(services, librarian) == {document["id"]: (1, 3)}


async def test_agents_with_passages_to_encode_get_work_unless_it_is_turned_off(
    librarian: Librarian,
    services: Services,
    encoders: SentenceEncoders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def list_work() -> set[str]:
        sql = "SELECT id FROM work WHERE ref_id = $1 AND kind = $2"
        return {
            row["id"] for row in await fetch_rows(services, sql, librarian.agent_id, REFINE.name)
        }

    await librarian.add(manual_md=_MANUAL)
    monkeypatch.setattr(encoders, "enabled", False)
    await refining.accept_due(services)
    assert await list_work() == set()
    monkeypatch.setattr(encoders, "enabled", True)
    monkeypatch.setattr(refining, "_MAX_ACCEPTED", 1000)
    await refining.accept_due(services)
    first = await list_work()
    assert len(first) == 1

    # It has ended before all was encoded.
    done = "UPDATE work SET state = 'done', finished_at = now() WHERE id = ANY($1)"
    await run_sql(services, done, list(first))
    await refining.accept_due(services)
    assert len(await list_work() - first) == 1
