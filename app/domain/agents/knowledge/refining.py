"""Encodes the passages of documents by sentence encoders, after they can be found already.

A document's passages are encoded from its first one on, so `refined_count` says which are. Texts
are read and encoded without the table's lease; it is held while encodings are written, and what
was replaced or deleted meanwhile is left out.
"""

import time
from typing import Any, NamedTuple

from app.jobs import background, work
from app.kit import logs
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import local_embedder, refining_queries, table_queries
from .chunk_store import ChunkStore
from .chunks import StoredChunk, title_of
from .encoders.idle_threads import IdleThreads
from .encoders.registry import SentenceEncoders, encoder_of
from .encodings import Portion
from .lance import TableMissing, TableRef
from .work_kinds import REFINE
from .writer_lease import NoKnowledgeBase, TableReplaced, Writer, hold_table

log = logs.get("knowledge")

# How many passages are encoded before they are written, for each thread, and how many at once.
_BATCH, _PART = 32, 8
# So long one agent is refined before it is the turn of another.
_TURN_SECONDS = 20.0
_MAX_ACCEPTED = 4
_WAIT_SECONDS = 30.0
# Compaction may wait until most of a document is encoded.
_MAINTAIN_SECONDS = 60.0
_PAUSE_SECONDS = 3600.0


class _Batch(NamedTuple):
    """`texts` are the passages of all portions, in their order. `versions` are those of the
    documents when they were read.
    """

    encoder: str
    portions: list[Portion]
    texts: list[str]
    versions: dict[str, int]


async def accept_due(services: Services) -> None:
    """Accepts work for agents with passages to encode. Several workers may do so at once."""
    if not services.get(SentenceEncoders).enabled:
        return
    async with services.db.tx(ALL_TENANTS) as tx:
        rows = await refining_queries.list_agents(
            tx, REFINE.name, local_embedder.NAME, _MAX_ACCEPTED
        )
        for row in rows:
            await work.accept(tx, REFINE, tenant_id=row["tenant_id"], ref_id=row["agent_id"])


async def refine(services: Services, tenant_id: str, agent_id: str) -> None:
    """Encodes passages until none is left, or it is the turn of another agent. Raises
    NoKnowledgeBase, TableBusy, TableReplaced.
    """
    encoders = services.get(SentenceEncoders)
    until, inconsistent, count = time.monotonic() + _TURN_SECONDS, list[str](), 0
    while encoders.enabled and time.monotonic() < until:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            base = await table_queries.find_base(tx, tenant_id, agent_id)
            if base is None:
                raise NoKnowledgeBase(agent_id)
            if base["embedding_model"] != local_embedder.NAME:
                break
            limit = _BATCH * services.get(IdleThreads).count_free()
            rows = await refining_queries.list_unrefined(
                tx, tenant_id, agent_id, inconsistent, limit
            )
        batch = await _read(services, base, rows, limit, inconsistent)
        if batch is None:
            break
        vectors = await _encode(services, batch)
        async with hold_table(services, tenant_id, agent_id, _WAIT_SECONDS) as writer:
            await background.run_to_end(_write(services, writer, base, batch, vectors))
        count += len(batch.texts)
    if count:
        log.info("passages encoded", agent_id=agent_id, passages=count)


async def delay(tx: Tx, tenant_id: str, agent_id: str) -> None:
    """Lets others go first for a while, since it failed several times."""
    await refining_queries.delay_refining(tx, tenant_id, agent_id, _PAUSE_SECONDS)


async def _read(
    services: Services, base: Row, rows: list[Row], limit: int, inconsistent: list[str]
) -> _Batch | None:
    """Returns the next passages for the encoder of the first document; None without any. Adds the
    documents that have other passages in the table to the inconsistent ones: the next sweep
    corrects them.
    """
    batch: _Batch | None = None
    table = TableRef(base["agent_id"], base["generation"])
    for row in rows:
        encoder = encoder_of(row["language"]).name
        if batch is not None and (encoder != batch.encoder or len(batch.texts) >= limit):
            continue
        start = row["refined_count"]
        size = min(row["chunk_count"] - start, limit - (len(batch.texts) if batch else 0))
        chunks = await _list_chunks(services, base, table, row["id"], start, size)
        if len(chunks) != size or len({chunk.version for chunk in chunks}) != 1:
            inconsistent.append(row["id"])
            continue
        batch = batch or _Batch(encoder, [], [], {})
        batch.portions.append(Portion(row["id"], chunks[0].version, start, size))
        batch.texts.extend(map(_to_text, chunks))
        batch.versions[row["id"]] = row["version"]
    return batch


async def _list_chunks(
    services: Services, base: Row, table: TableRef, document_id: str, start: int, size: int
) -> list[StoredChunk]:
    store = services.get(ChunkStore)
    try:
        return await store.list_chunks(table, base["revision"], document_id, start, size)
    except TableMissing:
        return []


def _to_text(chunk: StoredChunk) -> str:
    """The headings above a passage are a part of its text already."""
    return f"{title_of(chunk.document_name)}\n{chunk.text}"


async def _encode(services: Services, batch: _Batch) -> Any:
    import numpy as np  # noqa: PLC0415  # only processes that encode load it

    encoders = services.get(SentenceEncoders)
    parts = [batch.texts[i : i + _PART] for i in range(0, len(batch.texts), _PART)]

    def encode(texts: list[str]) -> Any:
        return encoders.encode(batch.encoder, texts)

    return np.concatenate(await services.get(IdleThreads).map(encode, parts))


async def _write(
    services: Services, writer: Writer, base: Row, batch: _Batch, vectors: Any
) -> None:
    table = TableRef(base["agent_id"], base["generation"])
    if writer.table != table:
        raise TableReplaced(table.name)
    ids = list(batch.versions)
    async with services.db.tx(writer.tenant_id, autocommit=True) as tx:
        states = await refining_queries.list_states(tx, writer.tenant_id, ids)
    kept, rows, end = list[Portion](), list[int](), 0
    for portion in batch.portions:
        start, end = end, end + portion.count
        key = portion.document_id
        if states.get(key) == (batch.versions[key], portion.start):
            kept.append(portion)
            rows.extend(range(start, end))
    if not kept:
        return
    encodings = services.get(ChunkStore).encodings
    await encodings.write(table, batch.encoder, kept, vectors[rows])
    counts = {portion.document_id: portion.start + portion.count for portion in kept}
    async with services.db.tx(writer.tenant_id) as tx:
        await refining_queries.set_refined(tx, writer.tenant_id, counts)
        await table_queries.add_contents(
            tx, writer.tenant_id, table.agent_id, encoder=batch.encoder
        )
        await writer.record_change(tx, removed=False, maintain_seconds=_MAINTAIN_SECONDS)
