"""Fills a new table from an agent's old one, and puts it in the old one's place.

That happens when chunks were removed, since LanceDB keeps their text in its files, and when the
embedding model has changed. The new table is filled while the old one is read and written. Then
both are compared under the writer's lease, and Postgres names the new one.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from app.jobs import background, work
from app.kit import clock, logs
from app.services import Services

from . import languages, local_embedder, queries, refining_queries, table_queries
from .arrow_rows import has_terms
from .chunk_store import ChunkStore
from .chunks import DocumentState
from .embedding import embed_texts
from .lance import TableMissing, TableRef
from .work_kinds import DROP_TABLE
from .writer_lease import NoKnowledgeBase, TableReplaced, Writer, hold_table

log = logs.get("knowledge")

# Rebuilding takes at most this share of the time, however many documents are removed.
_REBUILDING_SHARE = 0.1
# Later changes are copied under the lease.
_MAX_ROUNDS = 3
# A finished copy is not thrown away for a short wait.
_WAIT_SECONDS = 240.0
# A reader that has loaded the old generation finishes its search within this time.
_DROP_AFTER = timedelta(seconds=60)
_MAX_DOCUMENTS = 500


async def rebuild(services: Services, tenant_id: str, old: TableRef, model: str) -> None:
    """Raises NoKnowledgeBase, TableBusy, TableReplaced, ModelFailed, ModelNotConfigured."""
    started = time.monotonic()
    new = await create_ref(services, tenant_id, old.agent_id)
    copy = _TableCopy(services, tenant_id, old, new, model)
    await copy.find_vectors()
    for _ in range(_MAX_ROUNDS):
        if not await copy.run_round():
            break
    await services.get(ChunkStore).optimize(new)
    pause = (time.monotonic() - started) / _REBUILDING_SHARE
    async with hold_table(services, tenant_id, old.agent_id, _WAIT_SECONDS) as writer:
        await background.run_to_end(_complete(services, writer, copy, pause))
    log.info("knowledge base rebuilt", agent_id=old.agent_id, generation=new.generation)


async def create_ref(services: Services, tenant_id: str, agent_id: str) -> TableRef:
    """Returns the name of a table that does not exist. Raises NoKnowledgeBase."""
    tables = await services.get(ChunkStore).list_tables(agent_id)
    while True:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            generation = await table_queries.next_generation(tx, tenant_id, agent_id)
        if generation is None:
            raise NoKnowledgeBase(agent_id)
        # There may be one after a backup of Postgres was restored that is older than the tables.
        if (ref := TableRef(agent_id, generation)) not in tables:
            return ref


async def _complete(services: Services, writer: Writer, copy: "_TableCopy", pause: float) -> None:
    """Copies the last changes and swaps the tables, while nobody else writes."""
    if writer.table != copy.old:
        raise TableReplaced(copy.old.name)
    while await copy.run_round():
        pass
    await copy.copy_encodings()
    await swap(
        services,
        writer,
        copy.new,
        copy.model,
        has_removed_chunks=copy.has_removed_chunks,
        pause_seconds=pause,
        languages=copy.languages,
    )


async def swap(
    services: Services,
    writer: Writer,
    new: TableRef,
    model: str,
    *,
    has_removed_chunks: bool,
    pause_seconds: float,
    languages: Mapping[str, str | None] = {},
) -> None:
    """Names the new table in Postgres. The old one is deleted when no reader uses it. `languages`
    are those of documents of which they were not known.
    """
    old, drop_at = writer.table, clock.now() + _DROP_AFTER
    encoders = await services.get(ChunkStore).encodings.list_encoders(new)
    async with services.db.tx(writer.tenant_id) as tx:
        if languages:
            await queries.set_languages(tx, writer.tenant_id, old.agent_id, languages)
        if not encoders:
            await refining_queries.reset_refined(tx, writer.tenant_id, old.agent_id)
        was_swapped = await table_queries.swap(
            tx,
            writer.tenant_id,
            old.agent_id,
            writer.token,
            (old.generation, new.generation),
            model,
            has_removed_chunks=has_removed_chunks,
            pause_seconds=pause_seconds,
        )
        if not was_swapped:
            raise TableReplaced(old.name)
        await table_queries.set_contents(tx, writer.tenant_id, old.agent_id, encoders)
        ids = {"tenant_id": writer.tenant_id, "ref_id": old.name}
        await work.accept(tx, DROP_TABLE, **ids, run_at=drop_at)


class _TableCopy:
    """Copies the documents that the new table lacks. Only this attempt writes the new table."""

    def __init__(
        self, services: Services, tenant_id: str, old: TableRef, new: TableRef, model: str
    ) -> None:
        self.old = old
        self.new = new
        self.model = model
        self.has_removed_chunks = False
        # Of documents whose passages had no terms.
        self.languages: dict[str, str | None] = {}
        self._services = services
        self._store = services.get(ChunkStore)
        self._tenant_id = tenant_id
        self._has_vectors = False
        # Tables of attempts that did not finish, whose vectors need not be computed again.
        self._unfinished: list[TableRef] = []

    async def find_vectors(self) -> None:
        """Looks for vectors of the model. Tables of earlier attempts without any are deleted."""
        described = await self._store.describe(self.old)
        self._has_vectors = described is not None and described.model == self.model
        for ref in await self._store.list_tables(self.old.agent_id):
            if ref.generation > self.old.generation and ref != self.new:
                if not self._has_vectors and await self._is_reusable(ref):
                    self._unfinished.append(ref)
                else:
                    await self._store.drop(ref)

    async def _is_reusable(self, ref: TableRef) -> bool:
        try:
            described = await self._store.describe(ref)
        except (RuntimeError, OSError):
            # Its files are damaged.
            return False
        return described is not None and described.model == self.model

    async def copy_encodings(self) -> None:
        """Encodings serve only beside the vectors of the local embedder."""
        if self.model == local_embedder.NAME:
            states = await self._store.list_documents(self.new)
            versions = {key: state.version for key, state in states.items()}
            await self._store.encodings.copy(self.old, self.new, versions)

    async def run_round(self) -> bool:
        """Copies what differs; False when nothing did."""
        source = await self._store.list_documents(self.old)
        target = await self._store.list_documents(self.new)
        stale = [key for key, state in target.items() if source.get(key) != state]
        missing = {key: state for key, state in source.items() if target.get(key) != state}
        if stale:
            await self._store.delete_documents(self.new, stale)
            self.has_removed_chunks = True
        while self._unfinished:
            await self._reuse(self._unfinished.pop(), missing)
        await self._copy(self.old, list(missing), has_vectors=self._has_vectors)
        return source != target

    async def _reuse(self, ref: TableRef, missing: dict[str, DocumentState]) -> None:
        """Takes the vectors of an earlier attempt over, and deletes its table."""
        try:
            states = await self._store.list_documents(ref)
            complete = [key for key, state in missing.items() if states.get(key) == state]
            await self._copy(ref, complete, has_vectors=True)
        except (RuntimeError, OSError, TableMissing) as error:
            # A part of a document may be copied: the next round compares again.
            log.warning("a table cannot be read", table=ref.name, reason=type(error).__name__)
            complete = list(await self._store.list_documents(self.new))
        for key in complete:
            missing.pop(key, None)
        await self._store.drop(ref)

    async def _copy(self, source: TableRef, document_ids: list[str], *, has_vectors: bool) -> None:
        for start in range(0, len(document_ids), _MAX_DOCUMENTS):
            part = document_ids[start : start + _MAX_DOCUMENTS]
            async for batch in self._store.read_batches(source, part):
                vectors = None
                if not has_vectors:
                    texts = batch.column("text").to_pylist()
                    ids = (self._tenant_id, self.old.agent_id)
                    vectors = await embed_texts(self._services, *ids, self.model, texts)
                dimensions = batch.schema.field("vector").type.list_size
                size = dimensions if vectors is None else int(vectors.shape[1])
                await self._store.create(self.new, self.model, size)
                if not has_terms(batch.schema):
                    await asyncio.to_thread(self._tell_languages, batch)
                await self._store.add_batch(self.new, batch, vectors, self.languages)

    def _tell_languages(self, batch: Any) -> None:
        texts: dict[str, list[str]] = {}
        columns = (batch.column(name).to_pylist() for name in ("document_id", "text"))
        for document_id, text in zip(*columns, strict=True):
            texts.setdefault(document_id, []).append(text)
        for document_id, passages in texts.items():
            if document_id not in self.languages:
                self.languages[document_id] = languages.tell(passages)
