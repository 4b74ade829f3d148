"""Asynchronous chat with real workers that are killed or stopped in the middle of an answer."""

import asyncio
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from litestar import Litestar

from app import bootstrap
from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.model_server import ModelServer, Reply
from tests.ports import free_port
from tests.processes import Processes
from tests.stores import Stores
from tests.talk import Talker, talker
from tests.world import World

ROOT = Path(__file__).parent.parent.parent
WORKER = """
import os, sys
from app import settings
from workers import main
main.GRACE_SECONDS = float(sys.argv[1])
main.main(settings.load(os.environ), ["chat"])
"""
# The web tier as it is, but with a second of grace for streams that still run.
WEB = """
import sys, uvicorn
run = uvicorn.run
uvicorn.run = lambda *args, **more: run(*args, **{**more, "timeout_graceful_shutdown": 1})
from app import cli
sys.argv = ["parley", "serve"]
cli.main()
"""

pytestmark = pytest.mark.timeout(120)


class Workers(Processes):
    """Worker processes for chat alone, and a web tier."""

    def start(self, grace_seconds: float = 1) -> subprocess.Popen[bytes]:
        return self.python("-c", WORKER, str(grace_seconds))

    def start_web(self) -> subprocess.Popen[bytes]:
        return self.python("-c", WEB)


@pytest.fixture(scope="module")
async def own_stores() -> AsyncIterator[Stores]:
    made = Stores()
    made.settings = msgspec.structs.replace(made.settings, lease_seconds=2.0, port=free_port())
    try:
        await made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
async def own_app(own_stores: Stores) -> AsyncIterator[Litestar]:
    made = create_app(own_stores.settings)
    services: Services = made.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    yield made
    await services.close()


@pytest.fixture
def own_parts(own_app: Litestar) -> Services:
    found: Services = own_app.state.services
    return found


@pytest.fixture
async def talk(own_app: Litestar, models: ModelServer) -> Talker:
    return await talker(World(own_app), models)


@pytest.fixture
def workers(own_stores: Stores) -> Iterator[Workers]:
    made = Workers(own_stores.settings)
    yield made
    made.close()


async def _row(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(sql, *args)


async def _accept(talk: Talker, message: str = "Hi") -> dict[str, Any]:
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": message})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _ended(talk: Talker, job: dict[str, Any]) -> dict[str, Any]:
    """The job once it is over."""
    path = f"{talk.path}/chat/jobs/{job['job_id']}"
    async with asyncio.timeout(60):
        while True:
            view: dict[str, Any] = (await talk.client.get(path, params={"wait": 5})).json()
            if view["status"] not in {"pending", "running"}:
                return view


async def _effects(services: Services, talk: Talker, job: dict[str, Any]) -> dict[str, int]:
    """How often the job left each of its marks."""
    row = await _row(
        services,
        "SELECT (SELECT count(*) FROM conversation_entries WHERE conversation_id = $1"
        "   AND type = 'message' AND role = 'assistant') AS replies,"
        " (SELECT count(*) FROM conversation_entries WHERE conversation_id = $1"
        "   AND type = 'message' AND role = 'user') AS questions,"
        " (SELECT count(*) FROM usage WHERE conversation_id = $1 AND model = $3) AS usage,"
        " (SELECT count(*) FROM event_log WHERE type = 'agent.chat.completed'"
        "   AND data->>'job_id' = $2) AS completed,"
        " (SELECT count(*) FROM event_log WHERE type = 'agent.chat.message'"
        "   AND data->>'conversation_id' = $1) AS message_events",
        job["conversation_id"],
        job["job_id"],
        f"scripted/{talk.model}",
    )
    return dict(row)


ONCE = {"replies": 1, "questions": 1, "usage": 1, "completed": 1, "message_events": 2}


async def test_a_worker_killed_in_the_middle_of_an_answer_gives_one_answer(
    talk: Talker, own_parts: Services, workers: Workers
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(texts=["From the dead"], hold=hold), Reply(texts=["From the living"]))
    first = workers.start()
    job = await _accept(talk)
    await until(lambda: len(talk.asked) == 1)
    workers.kill(first)
    workers.start()
    view = await _ended(talk, job)
    hold.set()
    assert view["status"] == "completed"
    assert view["reply"]["message"]["content"] == "From the living"
    assert await _effects(own_parts, talk, job) == ONCE
    assert len(talk.asked) == 2
    work = await _row(own_parts, "SELECT state, attempt FROM work WHERE ref_id = $1", job["job_id"])
    assert tuple(work) == ("done", 2)
    # The conversation is free.
    await talk.say("And now?", conversation_id=job["conversation_id"])


async def test_a_flushed_redis_between_accepting_and_running_loses_nothing(
    talk: Talker, own_parts: Services, workers: Workers
) -> None:
    jobs = [await _accept(talk, f"Number {number}") for number in range(10)]
    await own_parts.redis.flushall()
    workers.start()
    for job in jobs:
        assert (await _ended(talk, job))["status"] == "completed"
        assert await _effects(own_parts, talk, job) == ONCE
    asked = Counter(request["messages"][-1]["content"] for request in talk.asked)
    assert asked == {f"Number {number}": 1 for number in range(10)}


async def test_without_redis_jobs_are_accepted_and_answered_all_the_same(
    talk: Talker, own_stores: Stores, own_parts: Services, workers: Workers
) -> None:
    own_stores.stop_redis()
    try:
        jobs = [await _accept(talk) for _ in range(3)]
        workers.start()
        views = [await _ended(talk, job) for job in jobs]
    finally:
        own_stores.start_redis()
    assert [view["status"] for view in views] == ["completed"] * 3
    for job in jobs:
        assert await _effects(own_parts, talk, job) == ONCE


async def test_a_worker_told_to_stop_finishes_an_answer_that_comes_in_time(
    talk: Talker, own_parts: Services, workers: Workers
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    worker = workers.start(grace_seconds=20)
    job = await _accept(talk)
    await until(lambda: len(talk.asked) == 1)
    worker.send_signal(signal.SIGTERM)
    hold.set()
    assert (await _ended(talk, job))["status"] == "completed"
    assert await asyncio.to_thread(worker.wait, 30) == 0
    assert await _effects(own_parts, talk, job) == ONCE
    assert len(talk.asked) == 1


async def test_a_worker_told_to_stop_hands_over_an_answer_that_takes_longer(
    talk: Talker, own_parts: Services, workers: Workers
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(texts=["Too late"], hold=hold), Reply(texts=["Handed over"]))
    worker = workers.start(grace_seconds=0.2)
    job = await _accept(talk)
    await until(lambda: len(talk.asked) == 1)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 30) == 0
    work = await _row(
        own_parts, "SELECT state, attempt, lease_token FROM work WHERE ref_id = $1", job["job_id"]
    )
    # The worker stopped, the work did not: no attempt is used up.
    assert tuple(work) == ("pending", 0, None)
    workers.start()
    view = await _ended(talk, job)
    hold.set()
    assert view["reply"]["message"]["content"] == "Handed over"
    assert await _effects(own_parts, talk, job) == ONCE


async def test_a_crash_while_a_task_is_delegated_goes_on_from_there(
    talk: Talker, own_parts: Services, workers: Workers
) -> None:
    helper = await talk.agent("Helper")
    await talk.client.post(f"{talk.path}/sub-agents/attach", {"agent_id": helper.agent_id})
    hold = asyncio.Event()
    helper.script(Reply(hold=hold), Reply(texts=["At 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(
        Reply(texts=["Asking."], calls=[call], usage=(5, 1)),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    first = workers.start()
    job = await _accept(talk)
    await until(lambda: len(helper.asked) == 1)
    workers.kill(first)
    workers.start()
    view = await _ended(talk, job)
    hold.set()
    assert view["status"] == "completed"
    assert view["reply"]["message"]["content"] == "Asking.\n\nAt 9, I hear."
    [made] = view["reply"]["tool_calls"]
    assert (made["output"], made["status"]) == ("At 9.", "completed")
    # The round that was kept is not asked for again; its task, which does no harm, is.
    assert len(talk.asked) == 2
    assert len(helper.asked) == 2
    assert view["reply"]["usage"]["total_tokens"] == 125
    assert await _effects(own_parts, talk, job) == ONCE


async def test_a_postgres_that_restarts_in_the_middle_of_an_answer_loses_nothing(
    talk: Talker, own_stores: Stores, own_parts: Services, workers: Workers
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold), Reply())
    workers.start()
    job = await _accept(talk)
    await until(lambda: len(talk.asked) == 1)
    own_stores.stop_postgres()
    hold.set()
    own_stores.start_postgres()
    async with asyncio.timeout(30):
        while (await talk.client.get(talk.path)).status_code != 200:  # noqa: ASYNC110  # it starts
            await asyncio.sleep(0.05)
    assert (await _ended(talk, job))["status"] == "completed"
    assert await _effects(own_parts, talk, job) == ONCE


async def test_many_jobs_of_a_worker_that_dies_are_each_answered_once(
    talk: Talker, own_app: Litestar, own_parts: Services, workers: Workers
) -> None:
    """More than one worker takes at a time, of tenants who each stay below their share."""
    hold = asyncio.Event()
    talkers = [talk, await talker(World(own_app), talk.models)]
    for one in talkers:
        one.script(Reply(hold=hold))
    first = workers.start()
    workers.start()
    jobs = [(one, await _accept(one, str(number))) for one in talkers for number in range(20)]
    await until(lambda: sum(len(one.asked) for one in talkers) == 40)
    workers.kill(first)
    for one in talkers:
        one.script(Reply())
    hold.set()
    for one, job in jobs:
        assert (await _ended(one, job))["status"] == "completed"
        assert await _effects(own_parts, one, job) == ONCE
    asked = Counter(
        (one.agent_id, request["messages"][-1]["content"])
        for one in talkers
        for request in one.asked
    )
    assert len(asked) == 40
    assert set(asked.values()) == {1, 2}


async def _answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health/live")).status_code == 200
    except httpx.TransportError:
        return False


async def _read_on(client: httpx.AsyncClient, talk: Talker, begun: asyncio.Event) -> None:
    """Read a stream for as long as there is something, and tell when its first word came."""
    body = {"message": "Hi"}
    with suppress(httpx.TransportError):
        async with client.stream("POST", f"{talk.path}/chat/stream", json=body) as answer:
            async for line in answer.aiter_lines():
                if line == "event: content_delta":
                    begun.set()


async def test_a_web_tier_that_is_stopped_keeps_what_was_said_until_then(
    talk: Talker, own_stores: Stores, own_parts: Services, workers: Workers
) -> None:
    talk.script(Reply(texts=["word "] * 2000, delay=0.05))
    url = f"http://127.0.0.1:{own_stores.settings.port}"
    headers = {"authorization": f"Bearer {talk.client.token}"}
    web, streams = workers.start_web(), 120
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=30, limits=limits
    ) as client:
        async with asyncio.timeout(30):
            while not await _answers(client):  # noqa: ASYNC110  # it starts
                await asyncio.sleep(0.05)
        begun = [asyncio.Event() for _ in range(streams)]
        reading = [asyncio.create_task(_read_on(client, talk, one)) for one in begun]
        await asyncio.gather(*(one.wait() for one in begun))
        web.send_signal(signal.SIGTERM)
        await asyncio.gather(*reading)
    await asyncio.to_thread(web.wait, 30)
    row = await _row(
        own_parts,
        "SELECT (SELECT count(*) FROM conversation_entries WHERE agent_id = $1"
        "   AND status = 'interrupted') AS kept,"
        " (SELECT count(*) FROM conversations WHERE agent_id = $1"
        "   AND turn_until IS NOT NULL) AS held",
        talk.agent_id,
    )
    assert dict(row) == {"kept": streams, "held": 0}
