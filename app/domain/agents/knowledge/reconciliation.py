"""Compares an agent's table with Postgres and corrects both.

They differ after a power failure, since LanceDB does not wait for the disk, and after a process
that was suspended for longer than its lease has written what nobody expects. A table whose files
are damaged is replaced by an empty one, and its documents are read again.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence

import msgspec

from app.jobs import background, work
from app.kit import logs
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS

from . import queries, rebuilding, refining_queries, table_queries
from .chunk_store import ChunkStore
from .chunks import DocumentState
from .work_kinds import INGEST, REMOVE_DOCUMENT
from .writer_lease import NoKnowledgeBase, TableBusy, TableReplaced, Writer, hold_table

log = logs.get("knowledge")

_WAIT_SECONDS = 60.0
_MAINTAIN_SECONDS = 5.0
# A table is damaged when it cannot be read so often.
_READS = 3
_READ_PAUSE_SECONDS = 3.0


class Differences(msgspec.Struct, frozen=True):
    # In the table, but not in Postgres.
    unknown: list[str]
    # Ready documents whose chunks are not in the table, with their versions.
    lost: dict[str, int]
    # Documents whose `chunk_count` is not that of the table, with that of the table.
    counts: dict[str, int]


def compare(rows: Sequence[Row], states: Mapping[str, DocumentState]) -> Differences:
    """Hidden documents are left to the work that removes them."""
    differences = Differences(
        unknown=sorted(states.keys() - {row["id"] for row in rows}), lost={}, counts={}
    )
    for row in rows:
        state = states.get(row["id"])
        count = state.chunk_count if state is not None else 0
        if row["is_hidden"]:
            continue
        if row["status"] == "ready":
            if state != (row["version"], row["chunk_count"]):
                differences.lost[row["id"]] = row["version"]
        elif count != row["chunk_count"]:
            differences.counts[row["id"]] = count
    return differences


async def reconcile_all(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        bases = await table_queries.list_bases(tx)
    # In another order each time, in case there is not enough time for all.
    random.shuffle(bases)
    for base in bases:
        try:
            await reconcile(services, base["tenant_id"], base["agent_id"])
        except NoKnowledgeBase:
            continue
        except (TableBusy, TableReplaced):
            log.info("a table is busy, so it was not compared", agent_id=base["agent_id"])
        except Exception:
            # One broken table must not keep the others from being compared.
            log.exception("a table was not compared", agent_id=base["agent_id"])


async def reconcile(
    services: Services, tenant_id: str, agent_id: str, *, removed: bool = False
) -> None:
    """Corrects what differs. `removed`: chunks were removed, and that may not be recorded. Raises
    NoKnowledgeBase, TableBusy, TableReplaced.
    """
    async with hold_table(services, tenant_id, agent_id, _WAIT_SECONDS) as writer:
        await background.run_to_end(_reconcile(services, writer, removed=removed))


async def _reconcile(services: Services, writer: Writer, *, removed: bool) -> None:
    tenant_id, agent_id = writer.tenant_id, writer.table.agent_id
    # The table first: a document is in Postgres before its chunks are in the table.
    writer, states = await _list_documents(services, writer)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        rows = await queries.list_documents(tx, tenant_id, agent_id)
        stalled = await queries.list_stalled(tx, tenant_id, agent_id)
    differences = compare(rows, states)
    if differences.unknown:
        log.warning("deleting chunks of deleted documents", agent_id=agent_id)
        await services.get(ChunkStore).delete_documents(writer.table, differences.unknown)
    if removed or differences.unknown or differences.counts:
        async with services.db.tx(tenant_id) as tx:
            for document_id, count in sorted(differences.counts.items()):
                await queries.set_chunk_count(tx, tenant_id, document_id, count)
            await writer.record_change(tx, removed=True, maintain_seconds=_MAINTAIN_SECONDS)
    await _correct_encodings(services, writer, rows, states)
    for document_id, version in differences.lost.items():
        await _read_again(services, tenant_id, document_id, version)
    for row in stalled:
        await _accept_again(services, tenant_id, row["id"], is_hidden=row["is_hidden"])


async def _correct_encodings(
    services: Services, writer: Writer, rows: Sequence[Row], states: Mapping[str, DocumentState]
) -> None:
    """Deletes encodings of which there are more or fewer than Postgres knows: the passages of these
    documents are encoded again.
    """
    encodings, agent_id = services.get(ChunkStore).encodings, writer.table.agent_id
    wrong = find_wrong_encodings(rows, states, await encodings.list_documents(writer.table))
    if not wrong:
        return
    log.warning("deleting encodings that nobody expects", agent_id=agent_id, documents=len(wrong))
    await encodings.delete_documents(writer.table, wrong)
    async with services.db.tx(writer.tenant_id) as tx:
        await refining_queries.reset_refined(tx, writer.tenant_id, agent_id, wrong)
        await writer.record_change(tx, removed=False, maintain_seconds=_MAINTAIN_SECONDS)


def find_wrong_encodings(
    rows: Sequence[Row], chunks: Mapping[str, DocumentState], encoded: Mapping[str, DocumentState]
) -> list[str]:
    """Encodings are of the version of the chunks, and as many as `refined_count` says."""
    expected = {
        row["id"]: DocumentState(chunks[row["id"]].version, row["refined_count"])
        for row in rows
        if row["refined_count"] and row["id"] in chunks
    }
    lost = {row["id"] for row in rows if row["refined_count"] and row["id"] not in chunks}
    keys = expected.keys() | encoded.keys()
    return sorted(lost | {key for key in keys if expected.get(key) != encoded.get(key)})


async def _list_documents(
    services: Services, writer: Writer
) -> tuple[Writer, dict[str, DocumentState]]:
    """Replaces a damaged table. Returns the writer of the table that is used from now on."""
    store = services.get(ChunkStore)
    for _ in range(_READS):
        try:
            return writer, await store.list_documents(writer.table)
        except (RuntimeError, OSError) as error:
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            # Raises when the store is unavailable, which is no damage.
            await store.list_tables(writer.table.agent_id)
            await asyncio.sleep(_READ_PAUSE_SECONDS)
    log.error("a table is damaged and is replaced", table=writer.table.name, reason=reason)
    new = await rebuilding.create_ref(services, writer.tenant_id, writer.table.agent_id)
    model = writer.embedding_model
    await rebuilding.swap(services, writer, new, model, has_removed_chunks=False, pause_seconds=0)
    return msgspec.structs.replace(writer, table=new), {}


async def _read_again(services: Services, tenant_id: str, document_id: str, version: int) -> None:
    async with services.db.tx(tenant_id) as tx:
        if await queries.lock_ready(tx, tenant_id, document_id, version):
            log.warning("the chunks of a document are lost", document_id=document_id)
            work_id = await work.accept(tx, INGEST, tenant_id=tenant_id, ref_id=document_id)
            await queries.restart(tx, tenant_id, document_id, work_id)


async def _accept_again(
    services: Services, tenant_id: str, document_id: str, *, is_hidden: bool
) -> None:
    """Accepts work for a document whose work was given up, or is lost."""
    log.warning("a document has no work", document_id=document_id, is_hidden=is_hidden)
    async with services.db.tx(tenant_id) as tx:
        kind = REMOVE_DOCUMENT if is_hidden else INGEST
        work_id = await work.accept(tx, kind, tenant_id=tenant_id, ref_id=document_id)
        if is_hidden:
            await queries.set_removal(tx, tenant_id, document_id, work_id)
        else:
            await queries.restart(tx, tenant_id, document_id, work_id)
