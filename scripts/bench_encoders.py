"""Measures what sentence encoders cost: reading, searches, turns and memory with and without them.

The encodings of large tables are made up: each is that of its topic with noise. A few of a topic
are nearer to it than the rest, as passages with an answer are.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import bench_processes
import msgspec
import numpy as np
import psutil
from bench_library import DOCUMENT_CHUNKS, Library
from load import wait_for_port

from app import settings as configuration
from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import refining_queries, table_queries
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.encoders import registry
from app.domain.agents.knowledge.encoders.protocol import EncoderInfo
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders
from app.domain.agents.knowledge.encodings import Portion
from app.domain.agents.knowledge.lance import TableRef
from app.services import Services
from tests.agents.knowledge.manual_evaluation import read_manual_questions
from tests.ports import free_port
from workers.main import main as worker_main

_MIB = 1024 * 1024
_FEW_CHUNKS = 20_000
_NEAR_NOISE, _NOISE = 0.1, 1.0
# Of the passages of a topic, every so manieth is near.
_NEAR_STEP = 40
_WAIT_SECONDS = 60.0
# Encoded passages, by which a worker is at it.
_ENOUGH = 32

Row = Callable[..., None]


def worker() -> None:
    worker_main(configuration.load(), ["refine"])


async def bench(library: Library, many: str, count: int, without: str, row: Row) -> None:
    """`many` is an agent with so many passages, none of which is encoded; `without` has none."""
    if not registry.are_installed():
        print("The sentence encoders are not installed.", flush=True)
        return
    encoders = library.world.services.get(SentenceEncoders)
    encoders.enabled = True
    try:
        await bench_questions(encoders, row)
        few = await library.create_agent()
        await library.fill(few, _FEW_CHUNKS)
        for info in registry.ENCODERS:
            await bench_searches(library, few, _FEW_CHUNKS, info, row)
        await bench_searches(library, many, count, registry.ENCODERS[0], row)
        await bench_turns(library, many, without, row)
        await bench_ingestion(library, row)
    finally:
        encoders.enabled = False


# Questions and searches


async def bench_questions(encoders: SentenceEncoders, row: Row) -> None:
    """By the encoder of passages in the question's language, one question after another."""
    groups: dict[str, list[str]] = {info.name: [] for info in registry.ENCODERS}
    for item in read_manual_questions():
        groups[registry.encoder_of(item.corpus).name].append(item.question)
    for name, questions in groups.items():
        await asyncio.to_thread(encoders.encode, name, questions[:10])
        times = []
        for question in questions:
            started = time.perf_counter()
            await asyncio.to_thread(encoders.encode, name, [question])
            times.append((time.perf_counter() - started) * 1000)
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        row(f"question, {name}, p50", f"{p50:.1f} ms", f"p95 {p95:.1f}", "", "≤ 15 ms",
            holds=p50 <= 15)  # fmt: skip


async def bench_searches(
    library: Library, agent_id: str, count: int, info: EncoderInfo, row: Row
) -> None:
    """Leaves the passages of the agent encoded, but not marked as such."""
    base = await library.load_base(agent_id)
    await _write_encodings(library, base, count, info)
    refined = msgspec.structs.replace(
        base, revision=base.revision + 1, encoders=[info.name], is_refined=True
    )
    before, after = await library.time_searches(base), await library.time_searches(refined)
    name = f"{count:,} passages by {info.name}"
    row(f"{name}, p50", f"{after[0]:.1f} ms", f"{before[0]:.1f} ms",
        f"{after[0] - before[0]:+.1f} ms", "≤ 15 ms", holds=after[0] - before[0] <= 15)  # fmt: skip
    row("  p95", f"{after[1]:.1f} ms", f"{before[1]:.1f} ms", f"{after[1] - before[1]:+.1f} ms",
        "≤ 30 ms", holds=after[1] <= 30)  # fmt: skip


async def _write_encodings(
    library: Library, base: KnowledgeInfo, count: int, info: EncoderInfo
) -> None:
    services, table = library.world.services, TableRef(base.agent_id, base.generation)
    encoders, encodings = services.get(SentenceEncoders), services.get(ChunkStore).encodings
    texts = [" ".join(words) for words in library.topics]
    topics = await asyncio.to_thread(encoders.encode, info.name, texts)
    numbers = np.random.default_rng(7)
    for number in range(count // DOCUMENT_CHUNKS):
        places = np.arange(DOCUMENT_CHUNKS) + number * DOCUMENT_CHUNKS
        noise = numbers.standard_normal((DOCUMENT_CHUNKS, info.dimensions), np.float32)
        is_near = places // len(topics) % _NEAR_STEP == 0
        sizes = np.where(is_near, _NEAR_NOISE, _NOISE) / np.sqrt(info.dimensions)
        vectors = topics[places % len(topics)] + noise * sizes[:, np.newaxis]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        portion = Portion(f"doc_{number}", 1, 0, DOCUMENT_CHUNKS)
        await encodings.write(table, info.name, [portion], vectors.astype(np.float32))
    await encodings.optimize(table)


# Turns and memory


async def bench_turns(library: Library, agent_id: str, without: str, row: Row) -> None:
    """In a web process of its own, with the encoders turned on."""
    port = free_port()
    code = bench_processes.web("bench:parley_app", port)
    async with _run_process(library.world.services, code) as process:
        await wait_for_port(port)
        turns = Library(library.world, library.client, port)
        await _bench_turn(turns, "nothing encoded", agent_id, without, row)
        memory = [_measure_memory(process)]
        for info in registry.ENCODERS:
            await _mark_encoded(library, agent_id, info)
            await _bench_turn(turns, f"+ {info.name}", agent_id, without, row)
            memory.append(_measure_memory(process))
    for number, name in enumerate(
        ("memory of a web process, private", "  with its share of files")
    ):
        start, end = memory[0][number], memory[-1][number]
        row(name, f"{end:.0f} MiB", f"{start:.0f} MiB", f"{end - start:+.0f} MiB", "≤ 250 MiB",
            holds=end - start <= 250)  # fmt: skip


async def _bench_turn(library: Library, name: str, agent_id: str, without: str, row: Row) -> None:
    ours, bare = await library.time_turns(agent_id, without)
    row(f"turn, {name}, p50", f"{ours:.1f} ms", f"{bare:.1f} ms", f"{ours - bare:+.1f} ms",
        "≤ 30 ms", holds=ours - bare <= 30)  # fmt: skip


def _measure_memory(process: psutil.Process) -> tuple[float, float]:
    """Returns the private memory (USS) and that with a share of what others use too (PSS)."""
    used = process.memory_full_info()
    return used.uss / _MIB, used.pss / _MIB


async def _mark_encoded(library: Library, agent_id: str, info: EncoderInfo) -> None:
    """Says that this encoder has encoded passages, and that all are encoded."""
    services, tenant_id = library.world.services, library.client.tenant_id
    page = (await library.client.get(f"/api/v1/agents/{agent_id}/documents")).json()["data"]
    counts = {document["id"]: document["chunk_count"] for document in page}
    async with services.db.tx(tenant_id) as tx:
        await table_queries.add_contents(tx, tenant_id, agent_id, encoder=info.name)
        await refining_queries.set_refined(tx, tenant_id, counts)


# Ingestion


async def bench_ingestion(library: Library, row: Row) -> None:
    """While another worker encodes the passages of the first documents."""
    before, uploads_before = await _measure_ingestion(library)
    code = "import bench_encoders; bench_encoders.worker()"
    async with _run_process(library.world.services, code):
        encoded = await _count_encoded(library)
        async with asyncio.timeout(_WAIT_SECONDS):
            while await _count_encoded(library) < encoded + _ENOUGH:  # noqa: ASYNC110  # another process encodes
                await asyncio.sleep(0.1)
        after, uploads_after = await _measure_ingestion(library)
    row("ingestion beside encoding", f"{after:.0f}/s", f"{before:.0f}/s", f"{after / before:.0%}",
        "≥ 60 %", holds=after / before >= 0.6)  # fmt: skip
    row("  upload of a page until it is found", f"{uploads_after:.0f} ms",
        f"{uploads_before:.0f} ms", f"{uploads_after - uploads_before:+.0f} ms", "none",
        holds=True)  # fmt: skip


async def _measure_ingestion(library: Library) -> tuple[float, float]:
    rate, _, _ = await library.measure_ingestion()
    return rate, statistics.median(await library.time_uploads())


async def _count_encoded(library: Library) -> int:
    services, tenant_id = library.world.services, library.client.tenant_id
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        count: int = await (await tx.raw()).fetchval(
            "SELECT sum(refined_count) FROM documents WHERE tenant_id = $1", tenant_id
        )
    return count


@asynccontextmanager
async def _run_process(services: Services, code: str) -> AsyncIterator[psutil.Process]:
    settings = msgspec.structs.replace(services.settings, sentence_encoders=True)
    process = bench_processes.start(code, settings)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)
