"""Manuals of one language as a knowledge base of the product, in tables of their own.

Encoding takes minutes, so the encodings are kept beside the manuals (`manual_encodings.py`).
"""

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import bench_corpus
import msgspec
from manual_encodings import KeptEncodings

from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import languages, retrieval
from app.domain.agents.knowledge.chunk_store import ChunkStore, Matches, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument, StoredChunk, title_of
from app.domain.agents.knowledge.embedders import Embedder
from app.domain.agents.knowledge.encoders.idle_threads import IdleThreads
from app.domain.agents.knowledge.encoders.protocol import EncoderInfo
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders, encoder_of
from app.domain.agents.knowledge.encodings import Portion
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.local_embedder import DIMENSIONS, NAME
from app.domain.agents.knowledge.reader import Reader
from app.domain.agents.knowledge.terms import list_terms
from app.services import Services

# What a search looks for.
MAX_RANK: Final = 10
_BATCH = 32
_WRITTEN_AT_ONCE = 200
_PROGRESS_SECONDS = 20.0


class Manual(NamedTuple):
    """A page as ingestion reads it. The name is that of its answers; users see its last part."""

    name: str
    chunks: list[Chunk]
    language: str | None

    @property
    def title(self) -> str:
        return PurePosixPath(self.name).name

    @property
    def encoder(self) -> EncoderInfo:
        return encoder_of(self.language)

    @property
    def encoded_texts(self) -> list[str]:
        return [f"{title_of(self.title)}\n{chunk.text}" for chunk in self.chunks]


class ManualBase(NamedTuple):
    services: Services
    tenant_id: str
    info: KnowledgeInfo

    @property
    def unrefined(self) -> "ManualBase":
        """The same before any passage is encoded."""
        return self._replace(info=msgspec.structs.replace(self.info, encoders=[], is_refined=False))

    async def match(self, question: str, **vectors: Any) -> Matches:
        """Searches for the words of the question and for these vectors of it."""
        info, text = self.info, retrieval.shorten(question)
        request = SearchRequest(
            table=TableRef(info.agent_id, info.generation),
            revision=info.revision,
            text=text,
            terms=" ".join(list_terms(text, info.languages)),
            limit=MAX_RANK,
            **vectors,
        )
        return await self.services.get(ChunkStore).search(request)

    async def search(self, question: str, limit: int, *, only_fitting: bool) -> list[StoredChunk]:
        """Returns what a search of the product returns: the best chunk of each passage."""
        passages = await retrieval.search(
            self.services,
            self.tenant_id,
            self.info,
            question,
            limit,
            reader=Reader.inside(),
            only_fitting=only_fitting,
        )
        return [passage.chunk for passage in passages]


# Reading


def read_manuals(language: str) -> list[Manual]:
    """Raises CorpusUnavailable."""
    pages = ((page.name, page.read_chunks()) for page in bench_corpus.read_documents(language))
    return [
        Manual(name, chunks, languages.tell(chunk.text for chunk in chunks))
        for name, chunks in pages
        if chunks
    ]


# Writing


async def write(
    services: Services, tenant_id: str, language: str, manuals: list[Manual]
) -> ManualBase:
    """Writes the passages with their vectors: they can be found, but are not encoded."""
    store, table = services.get(ChunkStore), TableRef(f"agt_manuals_{language}", 1)
    embedder = services.get(Embedder).local
    await store.create(table, NAME, DIMENSIONS)
    for name, chunks, told in manuals:
        vectors = await asyncio.to_thread(embedder.embed, [chunk.text for chunk in chunks])
        title = PurePosixPath(name).name
        await store.replace(table, EmbeddedDocument(name, title, 1, NAME, chunks, vectors, told))
    await store.optimize(table)
    info = KnowledgeInfo(
        table.agent_id,
        table.generation,
        revision=1,
        embedding_model=NAME,
        languages=sorted({manual.language for manual in manuals if manual.language}),
    )
    return ManualBase(services, tenant_id, info)


async def refine(base: ManualBase, manuals: list[Manual]) -> ManualBase:
    """Returns the base with all passages encoded."""
    services = base.services
    store, table = services.get(ChunkStore), TableRef(base.info.agent_id, base.info.generation)
    groups: dict[str, list[Manual]] = {}
    for manual in manuals:
        groups.setdefault(manual.encoder.name, []).append(manual)
    for name, group in groups.items():
        vectors = await _encode(services, group)
        for portions, rows in _list_portions(group, vectors):
            await store.encodings.write(table, name, portions, rows)
    await store.encodings.optimize(table)
    return base._replace(
        info=msgspec.structs.replace(
            base.info, revision=2, encoders=sorted(groups), is_refined=True
        )
    )


async def _encode(services: Services, manuals: list[Manual]) -> Any:
    """Returns a row for each passage of manuals of one encoder. Encodes those that are not kept."""
    encoders, threads = services.get(SentenceEncoders), services.get(IdleThreads)
    info = manuals[0].encoder
    texts = [text for manual in manuals for text in manual.encoded_texts]
    path = bench_corpus.cache_folder() / "encodings" / f"{info.name}.bin"
    kept = await asyncio.to_thread(KeptEncodings, path, info.dimensions)
    missing = kept.find_missing(texts)
    print(f"  {info.name}: {len(missing)} of {len(texts)} passages to encode", flush=True)

    def encode(part: list[str]) -> None:
        kept.add(part, encoders.encode(info.name, part))

    count, started = 0, time.perf_counter()
    printed = started
    while count < len(missing):
        end = count + _BATCH * threads.count_free()
        parts = [missing[i : min(i + _BATCH, end)] for i in range(count, end, _BATCH)]
        await threads.map(encode, [part for part in parts if part])
        count, now = min(end, len(missing)), time.perf_counter()
        if now - printed > _PROGRESS_SECONDS or count == len(missing):
            printed, rate = now, count / (now - started)
            print(f"  {info.name}: {count} of {len(missing)} encoded, {rate:.0f}/s", flush=True)
    return kept.read(texts)


def _list_portions(manuals: list[Manual], vectors: Any) -> Iterator[tuple[list[Portion], Any]]:
    """Yields portions with their rows of the vectors."""
    rest, start = iter(manuals), 0
    while group := list(islice(rest, _WRITTEN_AT_ONCE)):
        portions = [Portion(manual.name, 1, 0, len(manual.chunks)) for manual in group]
        end = start + sum(portion.count for portion in portions)
        yield portions, vectors[start:end]
        start = end
