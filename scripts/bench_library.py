"""A user whose agents have documents of sample texts, and what the bench times with them."""

import asyncio
import random
import statistics
import time
from typing import Any, Final

import aiohttp
import numpy as np

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.runtime import KnowledgeInfo
from app.domain.agents.knowledge import retrieval
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument
from app.domain.agents.knowledge.local_embedder import NAME, TokenTable
from app.domain.agents.knowledge.reader import Reader
from app.domain.agents.knowledge.writer_lease import hold_table
from tests.agents.knowledge.evaluation import read_corpus
from tests.world import Client, World

DOCUMENT_CHUNKS: Final = 20_000
QUERIES: Final = 200
_FILES = 20
_FILE_WORDS = 40_000
_CHUNK_WORDS = 50
_TOPICS = 250
_TOPIC_WORDS = 40
_QUERY_WORDS = 6
_WARM_UP = 10
_TURNS = 80
_UPLOADS = 10


class Library:
    """`port` is that of the web process that its turns are sent to."""

    def __init__(self, world: World, client: Client, port: int) -> None:
        self.world = world
        self.client = client
        self.port = port
        words = {word for _, chunks in read_corpus() for c in chunks for word in c.text.split()}
        vocabulary = sorted(word for word in words if word.isalpha())
        self._random = random.Random(7)
        self._common = self._random.sample(vocabulary, 200)
        self.topics = [self._random.sample(vocabulary, _TOPIC_WORDS) for _ in range(_TOPICS)]

    async def add_key(self, stub_port: int) -> None:
        key = {
            "provider": "stub",
            "name": "Stub",
            "api_key": "sk-stub",
            "base_url": f"http://127.0.0.1:{stub_port}/v1",
        }
        (await self.client.post("/api/v1/api-keys", key)).raise_for_status()

    async def create_agent(self) -> str:
        agent = {
            "name": "Librarian",
            "primary_model": "stub/stub",
            "system_prompt": "You are measured.",
            "status": "published",
        }
        response = await self.client.post("/api/v1/agents", agent)
        agent_id: str = response.json()["id"]
        return agent_id

    def _write(self, topic: int, words: int) -> str:
        own = self._random.choices(self.topics[topic % _TOPICS], k=words * 4 // 5)
        text = own + self._random.choices(self._common, k=words - len(own))
        self._random.shuffle(text)
        return " ".join(text)

    def write_query(self) -> str:
        topic = self._random.randrange(_TOPICS)
        return " ".join(self._random.sample(self.topics[topic], _QUERY_WORDS))

    async def train(self, agent_id: str, files: dict[str, str]) -> int:
        """Uploads files, waits until they are read, and returns the number of chunks."""
        parts = [("files", (name, text.encode())) for name, text in files.items()]
        path = f"/api/v1/agents/{agent_id}"
        (await self.client.http.post(f"{path}/train", files=parts)).raise_for_status()
        while True:
            page = (await self.client.get(f"{path}/documents?per_page=100")).json()["data"]
            if all(document["status"] == "ready" for document in page):
                return sum(document["chunk_count"] for document in page)
            if any(document["status"] == "failed" for document in page):
                raise RuntimeError(f"a document failed: {page}")
            await asyncio.sleep(0.02)

    async def measure_ingestion(self) -> tuple[float, int, float]:
        """Returns chunks a second, chunks, and seconds."""
        agent_id = await self.create_agent()
        await self.train(agent_id, {"first.md": "# One\n\nThe worker loads its libraries."})
        files = {}
        for number in range(_FILES):
            sections = [f"## Part {n}\n\n{self._write(n, 400)}." for n in range(_FILE_WORDS // 400)]
            files[f"{number}.md"] = "\n\n".join(sections)
        started = time.perf_counter()
        count = await self.train(agent_id, files)
        seconds = time.perf_counter() - started
        return count / seconds, count, seconds

    async def time_uploads(self) -> list[float]:
        """Returns the milliseconds from the upload of a page until a search finds it."""
        agent_id, times = await self.create_agent(), []
        path = f"/api/v1/agents/{agent_id}"
        for number in range(_UPLOADS):
            word = f"landmark{number}"
            part = ("files", (f"{word}.md", f"{self._write(number, 400)} {word}".encode()))
            started = time.perf_counter()
            (await self.client.http.post(f"{path}/train", files=[part])).raise_for_status()
            while not await self._finds(path, word):  # noqa: ASYNC110  # by HTTP, as a user sees it
                await asyncio.sleep(0.01)
            times.append((time.perf_counter() - started) * 1000)
        return times

    async def _finds(self, path: str, word: str) -> bool:
        response = await self.client.post(f"{path}/search", {"query": word})
        response.raise_for_status()
        return any(word in passage["content"] for passage in response.json()["data"])

    # Retrieval

    async def fill(self, agent_id: str, count: int) -> tuple[KnowledgeInfo, Any]:
        """Gives the agent so many chunks. Returns its knowledge base and the vectors."""
        await self.train(agent_id, {"first.md": "# One\n\nThe table exists."})
        services, tenant_id = self.world.services, self.client.tenant_id
        base = await self.load_base(agent_id)
        store, embedder, parts = services.get(ChunkStore), TokenTable(), []
        # The worker's upkeep of the table waits.
        async with hold_table(services, tenant_id, agent_id, 60) as writer:
            for number in range(count // DOCUMENT_CHUNKS):
                topics = range(number * DOCUMENT_CHUNKS, (number + 1) * DOCUMENT_CHUNKS)
                texts = [self._write(topic, _CHUNK_WORDS) for topic in topics]
                vectors = await asyncio.to_thread(embedder.embed, texts)
                chunks = [Chunk(text) for text in texts]
                document = EmbeddedDocument(f"doc_{number}", "bench", 1, NAME, chunks, vectors)
                await store.replace(writer.table, document)
                parts.append(vectors)
            await store.optimize(writer.table)
        return base, np.concatenate(parts)

    async def load_base(self, agent_id: str) -> KnowledgeInfo:
        services, tenant_id = self.world.services, self.client.tenant_id
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            runtime = await agents.find_runtime(tx, services.keyring, agent_id)
        if runtime.knowledge is None:
            raise RuntimeError("the agent has no knowledge base")
        return runtime.knowledge

    async def time_searches(self, base: KnowledgeInfo) -> tuple[float, float]:
        """Returns the median and the 95th percentile in milliseconds."""
        services, tenant_id = self.world.services, self.client.tenant_id
        times = []
        for number in range(QUERIES + _WARM_UP):
            query = self.write_query()
            started = time.perf_counter()
            passages = await retrieval.search(
                services, tenant_id, base, query, 5, reader=Reader.visitor()
            )
            if number >= _WARM_UP:
                times.append((time.perf_counter() - started) * 1000)
            if not passages:
                raise RuntimeError(f"nothing was found for {query}")
        return statistics.median(times), statistics.quantiles(times, n=20)[-1]

    # Chat

    async def time_turns(self, with_documents: str, without: str) -> tuple[float, float]:
        """Returns the median of the milliseconds of each agent's turns."""
        times: dict[str, list[float]] = {with_documents: [], without: []}
        quoting = dict.fromkeys(times, 0)
        async with aiohttp.ClientSession() as http:
            for number in range(_TURNS + _WARM_UP):
                for agent_id, values in times.items():
                    milliseconds, sources = await self._time_turn(http, agent_id)
                    quoting[agent_id] += bool(sources)
                    if number >= _WARM_UP:
                        values.append(milliseconds)
        if quoting[with_documents] < _TURNS / 2 or quoting[without]:
            raise RuntimeError(f"{quoting} turns quoted passages")
        return statistics.median(times[with_documents]), statistics.median(times[without])

    async def _time_turn(self, http: aiohttp.ClientSession, agent_id: str) -> tuple[float, int]:
        url = f"http://127.0.0.1:{self.port}/api/v1/agents/{agent_id}/chat"
        headers = {"Authorization": f"Bearer {self.client.token}"}
        body = {"message": self.write_query()}
        started = time.perf_counter()
        async with http.post(url, json=body, headers=headers) as response:
            reply = await response.json()
        milliseconds = (time.perf_counter() - started) * 1000
        if response.status != 200:
            raise RuntimeError(f"the chat failed: {reply}")
        return milliseconds, len(reply["sources"])
