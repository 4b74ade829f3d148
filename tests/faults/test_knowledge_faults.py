"""Workers are killed while they read, remove or rebuild: nothing is lost or there twice."""

from collections import Counter

import pytest

from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.lance import TableRef
from app.services import Services
from tests.agents.knowledge.librarian import Librarian
from tests.assertions import wait_until
from tests.faults.instance import fetch_value, wait_for_count
from tests.lengths import IS_LONG, rounds
from tests.processes import Processes
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import Client, World

WORKER = ("-m", "app.cli", "worker", "--queues", "ingest,default")
DOCUMENTS = rounds(4, 12)
SECTIONS = rounds(8, 40)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def librarian(own_world: World) -> Librarian:
    client: Client = await own_world.user()
    body = {"name": "Library", "primary_model": "local/smollm2", "system_prompt": "Help."}
    agent = (await client.post("/api/v1/agents", body)).json()
    return Librarian(client, agent["id"])


def _text(name: str, sections: int = SECTIONS) -> str:
    return "\n\n".join(
        f"# {name} {number}\n\nSection {number} of {name}." for number in range(sections)
    )


async def _count_chunks(services: Services, agent_id: str) -> Counter[str]:
    """Returns how many chunks of each document the agent's table has."""
    sql = f"SELECT generation FROM knowledge_bases WHERE agent_id = '{agent_id}'"
    ref = TableRef(agent_id, await fetch_value(services, sql))
    documents = await services.get(ChunkStore).list_documents(ref)
    return Counter({key: state.chunk_count for key, state in documents.items()})


async def test_documents_survive_a_worker_that_is_killed_while_it_reads_and_removes(
    librarian: Librarian, own_stores: Stores, own_services: Services, processes: Processes
) -> None:
    """In the long run, another one is killed while it rebuilds the table."""
    worker, agent_id = processes.python(*WORKER), librarian.agent_id
    old = {f"old{number}_md": _text(f"old{number}") for number in range(rounds(2, 3))}
    (first, *deleted) = [document["id"] for document in await librarian.add(**old)]
    files = {f"file{number}_md": _text(f"file{number}") for number in range(DOCUMENTS)}
    accepted = await librarian.upload(**files)
    ids = [document["id"] for document in accepted["documents"]]
    await _wait_for_ready(own_services, agent_id, len(old) + DOCUMENTS // 3)
    for document_id in deleted:
        await librarian.client.delete(f"{librarian.path}/documents/{document_id}")
    await _wait_for_work(own_services, "knowledge.remove_document", deleted[0], "leased", "done")
    processes.kill(worker)
    # The chunks of before are served while no worker runs.
    await _find(librarian, "Section 7 of old0")
    async with run_worker(own_stores.settings, "ingest", "default", slots=2):
        await _wait_for_ready(own_services, agent_id, 1 + DOCUMENTS)
        await _wait_for_value(own_services, _HIDDEN.format(agent_id), 0)
    counts = await _count_chunks(own_services, agent_id)
    assert counts == Counter(dict.fromkeys((first, *ids), SECTIONS))
    if IS_LONG:
        await _kill_while_rebuilding(own_services, processes, agent_id)
        assert await _count_chunks(own_services, agent_id) == counts
    await _find(librarian, "Section 7 of file1")


async def _kill_while_rebuilding(services: Services, processes: Processes, agent_id: str) -> None:
    """The next worker has rebuilt the table when this returns."""
    worker = processes.python(*WORKER)
    due = f"UPDATE knowledge_bases SET maintain_at = now() WHERE agent_id = '{agent_id}'"
    await fetch_value(services, due)
    await _wait_for_work(services, "knowledge.maintain", agent_id, "leased")
    processes.kill(worker)
    processes.python(*WORKER)
    await _wait_for_value(services, _HAS_REMOVED.format(agent_id), expected=False)


async def _wait_for_ready(services: Services, agent_id: str, expected: int) -> None:
    await wait_for_count(services, _READY, expected, agent_id, seconds=60)


async def _find(librarian: Librarian, text: str) -> None:
    found = await librarian.search(text)
    assert any(f"{text}." in passage["content"] for passage in found)


_READY = """
SELECT count(*) FROM documents WHERE agent_id = $1 AND status = 'ready' AND deleted_at IS NULL
"""
_HIDDEN = "SELECT count(*) FROM documents WHERE deleted_at IS NOT NULL AND agent_id = '{}'"
_HAS_REMOVED = "SELECT has_removed_chunks FROM knowledge_bases WHERE agent_id = '{}'"


async def _wait_for_work(services: Services, kind: str, ref_id: str, *states: str) -> None:
    sql = f"SELECT max(state) FROM work WHERE kind = '{kind}' AND ref_id = '{ref_id}'"

    async def has_state() -> bool:
        return await fetch_value(services, sql) in states

    await wait_until(has_state)


async def _wait_for_value(services: Services, sql: str, expected: object) -> None:
    async def is_expected() -> bool:
        return bool(await fetch_value(services, sql) == expected)

    await wait_until(is_expected, seconds=60)


async def test_several_workers_write_one_table_without_conflicts(
    librarian: Librarian, own_stores: Stores, own_services: Services
) -> None:
    """Each with two slots. No document fails or needs a second attempt."""
    files = {f"file{number}_md": _text(f"file{number}") for number in range(DOCUMENTS)}
    async with (
        run_worker(own_stores.settings, "ingest", "default"),
        run_worker(own_stores.settings, "ingest", "default"),
        run_worker(own_stores.settings, "ingest", "default"),
    ):
        accepted = await librarian.upload(**files)
        for document in accepted["documents"]:
            assert (await librarian.wait_for(document["id"]))["status"] == "ready"
        again = await librarian.upload(**files)
        for document in again["documents"]:
            assert (await librarian.wait_for(document["id"]))["status"] == "ready"
    counts = await _count_chunks(own_services, librarian.agent_id)
    assert set(counts.values()) == {SECTIONS}
    assert len(counts) == DOCUMENTS
    retried = "SELECT count(*) FROM work WHERE kind = 'knowledge.ingest' AND attempt > 1"
    tenant = f" AND tenant_id = '{librarian.client.tenant_id}'"
    assert await fetch_value(own_services, retried + tenant) == 0


async def test_a_document_that_is_deleted_while_it_is_read_leaves_nothing(
    librarian: Librarian, own_stores: Stores, own_services: Services
) -> None:
    async with run_worker(own_stores.settings, "ingest", "default"):
        (kept,) = await librarian.add(kept_md=_text("kept", 5))
        for _ in range(rounds(1, 3)):
            accepted = await librarian.upload(gone_md=_text("gone", 1000))
            document_id = accepted["documents"][0]["id"]

            async def is_started(document_id: str = document_id) -> bool:
                return bool((await librarian.document(document_id))["status"] != "pending")

            await wait_until(is_started)
            path = f"{librarian.path}/documents/{document_id}"
            assert (await librarian.client.delete(path)).status_code == 204

        async def is_gone() -> bool:
            hidden = await fetch_value(own_services, _HIDDEN.format(librarian.agent_id))
            return bool(hidden == 0)

        await wait_until(is_gone)
        counts = await _count_chunks(own_services, librarian.agent_id)
    assert counts == {kept["id"]: 5}
