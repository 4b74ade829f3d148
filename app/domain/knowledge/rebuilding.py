"""Fills a new table from an agent's old one, and puts it in the old one's place.

That happens when chunks were removed, since LanceDB keeps their text in its files, and when the
embedding model has changed. The new table is filled while the old one is read and written. Then
both are compared under the writer's lease, and Postgres names the new one.
"""

import time
from datetime import timedelta

from app.domain.knowledge import table_queries
from app.domain.knowledge.chunk_store import ChunkStore, TableRef
from app.domain.knowledge.ingestion import embed_texts
from app.domain.knowledge.work_kinds import DROP_TABLE
from app.domain.knowledge.writer_lease import NoKnowledgeBase, TableReplaced, Writer, hold_table
from app.kit import background, clock, logs, work
from app.services import Services

log = logs.get("knowledge")

# Rebuilding takes at most this share of the time, however many documents are removed.
_REBUILDING_SHARE = 0.1
# A finished copy is not thrown away for a short wait.
_WAIT_SECONDS = 240.0
# A reader that has loaded the old generation finishes its search within this time.
_DROP_AFTER = timedelta(seconds=60)
_MAX_DOCUMENTS = 500


async def rebuild(services: Services, tenant_id: str, old: TableRef, model: str) -> None:
    """Raises NoKnowledgeBase, TableBusy, TableReplaced, ModelFailed, ModelNotConfigured."""
    started = time.monotonic()
    copy = await _TableCopy.prepare(services, tenant_id, old, model)
    while await copy.run_round():
        pass
    await services.get(ChunkStore).optimize(copy.new)
    async with hold_table(services, tenant_id, old.agent_id, _WAIT_SECONDS) as writer:
        await background.run_to_end(_complete(services, writer, copy, started))
    log.info("knowledge base rebuilt", agent_id=old.agent_id, generation=copy.new.generation)


async def _complete(services: Services, writer: Writer, copy: "_TableCopy", started: float) -> None:
    """Copies the last changes and swaps the tables, while nobody else writes. The old tables are
    deleted when no reader uses them any more.
    """
    if writer.table != copy.old:
        raise TableReplaced(copy.old.name)
    while await copy.run_round():
        pass
    pause = (time.monotonic() - started) / _REBUILDING_SHARE
    drop_at = clock.now() + _DROP_AFTER
    async with services.db.tx(writer.tenant_id) as tx:
        was_swapped = await table_queries.swap(
            tx,
            writer.tenant_id,
            writer.table.agent_id,
            writer.token,
            (copy.old.generation, copy.new.generation),
            copy.model,
            removed=copy.has_removed_chunks,
            pause_seconds=pause,
        )
        if not was_swapped:
            raise TableReplaced(copy.old.name)
        for ref in (copy.old, *copy.abandoned):
            await work.accept(
                tx, DROP_TABLE, tenant_id=writer.tenant_id, ref_id=ref.name, run_at=drop_at
            )


class _TableCopy:
    """Copies the documents that the new table lacks. Only this attempt writes the new table."""

    def __init__(
        self, services: Services, tenant_id: str, old: TableRef, new: TableRef, model: str
    ) -> None:
        self.old = old
        self.new = new
        self.model = model
        self.has_removed_chunks = False
        # Tables of attempts that did not finish.
        self.abandoned: list[TableRef] = []
        self._services = services
        self._store = services.get(ChunkStore)
        self._tenant_id = tenant_id
        # Tables with vectors of the model, which need not be computed again.
        self._embedded: list[TableRef] = []

    @classmethod
    async def prepare(
        cls, services: Services, tenant_id: str, old: TableRef, model: str
    ) -> "_TableCopy":
        """Raises NoKnowledgeBase when the agent was deleted."""
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            generation = await table_queries.next_generation(tx, tenant_id, old.agent_id)
        if generation is None:
            raise NoKnowledgeBase(old.agent_id)
        copy = cls(services, tenant_id, old, TableRef(old.agent_id, generation), model)
        await copy.look_at_tables()
        return copy

    async def look_at_tables(self) -> None:
        tables = await self._store.list_tables(self.old.agent_id)
        self.abandoned = [ref for ref in tables if ref != self.old]
        for ref in (self.old, *self.abandoned):
            described = await self._store.describe(ref)
            if described is not None and described.model == self.model:
                self._embedded.append(ref)

    async def run_round(self) -> bool:
        """Copies what differs; False when nothing did."""
        source = await self._store.list_documents(self.old)
        target = await self._store.list_documents(self.new)
        stale = [key for key, state in target.items() if source.get(key) != state]
        missing = {key: state for key, state in source.items() if target.get(key) != state}
        if stale:
            await self._store.delete_documents(self.new, stale)
            self.has_removed_chunks = True
        for ref in self._embedded:
            if not missing:
                break
            states = source if ref == self.old else await self._store.list_documents(ref)
            complete = [key for key, state in missing.items() if states.get(key) == state]
            await self._copy(ref, complete, has_vectors=True)
            for key in complete:
                del missing[key]
        await self._copy(self.old, list(missing), has_vectors=False)
        return source != target

    async def _copy(self, source: TableRef, document_ids: list[str], *, has_vectors: bool) -> None:
        for start in range(0, len(document_ids), _MAX_DOCUMENTS):
            part = document_ids[start : start + _MAX_DOCUMENTS]
            async for batch in self._store.read_batches(source, part):
                vectors = None
                if not has_vectors:
                    texts = batch.column("text").to_pylist()
                    vectors = await embed_texts(self._services, self._tenant_id, self.model, texts)
                dimensions = batch.schema.field("vector").type.list_size
                size = dimensions if vectors is None else int(vectors.shape[1])
                await self._store.create(self.new, self.model, size)
                await self._store.add_batch(self.new, batch, vectors)
