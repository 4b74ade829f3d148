"""Manuals of one language as a knowledge base of the product, in tables of their own.

Encoding takes minutes, so the encodings are kept beside the manuals.
"""

import asyncio
import hashlib
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import bench_corpus
import msgspec
import numpy as np

from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import languages, retrieval
from app.domain.agents.knowledge.chunk_store import ChunkStore, Matches, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument, StoredChunk, title_of
from app.domain.agents.knowledge.embedders import Embedder
from app.domain.agents.knowledge.encoders.idle_threads import IdleThreads
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders, encoder_of
from app.domain.agents.knowledge.encodings import Portion
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.local_embedder import DIMENSIONS, NAME
from app.domain.agents.knowledge.terms import list_terms
from app.services import Services
from tests.agents.knowledge.manual_evaluation import ManualQuestion

# What a search looks for.
MAX_RANK: Final = 10
_PASSAGES = 6000
_BATCH = 32
_WRITTEN_AT_ONCE = 200


class Manual(NamedTuple):
    """A page as ingestion reads it. The name is that of its answers; users see its last part."""

    name: str
    chunks: list[Chunk]
    language: str | None

    @property
    def title(self) -> str:
        return PurePosixPath(self.name).name

    @property
    def encoder(self) -> str:
        return encoder_of(self.language).name

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
            only_public=False,
            only_fitting=only_fitting,
        )
        return [passage.chunk for passage in passages]


# Reading


def read_manuals(language: str, questions: list[ManualQuestion]) -> list[Manual]:
    """Returns the pages with answers and then others, in an order without meaning. Raises
    CorpusUnavailable.
    """
    pages = {page.name: page.read_chunks() for page in bench_corpus.read_documents(language)}
    needed = {
        answer.document
        for question in questions
        if question.corpus == language
        for answer in question.answers
    }
    room = _PASSAGES // len(bench_corpus.LANGUAGES)
    manuals = []
    for name in sorted(pages, key=lambda name: (name not in needed, _hash(name))):
        chunks = pages[name]
        if chunks and (name in needed or len(chunks) <= room):
            told = languages.tell(chunk.text for chunk in chunks)
            manuals.append(Manual(name, chunks, told))
            room -= len(chunks)
    return manuals


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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


async def refine(base: ManualBase, manuals: list[Manual]) -> tuple[ManualBase, float]:
    """Returns the base with all passages encoded, and how many passages a second were, 0 when their
    encodings were kept.
    """
    services, seconds, count = base.services, 0.0, 0
    store, table = services.get(ChunkStore), TableRef(base.info.agent_id, base.info.generation)
    encoders = sorted({manual.encoder for manual in manuals})
    for encoder in encoders:
        group = [manual for manual in manuals if manual.encoder == encoder]
        texts = [text for manual in group for text in manual.encoded_texts]
        path = bench_corpus.cache_folder() / "encodings" / f"{encoder}-{_hash(repr(texts))}.npy"
        if not path.exists():
            started = time.perf_counter()
            await _encode(services, encoder, texts, path)
            seconds, count = seconds + time.perf_counter() - started, count + len(texts)
        vectors = await asyncio.to_thread(np.load, path)
        for portions, rows in _list_portions(group, vectors):
            await store.encodings.write(table, encoder, portions, rows)
    await store.encodings.optimize(table)
    info = msgspec.structs.replace(base.info, revision=2, encoders=encoders, is_refined=True)
    return base._replace(info=info), count / seconds if seconds else 0.0


async def _encode(services: Services, encoder: str, texts: list[str], path: Path) -> None:
    encoders = services.get(SentenceEncoders)

    def encode(part: list[str]) -> Any:
        return encoders.encode(encoder, part)

    parts = [texts[i : i + _BATCH] for i in range(0, len(texts), _BATCH)]
    vectors = np.concatenate(await services.get(IdleThreads).map(encode, parts))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under its name only when it is complete.
    part = path.with_suffix(".part.npy")
    await asyncio.to_thread(np.save, part, vectors)
    part.rename(path)


def _list_portions(manuals: list[Manual], vectors: Any) -> Iterator[tuple[list[Portion], Any]]:
    """Yields portions with their rows of the vectors."""
    rest, start = iter(manuals), 0
    while group := list(islice(rest, _WRITTEN_AT_ONCE)):
        portions = [Portion(manual.name, 1, 0, len(manual.chunks)) for manual in group]
        end = start + sum(portion.count for portion in portions)
        yield portions, vectors[start:end]
        start = end
