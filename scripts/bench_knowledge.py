"""Measures documents: how well and how fast they are found, and how fast they are read."""

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_encoders
import numpy as np
import psutil
from bench_library import DOCUMENT_CHUNKS, QUERIES, Library

from app import settings as configuration
from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import parsing, vector_index
from app.domain.agents.knowledge.chunk_store import ChunkStore, SearchRequest
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.local_embedder import TokenTable
from tests.agents.knowledge.evaluation import Corpus, Ranks, read_questions
from tests.agents.knowledge.sample_packages import make_raw_docx, paragraph
from tests.world import World
from workers.main import main as worker_main

_MIB = 1024 * 1024
_CHUNKS = 100_000
_REFINE_FACTORS = (1, 2, 10)
_STORED_XML_BYTES = 47 * _MIB

Row = Callable[..., None]


def worker() -> None:
    worker_main(configuration.load(), ["ingest"])


# Quality and memory


async def bench_quality(row: Row) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder))
        await corpus.load()
        outcomes = await corpus.ask(read_questions())
        hard = await corpus.ask(read_questions(hard=True))
    for name, items, bar in (("usual", outcomes, 0.95), ("hard", hard, 0.0)):
        hybrid = Ranks([item.hybrid for item in items])
        vector, text = Ranks([i.by_vector for i in items]), Ranks([i.by_text for i in items])
        best = max(vector.hits(3), text.hits(3))
        row(f"hit@3, {len(items)} questions, {name}", f"{hybrid.hits(3):.1%}", f"{best:.1%}",
            f"{hybrid.hits(3) - best:+.1%}", f"≥ {bar:.0%}" if bar else "none",
            holds=hybrid.hits(3) >= bar)  # fmt: skip
        halves = f"{vector.mean_reciprocal:.2f} {text.mean_reciprocal:.2f}"
        best = max(vector.mean_reciprocal, text.mean_reciprocal)
        row("  MRR, beside vectors and words", f"{hybrid.mean_reciprocal:.2f}", halves,
            f"{hybrid.mean_reciprocal - best:+.2f}", "≥ +0",
            holds=hybrid.mean_reciprocal >= best)  # fmt: skip


async def bench_parse_memory(row: Row) -> None:
    """The largest DOCX file that is accepted, the format that takes most memory."""
    unit = paragraph("hello world")
    content = make_raw_docx(unit * (_STORED_XML_BYTES // len(unit)))
    started = time.perf_counter()
    chunks = await parsing.read_chunks(content, "docx")
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    row("memory of reading the largest DOCX", f"{peak:.0f} MiB", f"{len(chunks)} chunks",
        f"{seconds:.1f} s", "≤ 1024 MiB", holds=peak <= 1024)  # fmt: skip


# Ingestion


async def bench_ingestion(library: Library, row: Row) -> None:
    rate, count, seconds = await library.measure_ingestion()
    row("ingestion by one worker", f"{count} chunks", f"{seconds:.1f} s",
        f"{rate:.0f}/s", "≥ 500/s", holds=rate >= 500)  # fmt: skip
    times = await library.time_uploads()
    row("upload of a page until it is found", f"{statistics.median(times):.0f} ms",
        f"max {max(times):.0f}", "", "none", holds=True)  # fmt: skip


# Retrieval


async def bench_retrieval(library: Library, base: KnowledgeInfo, row: Row) -> None:
    p50, p95 = await library.time_searches(base)
    row("retrieval from 100,000 chunks, p95", f"{p95:.1f} ms", f"p50 {p50:.1f}", "", "≤ 30 ms",
        holds=p95 <= 30)  # fmt: skip


async def bench_recall(library: Library, base: KnowledgeInfo, vectors: Any, row: Row) -> None:
    """Compares the vector half with exact search, also for other factors of refinement."""
    queries = [library.write_query() for _ in range(QUERIES)]
    questions = TokenTable().embed(queries)
    similarities = questions @ vectors.T
    exact = np.argpartition(-similarities, 5, axis=1)[:, :5]
    used = vector_index.REFINE_FACTOR
    try:
        for factor in (used, *_REFINE_FACTORS):
            vector_index.REFINE_FACTOR = factor
            recall, p95 = await _recall(library, base, queries, questions, exact)
            is_used = factor == used
            row(f"  recall@5, {factor} times the rows compared", f"{recall:.1%}", "exact",
                f"{p95:.1f} ms", "≥ 99 %" if is_used else "none",
                holds=recall >= 0.99 or not is_used)  # fmt: skip
    finally:
        vector_index.REFINE_FACTOR = used


async def _recall(
    library: Library, base: KnowledgeInfo, queries: list[str], questions: Any, exact: Any
) -> tuple[float, float]:
    store = library.world.services.get(ChunkStore)
    table = TableRef(base.agent_id, base.generation)
    hits, times = 0, []
    for text, vector, best in zip(queries, questions, exact, strict=True):
        request = SearchRequest(
            table=table, revision=base.revision, text=text, vector=vector.tolist(), limit=20
        )
        started = time.perf_counter()
        matches = await store.search(request)
        times.append((time.perf_counter() - started) * 1000)
        positions = {
            int(chunk.document_id.removeprefix("doc_")) * DOCUMENT_CHUNKS + chunk.position
            for chunk, _ in matches.by_vector[:5]
            if chunk.document_name == "bench"
        }
        hits += len(positions & set(best.tolist()))
    return hits / (5 * len(queries)), statistics.quantiles(times, n=20)[-1]


async def bench_chat(library: Library, with_documents: str, without: str, row: Row) -> None:
    ours, bare = await library.time_turns(with_documents, without)
    row("chat turn with retrieval, p50", f"{ours:.1f} ms", f"{bare:.1f} ms",
        f"{ours - bare:+.1f} ms", "≤ 15 ms", holds=ours - bare <= 15)  # fmt: skip


async def bench(world: World, ports: dict[str, int], web_pid: int, row: Row) -> None:
    """`web_pid` is the process at `ports["knowledge"]`, which has not searched yet."""
    process = psutil.Process(web_pid)
    idle = process.memory_info().rss / _MIB
    row("web process before a retrieval", f"{idle:.0f} MiB", "", "", "≤ 200 MiB",
        holds=idle <= 200)  # fmt: skip
    await bench_quality(row)
    library = Library(world, await world.user("tenant_admin"), ports["knowledge"])
    await library.add_key(ports["stub"])
    await bench_ingestion(library, row)
    with_documents, without = await library.create_agent(), await library.create_agent()
    base, vectors = await library.fill(with_documents, _CHUNKS)
    await bench_retrieval(library, base, row)
    await bench_recall(library, base, vectors, row)
    await bench_chat(library, with_documents, without, row)
    used = process.memory_info().rss / _MIB
    row("web process after retrievals", f"{used:.0f} MiB", f"{idle:.0f} MiB", "", "none",
        holds=True)  # fmt: skip
    await bench_parse_memory(row)
    await bench_encoders.bench(library, with_documents, _CHUNKS, without, row)
