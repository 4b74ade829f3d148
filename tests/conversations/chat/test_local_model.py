"""Chat with the local model, which few callers can use at a time; the scripted server plays it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec
import pytest
from litestar import Litestar

from app import container
from app.domain.agents.llm.gateway import LOCAL_MODEL
from app.domain.agents.llm.protocol import QueueLimits
from app.domain.conversations.chat import turn
from app.kit.ids import new_id
from app.services import Services
from app.settings import Settings
from tests.agents.llm.local_model import announce_local_model, wait_for_tickets
from tests.assertions import refused, until
from tests.conversations.chat.database import execute, fetch_rows
from tests.conversations.chat.job_helpers import accept_job, get_job, run_job, run_next_attempt
from tests.conversations.embed.factories import create_embed_key
from tests.http_clients import open_client
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, names_of, talker
from tests.server import Server
from tests.stores import Stores
from tests.world import World


@pytest.fixture(scope="module")
def settings(stores: Stores, app: Litestar) -> Settings:
    del app
    return msgspec.structs.replace(stores.settings, local_model=True)


@pytest.fixture(scope="module")
def local_server(settings: Settings) -> Iterator[Server]:
    server = Server(settings)
    try:
        server.wait()
        yield server
    finally:
        server.close()


class Caller(msgspec.Struct):
    """A tenant's agent with the local model, and its visitors' key."""

    talk: Talker
    server: Server
    key: str

    async def post(self, path: str, body: dict[str, Any], token: str) -> httpx.Response:
        async with open_client(base_url=self.server.url, timeout=30) as client:
            headers = {"authorization": f"Bearer {token}"}
            return await client.post(path, json=body, headers=headers)

    async def chat(self, path: str = "", **more: Any) -> httpx.Response:
        token = self.talk.client.token or ""
        return await self.post(f"{self.talk.path}/chat{path}", {"message": "Hi", **more}, token)

    async def visit(self) -> httpx.Response:
        path = f"/api/v1/public/agents/{self.talk.agent_id}/chat"
        return await self.post(path, {"session_id": new_id("visit"), "message": "Hi"}, self.key)

    async def complete(self, token: str | None = None, **more: Any) -> httpx.Response:
        messages = [{"role": "user", "content": "Hi"}]
        body = {"model": self.talk.agent_id, "messages": messages, **more}
        return await self.post("/v1/chat/completions", body, token or self.talk.client.token or "")

    @asynccontextmanager
    async def stream(self, path: str, body: dict[str, Any], token: str) -> AsyncIterator[list[str]]:
        """Yields the lines of a stream, which are added as they arrive. Leaves at the end."""
        lines: list[str] = []

        async def read() -> None:
            headers = {"authorization": f"Bearer {token}"}
            async with (
                open_client(base_url=self.server.url, timeout=30) as client,
                client.stream("POST", path, json=body, headers=headers) as answer,
            ):
                async for line in answer.aiter_lines():
                    lines.append(line)  # noqa: PERF401  # a comprehension would show them at the end

        reading = asyncio.create_task(read())
        try:
            yield lines
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


class Local(msgspec.Struct):
    """The local model with one slot, which is taken until `hold` is set."""

    models: ModelServer
    world: World
    server: Server
    hold: asyncio.Event
    tasks: list[asyncio.Task[Any]] = []

    @property
    def asked(self) -> list[dict[str, Any]]:
        return self.models.asked(LOCAL_MODEL)

    async def caller(self, **fields: Any) -> Caller:
        talk = await talker(self.world, self.models, primary_model=LOCAL_MODEL, **fields)
        key = await create_embed_key(talk.client, talk.agent_id)
        return Caller(talk, self.server, key["api_key"])

    def start(self, request: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(request)
        self.tasks.append(task)
        return task

    async def occupy(self) -> None:
        """Takes the slot."""
        self.start((await self.caller()).chat())
        await until(lambda: self.asked)


@pytest.fixture
async def local(
    models: ModelServer, world: World, local_server: Server, services: Services
) -> AsyncIterator[Local]:
    local = Local(models, world, local_server, asyncio.Event())
    models.requests.clear()
    models.script(LOCAL_MODEL, Reply(texts=["Done"], hold=local.hold))
    async with announce_local_model(services, models.url, slots=1):
        yield local
        local.hold.set()
        await asyncio.gather(*local.tasks, return_exceptions=True)


async def test_a_stream_tells_its_position(local: Local) -> None:
    await local.occupy()
    caller = await local.caller()
    path, body = f"/api/v1/public/agents/{caller.talk.agent_id}/chat/stream", {"message": "Hi"}
    body["session_id"] = new_id("visit")
    async with caller.stream(path, body, caller.key) as lines:
        await until(lambda: 'data: {"position":1}' in lines)
        assert "event: message_start" in lines
        assert lines[lines.index('data: {"position":1}') - 1] == "event: queue"
        local.hold.set()
        await until(lambda: "event: message_stop" in lines)
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert names_of((name, None) for name in dict.fromkeys(names)) == [
        "message_start",
        "queue",
        "content_delta",
        "message_stop",
    ]
    assert 'data: {"position":0}' in lines


async def test_an_openai_client_gets_the_position_as_a_comment(local: Local) -> None:
    await local.occupy()
    caller = await local.caller()
    messages = [{"role": "user", "content": "Hi"}]
    body = {"model": caller.talk.agent_id, "messages": messages, "stream": True}
    async with caller.stream("/v1/chat/completions", body, caller.key) as lines:
        await until(lambda: ": queue position 1" in lines)
        # A stock client reads over it.
        stock = local.start(_read_stock(caller))
        local.hold.set()
        await until(lambda: "data: [DONE]" in lines)
        assert await stock == "Done"


async def _read_stock(caller: Caller) -> str:
    from openai import AsyncOpenAI  # noqa: PLC0415  # every test process imports this file

    async with AsyncOpenAI(base_url=f"{caller.server.url}/v1", api_key=caller.key) as client:
        stream = await client.chat.completions.create(
            model=caller.talk.agent_id,
            messages=[{"role": "user", "content": "Hi"}],
            stream=True,
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def test_a_full_queue_answers_503_with_retry_after(
    local: Local, services: Services, subtests: pytest.Subtests
) -> None:
    caller = await local.caller()
    await local.occupy()
    for _ in range(8):
        local.start(caller.chat())
    await wait_for_tickets(services, 9)
    for name, request in {
        "chat": caller.chat(),
        "chat of a visitor": caller.visit(),
        "completion": caller.complete(),
        "stream": caller.chat("/stream"),
    }.items():
        with subtests.test(name):
            answer = await request
            error = refused(answer, 503, "unavailable")
            assert "local model is busy" in error["message"]
            assert answer.headers["retry-after"] == "10"
    # Nothing of it is left.
    sql = "SELECT message_count FROM conversations WHERE agent_id = $1 AND message_count > 0"
    assert await fetch_rows(services, sql, caller.talk.agent_id) == []


async def test_a_visitor_who_leaves_frees_the_slot(local: Local, services: Services) -> None:
    """And the next one gets it, while others of the first tenant wait for longer."""
    first, second = await local.caller(), await local.caller()
    leaving = local.start(first.visit())
    await until(lambda: len(local.asked) == 1)
    waiting = local.start(first.visit())
    await wait_for_tickets(services, 2)
    local.start(second.visit())
    await wait_for_tickets(services, 3)
    waiting.cancel()
    await wait_for_tickets(services, 2)
    leaving.cancel()
    await until(lambda: len(local.asked) == 2)


async def test_answers_are_short_unless_somebody_chose_a_length(
    local: Local, subtests: pytest.Subtests
) -> None:
    local.hold.set()
    plain, chosen = await local.caller(), await local.caller(max_tokens=3000)
    brief = await local.caller(max_tokens=40)
    cases = {
        "nobody": (plain.chat(), 512),
        "a visitor asks for more": (plain.complete(plain.key, max_tokens=2000), 512),
        "a visitor asks for less": (plain.complete(plain.key, max_tokens=20), 20),
        "a user asks for more": (plain.complete(max_tokens=2000), 2000),
        "a user asks for too much": (plain.complete(max_tokens=100_000), 2048),
        "the agent": (chosen.chat(), 3000),
        "the agent, for visitors": (chosen.visit(), 3000),
        "the agent is brief": (brief.complete(max_tokens=2000), 40),
    }
    for name, (request, expected) in cases.items():
        with subtests.test(name):
            assert (await request).status_code == 200
            assert local.asked[-1]["max_tokens"] == expected


async def test_the_temperature_is_low_unless_somebody_chose_one(
    local: Local, subtests: pytest.Subtests
) -> None:
    local.hold.set()
    plain, chosen = await local.caller(), await local.caller(temperature=0.9)
    cases = {
        "nobody": (plain.chat(), 0.2),
        "a user": (plain.complete(temperature=0.5), 0.5),
        "the agent": (chosen.chat(), 0.9),
    }
    for name, (request, expected) in cases.items():
        with subtests.test(name):
            assert (await request).status_code == 200
            assert local.asked[-1]["temperature"] == expected


async def test_a_job_comes_again_while_the_model_is_busy(
    local: Local, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often: a busy model is no failed attempt."""
    monkeypatch.setattr(turn, "_JOB_QUEUE", QueueLimits(seconds=0.1, waits_for_place=True))
    await local.occupy()
    worker = container.build(settings)
    try:
        talk = await talker(local.world, local.models)
        job = await accept_job(talk)
        # The web process of the other fixtures serves no local model.
        sql = "UPDATE agents SET primary_model = $2, provider = 'local' WHERE id = $1"
        await execute(worker, sql, talk.agent_id, LOCAL_MODEL)
        await run_job(worker, job)
        for _ in range(4):
            await run_next_attempt(worker, job)
        [work] = await fetch_rows(
            worker, "SELECT state, attempt FROM work WHERE ref_id = $1", job["job_id"]
        )
        assert (work["state"], work["attempt"]) == ("pending", 0)
        local.hold.set()
        await until(local.tasks[0].done)
        await run_next_attempt(worker, job)
        assert (await get_job(talk, job))["reply"]["message"]["content"] == "Done"
    finally:
        await worker.close()
