"""Measures documents: how well and how fast they are found, and how fast they are read."""

import asyncio
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import psutil

from app import settings as configuration
from app.domain.agents.definition import api as agents
from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import parsing, retrieval, vector_index
from app.domain.agents.knowledge.chunk_store import ChunkStore, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.local_embedder import NAME, TokenTable
from app.domain.agents.knowledge.writer_lease import hold_table
from tests.agents.knowledge.evaluation import Corpus, Ranks, read_corpus, read_questions
from tests.agents.knowledge.sample_packages import make_raw_docx, paragraph
from tests.world import Client, World
from workers.main import main as worker_main

_MIB = 1024 * 1024
_FILES = 20
_FILE_WORDS = 40_000
_CHUNKS = 100_000
_DOCUMENT_CHUNKS = 20_000
_CHUNK_WORDS = 50
_TOPICS = 250
_TOPIC_WORDS = 40
_QUERY_WORDS = 6
_QUERIES = 200
_WARM_UP = 10
_TURNS = 80
_UPLOADS = 10
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


class Library:
    """A user with agents that have documents, and sample texts in topics."""

    def __init__(self, world: World, client: Client, port: int) -> None:
        self._world = world
        self._client = client
        self._port = port
        words = {word for _, chunks in read_corpus() for c in chunks for word in c.text.split()}
        vocabulary = sorted(word for word in words if word.isalpha())
        self._random = random.Random(7)
        self._common = self._random.sample(vocabulary, 200)
        self._topics = [self._random.sample(vocabulary, _TOPIC_WORDS) for _ in range(_TOPICS)]

    async def add_key(self, stub_port: int) -> None:
        key = {
            "provider": "stub",
            "name": "Stub",
            "api_key": "sk-stub",
            "base_url": f"http://127.0.0.1:{stub_port}/v1",
        }
        (await self._client.post("/api/v1/api-keys", key)).raise_for_status()

    async def create_agent(self) -> str:
        agent = {
            "name": "Librarian",
            "primary_model": "stub/stub",
            "system_prompt": "You are measured.",
            "status": "published",
        }
        response = await self._client.post("/api/v1/agents", agent)
        agent_id: str = response.json()["id"]
        return agent_id

    def _write(self, topic: int, words: int) -> str:
        own = self._random.choices(self._topics[topic % _TOPICS], k=words * 4 // 5)
        text = own + self._random.choices(self._common, k=words - len(own))
        self._random.shuffle(text)
        return " ".join(text)

    def write_query(self) -> str:
        topic = self._random.randrange(_TOPICS)
        return " ".join(self._random.sample(self._topics[topic], _QUERY_WORDS))

    async def train(self, agent_id: str, files: dict[str, str]) -> int:
        """Uploads files, waits until they are read, and returns the number of chunks."""
        parts = [("files", (name, text.encode())) for name, text in files.items()]
        path = f"/api/v1/agents/{agent_id}"
        (await self._client.http.post(f"{path}/train", files=parts)).raise_for_status()
        while True:
            page = (await self._client.get(f"{path}/documents?per_page=100")).json()["data"]
            if all(document["status"] == "ready" for document in page):
                return sum(document["chunk_count"] for document in page)
            if any(document["status"] == "failed" for document in page):
                raise RuntimeError(f"a document failed: {page}")
            await asyncio.sleep(0.02)

    async def bench_ingestion(self, row: Row) -> None:
        agent_id = await self.create_agent()
        await self.train(agent_id, {"first.md": "# One\n\nThe worker loads its libraries."})
        files = {}
        for number in range(_FILES):
            sections = [f"## Part {n}\n\n{self._write(n, 400)}." for n in range(_FILE_WORDS // 400)]
            files[f"{number}.md"] = "\n\n".join(sections)
        started = time.perf_counter()
        count = await self.train(agent_id, files)
        seconds = time.perf_counter() - started
        row("ingestion by one worker", f"{count} chunks", f"{seconds:.1f} s",
            f"{count / seconds:.0f}/s", "≥ 500/s", holds=count / seconds >= 500)  # fmt: skip

    async def bench_upload(self, row: Row) -> None:
        """From the upload of a page until a search finds it."""
        agent_id, times = await self.create_agent(), []
        path = f"/api/v1/agents/{agent_id}"
        for number in range(_UPLOADS):
            word = f"landmark{number}"
            part = ("files", (f"{word}.md", f"{self._write(number, 400)} {word}".encode()))
            started = time.perf_counter()
            (await self._client.http.post(f"{path}/train", files=[part])).raise_for_status()
            while not await self._finds(path, word):  # noqa: ASYNC110  # by HTTP, as a user sees it
                await asyncio.sleep(0.01)
            times.append((time.perf_counter() - started) * 1000)
        row("upload of a page until it is found", f"{statistics.median(times):.0f} ms",
            f"max {max(times):.0f}", "", "none", holds=True)  # fmt: skip

    async def _finds(self, path: str, word: str) -> bool:
        response = await self._client.post(f"{path}/search", {"query": word})
        response.raise_for_status()
        return any(word in passage["content"] for passage in response.json()["data"])

    # Retrieval

    async def fill(self, agent_id: str) -> tuple[KnowledgeInfo, Any]:
        """Gives the agent 100,000 chunks. Returns its knowledge base and the vectors."""
        await self.train(agent_id, {"first.md": "# One\n\nThe table exists."})
        services, tenant_id = self._world.services, self._client.tenant_id
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            runtime = await agents.find_runtime(tx, services.keyring, agent_id)
        if runtime.knowledge is None:
            raise RuntimeError("the agent has no knowledge base")
        store, embedder, parts = services.get(ChunkStore), TokenTable(), []
        # The worker's upkeep of the table waits.
        async with hold_table(services, tenant_id, agent_id, 60) as writer:
            for number in range(_CHUNKS // _DOCUMENT_CHUNKS):
                topics = range(number * _DOCUMENT_CHUNKS, (number + 1) * _DOCUMENT_CHUNKS)
                texts = [self._write(topic, _CHUNK_WORDS) for topic in topics]
                vectors = await asyncio.to_thread(embedder.embed, texts)
                chunks = [Chunk(text) for text in texts]
                document = EmbeddedDocument(f"doc_{number}", "bench", 1, NAME, chunks, vectors)
                await store.replace(writer.table, document)
                parts.append(vectors)
            await store.optimize(writer.table)
        return runtime.knowledge, np.concatenate(parts)

    async def bench_retrieval(self, base: KnowledgeInfo, row: Row) -> None:
        services, tenant_id = self._world.services, self._client.tenant_id
        times = []
        for number in range(_QUERIES + _WARM_UP):
            query = self.write_query()
            started = time.perf_counter()
            passages = await retrieval.search(services, tenant_id, base, query, 5, only_public=True)
            if number >= _WARM_UP:
                times.append((time.perf_counter() - started) * 1000)
            if not passages:
                raise RuntimeError(f"nothing was found for {query}")
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        row("retrieval from 100,000 chunks, p95", f"{p95:.1f} ms", f"p50 {p50:.1f}", "", "≤ 30 ms",
            holds=p95 <= 30)  # fmt: skip

    async def bench_recall(self, base: KnowledgeInfo, vectors: Any, row: Row) -> None:
        """Compares the vector half with exact search, also for other factors of refinement."""
        queries = [self.write_query() for _ in range(_QUERIES)]
        questions = TokenTable().embed(queries)
        similarities = questions @ vectors.T
        exact = np.argpartition(-similarities, 5, axis=1)[:, :5]
        used = vector_index.REFINE_FACTOR
        try:
            for factor in (used, *_REFINE_FACTORS):
                vector_index.REFINE_FACTOR = factor
                recall, p95 = await self._recall(base, queries, questions, exact)
                is_used = factor == used
                row(f"  recall@5, {factor} times the rows compared", f"{recall:.1%}", "exact",
                    f"{p95:.1f} ms", "≥ 99 %" if is_used else "none",
                    holds=recall >= 0.99 or not is_used)  # fmt: skip
        finally:
            vector_index.REFINE_FACTOR = used

    async def _recall(
        self, base: KnowledgeInfo, queries: list[str], questions: Any, exact: Any
    ) -> tuple[float, float]:
        store, table = (
            self._world.services.get(ChunkStore),
            TableRef(base.agent_id, base.generation),
        )
        hits, times = 0, []
        for text, vector, best in zip(queries, questions, exact, strict=True):
            request = SearchRequest(
                table=table, revision=base.revision, text=text, vector=vector.tolist(), limit=20
            )
            started = time.perf_counter()
            matches = await store.search(request)
            times.append((time.perf_counter() - started) * 1000)
            positions = {
                int(chunk.document_id.removeprefix("doc_")) * _DOCUMENT_CHUNKS + chunk.position
                for chunk, _ in matches.by_vector[:5]
                if chunk.document_name == "bench"
            }
            hits += len(positions & set(best.tolist()))
        return hits / (5 * len(queries)), statistics.quantiles(times, n=20)[-1]

    # Chat

    async def bench_chat(self, with_documents: str, without: str, row: Row) -> None:
        times: dict[str, list[float]] = {with_documents: [], without: []}
        async with aiohttp.ClientSession() as http:
            for number in range(_TURNS + _WARM_UP):
                for agent_id, values in times.items():
                    milliseconds, sources = await self._time_turn(http, agent_id)
                    if bool(sources) != (agent_id == with_documents):
                        raise RuntimeError(f"{sources} sources")
                    if number >= _WARM_UP:
                        values.append(milliseconds)
        ours, bare = (statistics.median(values) for values in times.values())
        row("chat turn with retrieval, p50", f"{ours:.1f} ms", f"{bare:.1f} ms",
            f"{ours - bare:+.1f} ms", "≤ 15 ms", holds=ours - bare <= 15)  # fmt: skip

    async def _time_turn(self, http: aiohttp.ClientSession, agent_id: str) -> tuple[float, int]:
        url = f"http://127.0.0.1:{self._port}/api/v1/agents/{agent_id}/chat"
        headers = {"Authorization": f"Bearer {self._client.token}"}
        body = {"message": self.write_query()}
        started = time.perf_counter()
        async with http.post(url, json=body, headers=headers) as response:
            reply = await response.json()
        milliseconds = (time.perf_counter() - started) * 1000
        if response.status != 200:
            raise RuntimeError(f"the chat failed: {reply}")
        return milliseconds, len(reply["sources"])


async def bench(world: World, ports: dict[str, int], web_pid: int, row: Row) -> None:
    """`web_pid` is the process at `ports["knowledge"]`, which has not searched yet."""
    process = psutil.Process(web_pid)
    idle = process.memory_info().rss / _MIB
    row("web process before a retrieval", f"{idle:.0f} MiB", "", "", "≤ 200 MiB",
        holds=idle <= 200)  # fmt: skip
    await bench_quality(row)
    library = Library(world, await world.user("tenant_admin"), ports["knowledge"])
    await library.add_key(ports["stub"])
    await library.bench_ingestion(row)
    await library.bench_upload(row)
    with_documents, without = await library.create_agent(), await library.create_agent()
    base, vectors = await library.fill(with_documents)
    await library.bench_retrieval(base, row)
    await library.bench_recall(base, vectors, row)
    await library.bench_chat(with_documents, without, row)
    used = process.memory_info().rss / _MIB
    row("web process after retrievals", f"{used:.0f} MiB", f"{idle:.0f} MiB", "", "none",
        holds=True)  # fmt: skip
    await bench_parse_memory(row)
