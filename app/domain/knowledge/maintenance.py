"""Keeps tables fast and clean: compaction, indexes, and rebuilding into the next generation.

A table is rebuilt when chunks were removed, since LanceDB keeps their text in its files, and when
the embedding model has changed. The new table is filled while the old one is read and written. Then
both are compared under the writer's lease, and Postgres names the new one.
"""

from datetime import timedelta

from app.domain.knowledge import queries
from app.domain.knowledge.chunk_store import ChunkStore, DocumentState, TableRef
from app.domain.knowledge.files import DOCUMENTS_FOLDER, documents_folder
from app.domain.knowledge.ingestion import embed_texts
from app.domain.knowledge.work_kinds import DROP_TABLE, INGEST, MAINTAIN, SWEEP
from app.domain.knowledge.writer_lease import TableReplaced, Writer, hold_table
from app.kit import background, clock, logs, work
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS

log = logs.get("knowledge")

_MAX_DUE = 100
# A reader that has loaded the old generation finishes its search within this time.
_DROP_AFTER = timedelta(seconds=60)
_MAX_DOCUMENTS = 500
_SWEEP_HOURS = 6


async def accept_due(services: Services) -> None:
    """Accepts work for the tables that are due. Several workers may do so at once."""
    async with services.db.tx(ALL_TENANTS) as tx:
        for row in await queries.take_due(tx, MAINTAIN.name, _MAX_DUE):
            await work.accept(tx, MAINTAIN, tenant_id=row["tenant_id"], ref_id=row["agent_id"])


async def mark_other_models(services: Services) -> None:
    """Makes tables due whose vectors are of another model than the configured one, or that still
    have text of removed chunks, for example because their rebuilding was given up.
    """
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await queries.mark_other_models(tx, MAINTAIN.name, services.settings.embedding_model)


async def accept_sweep(services: Services) -> None:
    """Accepts one sweep for all workers in a period."""
    period = int(clock.now().timestamp()) // (3600 * _SWEEP_HOURS)
    async with services.db.tx(ALL_TENANTS) as tx:
        await work.accept(tx, SWEEP, tenant_id=None, dedupe_key=str(period))


async def maintain(services: Services, tenant_id: str, agent_id: str) -> None:
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        base = await queries.find_base(tx, tenant_id, agent_id)
    if base is None:
        return
    async with services.get(ChunkStore).maintaining:
        await _maintain(services, base)


async def _maintain(services: Services, base: Row) -> None:
    tenant_id, agent_id = base["tenant_id"], base["agent_id"]
    wanted_model = services.settings.embedding_model
    if base["has_removed_chunks"] or base["embedding_model"] != wanted_model:
        await _rebuild(services, tenant_id, TableRef(agent_id, base["generation"]), wanted_model)
        return
    await background.run_to_end(_optimize(services, tenant_id, agent_id))


async def _optimize(services: Services, tenant_id: str, agent_id: str) -> None:
    async with hold_table(services, tenant_id, agent_id) as writer:
        await services.get(ChunkStore).optimize(writer.table)
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            await queries.record_maintenance(tx, tenant_id, agent_id, writer.token)


async def _rebuild(services: Services, tenant_id: str, old: TableRef, model: str) -> None:
    """Fills the next generation from the old one, and makes it the agent's table."""
    new = TableRef(old.agent_id, old.generation + 1)
    copy = _TableCopy(services, tenant_id, old, new, model)
    await copy.prepare()
    while await copy.run_round():
        pass
    await services.get(ChunkStore).optimize(new)
    await background.run_to_end(_complete(services, tenant_id, old, copy))


async def _complete(services: Services, tenant_id: str, old: TableRef, copy: "_TableCopy") -> None:
    """Copies the last changes and swaps the tables, while nobody else writes."""
    async with hold_table(services, tenant_id, old.agent_id) as writer:
        if writer.table != old:
            return
        while await copy.run_round():
            pass
        await _swap(services, writer, copy)
    log.info("knowledge base rebuilt", agent_id=old.agent_id, generation=copy.new.generation)


async def _swap(services: Services, writer: Writer, copy: "_TableCopy") -> None:
    """Names the new table in Postgres; the old one is deleted when no reader uses it any more."""
    old, new = writer.table, copy.new
    async with services.db.tx(writer.tenant_id) as tx:
        was_swapped = await queries.swap(
            tx,
            writer.tenant_id,
            old.agent_id,
            writer.token,
            (old.generation, new.generation),
            copy.model,
            removed=copy.has_removed_chunks,
        )
        if not was_swapped:
            raise TableReplaced(old.name)
        run_at = clock.now() + _DROP_AFTER
        await work.accept(
            tx, DROP_TABLE, tenant_id=writer.tenant_id, ref_id=old.name, run_at=run_at
        )


class _TableCopy:
    """Copies the documents that the new table lacks. A second attempt continues a first one."""

    def __init__(
        self, services: Services, tenant_id: str, old: TableRef, new: TableRef, model: str
    ) -> None:
        self.new = new
        self.model = model
        self.has_removed_chunks = False
        self._services = services
        self._store = services.get(ChunkStore)
        self._tenant_id = tenant_id
        self._old = old
        self._vectors_fit = False

    async def prepare(self) -> None:
        """Deletes what an earlier attempt left, unless it has vectors that cost something."""
        described = await self._store.describe(self._old)
        self._vectors_fit = described is not None and described.model == self.model
        begun = await self._store.describe(self.new)
        if begun is not None and (self._vectors_fit or begun.model != self.model):
            await self._store.drop(self.new)

    async def run_round(self) -> bool:
        """Copies what differs; False when nothing did."""
        source = await self._store.list_documents(self._old)
        target = await self._store.list_documents(self.new)
        stale = [key for key, state in target.items() if source.get(key) != state]
        missing = [key for key, state in source.items() if target.get(key) != state]
        if stale:
            await self._store.delete_documents(self.new, stale)
            self.has_removed_chunks = True
        for start in range(0, len(missing), _MAX_DOCUMENTS):
            await self._copy(missing[start : start + _MAX_DOCUMENTS])
        return bool(stale or missing)

    async def _copy(self, document_ids: list[str]) -> None:
        async for batch in self._store.read_batches(self._old, document_ids):
            vectors = None
            if not self._vectors_fit:
                texts = batch.column("text").to_pylist()
                vectors = await embed_texts(self._services, self._tenant_id, self.model, texts)
            dimensions = batch.schema.field("vector").type.list_size
            size = dimensions if vectors is None else int(vectors.shape[1])
            await self._store.create(self.new, self.model, size)
            await self._store.add_batch(self.new, batch, vectors)


# Tables and files of deleted agents


async def remove_agent(services: Services, agent_id: str) -> None:
    store = services.get(ChunkStore)
    for ref in await store.list_tables(agent_id):
        await store.drop(ref)
    await services.files.delete_folder(documents_folder(agent_id))


async def sweep(services: Services) -> None:
    """Deletes what belongs to no agent, and generations that were replaced."""
    store = services.get(ChunkStore)
    tables = await store.list_tables()
    agent_ids = {ref.agent_id for ref in tables}
    agent_ids |= set(await services.files.list_folders(DOCUMENTS_FOLDER))
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        generations = await queries.list_generations(tx, sorted(agent_ids))
        existing = await queries.list_existing_agents(tx, sorted(agent_ids))
    for agent_id in agent_ids - existing:
        log.info("deleting the documents of a deleted agent", agent_id=agent_id)
        await remove_agent(services, agent_id)
    for ref in tables:
        if ref.generation < generations.get(ref.agent_id, 0):
            await store.drop(ref)


async def restore_lost_documents(services: Services) -> None:
    """Reads documents again whose chunks are not in their table: LanceDB does not wait for the
    disk, so a power failure can lose what Postgres has recorded.
    """
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        bases = await queries.list_bases(tx)
    for base in bases:
        async with services.db.tx(base["tenant_id"], autocommit=True) as tx:
            ready = await queries.list_ready(tx, base["tenant_id"], base["agent_id"])
        table = TableRef(base["agent_id"], base["generation"])
        states = await services.get(ChunkStore).list_documents(table)
        lost = [row for row in ready if _is_lost(row, states.get(row["id"]))]
        for row in lost:
            log.warning("the chunks of a document are lost", document_id=row["id"])
            async with services.db.tx(base["tenant_id"]) as tx:
                work_id = await work.accept(
                    tx, INGEST, tenant_id=base["tenant_id"], ref_id=row["id"]
                )
                await queries.restart(tx, base["tenant_id"], row["id"], work_id)


def _is_lost(row: Row, state: DocumentState | None) -> bool:
    """False for a document that was written again after its row was read."""
    version, chunk_count = int(row["version"]), int(row["chunk_count"])
    if state is None or state.version != version:
        return state is None or state.version < version
    return state.chunk_count != chunk_count
