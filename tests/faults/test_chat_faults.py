"""Asynchronous chat while workers, web processes and stores are killed or stopped."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import httpx
import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.http_clients import open_client
from tests.lengths import rounds
from tests.model_server import ModelServer, Reply
from tests.preloaded import PreloadedProcess
from tests.processes import Processes
from tests.running_worker import run_worker
from tests.scripted_agents import Talker, talker
from tests.stores import Stores
from tests.world import World

WORKER = """
import os, sys
from app import settings
from workers import main
main.GRACE_SECONDS = float(sys.argv[1])
main.CONCURRENCY["chat"] = int(sys.argv[2])
main.main(settings.load(os.environ), ["chat"])
"""
# The web tier with a shutdown time of one second for open streams.
WEB = """
import sys, uvicorn
run = uvicorn.run
uvicorn.run = lambda *args, **more: run(*args, **{**more, "timeout_graceful_shutdown": 1})
from app import cli
sys.argv = ["parley", "serve"]
cli.main()
"""

# The time in which a worker process starts and sends its first request, on a busy machine.
START_SECONDS = 60
# How many jobs a worker runs at a time.
SLOTS = rounds(6, 32)

pytestmark = pytest.mark.timeout(120)


class Workers(Processes):
    """Worker processes for the chat queue, and web processes. A worker that is neither killed nor
    stopped runs in the test process (`run_worker`).
    """

    def start(self, grace_seconds: float = 1) -> PreloadedProcess:
        return self.python("-c", WORKER, str(grace_seconds), str(SLOTS))

    def start_web(self) -> PreloadedProcess:
        return self.python("-c", WEB)


@pytest.fixture
async def talk(own_world: World, models: ModelServer) -> Talker:
    return await talker(own_world, models)


@pytest.fixture
def workers(own_stores: Stores) -> Iterator[Workers]:
    with closing(Workers(own_stores.settings)) as workers:
        yield workers


async def _fetch_row(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(sql, *args)


async def _start_job(talk: Talker, message: str = "Hi") -> dict[str, Any]:
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": message})
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


async def _wait_for_end(talk: Talker, job: dict[str, Any]) -> dict[str, Any]:
    """Returns the job once it has ended."""
    path = f"{talk.path}/chat/jobs/{job['job_id']}"
    async with asyncio.timeout(60):
        while True:
            view: dict[str, Any] = (await talk.client.get(path, params={"wait": 5})).json()
            if view["status"] not in {"pending", "running"}:
                return view


async def _count_effects(services: Services, talk: Talker, job: dict[str, Any]) -> dict[str, int]:
    """Returns how many rows of each kind the job wrote."""
    row = await _fetch_row(
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


async def test_jobs_whose_worker_is_killed_have_one_reply(
    talk: Talker, own_stores: Stores, own_services: Services, workers: Workers
) -> None:
    """One waits for its model, the other for an agent that it has delegated a task to."""
    hold = asyncio.Event()
    talk.script(Reply(texts=["From the dead"], hold=hold), Reply(texts=["From the living"]))
    manager, helper = await _create_delegating_agent(talk, hold)
    first = workers.start()
    job, delegating = await _start_job(talk), await _start_job(manager)
    await until(lambda: len(talk.asked) == len(helper.asked) == 1, START_SECONDS)
    workers.kill(first)
    async with run_worker(own_stores.settings, "chat", slots=2):
        view, delegated = await _wait_for_end(talk, job), await _wait_for_end(manager, delegating)
    hold.set()
    assert view["status"] == delegated["status"] == "completed"
    assert view["reply"]["message"]["content"] == "From the living"
    assert await _count_effects(own_services, talk, job) == ONCE
    assert len(talk.asked) == 2
    work = await _fetch_row(
        own_services, "SELECT state, attempt FROM work WHERE ref_id = $1", job["job_id"]
    )
    assert tuple(work) == ("done", 2)
    # The conversation accepts new messages.
    await talk.say("And now?", conversation_id=job["conversation_id"])
    _check_resumed(manager, helper, delegated)
    assert await _count_effects(own_services, manager, delegating) == ONCE


async def _create_delegating_agent(talk: Talker, hold: asyncio.Event) -> tuple[Talker, Talker]:
    """Returns an agent, and the one that it delegates to, whose model holds its first reply."""
    manager, helper = await talk.agent("Manager"), await talk.agent("Helper")
    await talk.client.post(f"{manager.path}/sub-agents/attach", {"agent_id": helper.agent_id})
    helper.script(Reply(hold=hold), Reply(texts=["At 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "hours"})
    manager.script(
        Reply(texts=["Asking."], calls=[call], usage=(5, 1)),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    return manager, helper


def _check_resumed(manager: Talker, helper: Talker, view: dict[str, Any]) -> None:
    """The model is not called again for the stored round; the delegated task is repeated."""
    assert view["reply"]["message"]["content"] == "Asking.\n\nAt 9, I hear."
    [tool_call] = view["reply"]["tool_calls"]
    assert (tool_call["output"], tool_call["status"]) == ("At 9.", "completed")
    assert len(manager.asked) == 2
    assert len(helper.asked) == 2
    assert view["reply"]["usage"]["total_tokens"] == 125


async def test_no_job_is_lost_when_redis_is_flushed_before_it_runs(
    talk: Talker, own_stores: Stores, own_services: Services
) -> None:
    jobs = [await _start_job(talk, f"Number {number}") for number in range(4)]
    await own_services.redis.flushall()
    async with run_worker(own_stores.settings, "chat", slots=4):
        for job in jobs:
            assert (await _wait_for_end(talk, job))["status"] == "completed"
            assert await _count_effects(own_services, talk, job) == ONCE
    calls = Counter(request["messages"][-1]["content"] for request in talk.asked)
    assert calls == {f"Number {number}": 1 for number in range(4)}


async def test_jobs_are_accepted_and_completed_without_redis(
    talk: Talker, own_stores: Stores, own_services: Services
) -> None:
    own_stores.stop_redis()
    try:
        jobs = [await _start_job(talk) for _ in range(3)]
        async with run_worker(own_stores.settings, "chat", slots=4):
            views = [await _wait_for_end(talk, job) for job in jobs]
    finally:
        own_stores.start_redis()
    assert [view["status"] for view in views] == ["completed"] * 3
    for job in jobs:
        assert await _count_effects(own_services, talk, job) == ONCE


async def test_a_worker_that_is_stopped_finishes_a_job_within_its_grace_time(
    talk: Talker, own_services: Services, workers: Workers
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    worker = workers.start(grace_seconds=20)
    job = await _start_job(talk)
    await until(lambda: len(talk.asked) == 1, START_SECONDS)
    worker.send_signal(signal.SIGTERM)
    hold.set()
    assert (await _wait_for_end(talk, job))["status"] == "completed"
    assert await asyncio.to_thread(worker.wait, 30) == 0
    assert await _count_effects(own_services, talk, job) == ONCE
    assert len(talk.asked) == 1


async def test_a_worker_that_is_stopped_hands_a_longer_job_over(
    talk: Talker, own_stores: Stores, own_services: Services, workers: Workers
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(texts=["Too late"], hold=hold), Reply(texts=["Handed over"]))
    worker = workers.start(grace_seconds=0.2)
    job = await _start_job(talk)
    await until(lambda: len(talk.asked) == 1, START_SECONDS)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 30) == 0
    work = await _fetch_row(
        own_services,
        "SELECT state, attempt, lease_token FROM work WHERE ref_id = $1",
        job["job_id"],
    )
    # Stopping the worker does not count as an attempt.
    assert tuple(work) == ("pending", 0, None)
    async with run_worker(own_stores.settings, "chat", slots=2):
        view = await _wait_for_end(talk, job)
    hold.set()
    assert view["reply"]["message"]["content"] == "Handed over"
    assert await _count_effects(own_services, talk, job) == ONCE


async def test_a_job_completes_although_postgres_restarts_meanwhile(
    talk: Talker, own_stores: Stores, own_services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold), Reply())
    async with run_worker(own_stores.settings, "chat", slots=2):
        job = await _start_job(talk)
        await until(lambda: len(talk.asked) == 1, START_SECONDS)
        own_stores.stop_postgres()
        hold.set()
        own_stores.start_postgres()
        async with asyncio.timeout(30):
            while (await talk.client.get(talk.path)).status_code != 200:  # noqa: ASYNC110  # it starts
                await asyncio.sleep(0.05)
        assert (await _wait_for_end(talk, job))["status"] == "completed"
    assert await _count_effects(own_services, talk, job) == ONCE


def _count_requests(talkers: list[Talker]) -> Counter[tuple[str, str]]:
    """Counts the requests to the models by agent and question."""
    return Counter(
        (talk.agent_id, request["messages"][-1]["content"])
        for talk in talkers
        for request in talk.asked
    )


async def test_each_of_many_jobs_of_a_killed_worker_has_one_reply(
    talk: Talker,
    own_world: World,
    own_stores: Stores,
    own_services: Services,
    workers: Workers,
) -> None:
    """More jobs than one worker runs at a time, with each tenant below its share."""
    hold = asyncio.Event()
    talkers = [talk, await talker(own_world, talk.models)]
    for tenant in talkers:
        tenant.script(Reply(hold=hold))
    first = workers.start()
    async with run_worker(own_stores.settings, "chat", slots=SLOTS):
        jobs = [
            (tenant, await _start_job(tenant, str(number)))
            for tenant in talkers
            for number in range(SLOTS // 2 + 1)
        ]
        await until(lambda: len(_count_requests(talkers)) == len(jobs), START_SECONDS)
        workers.kill(first)
        for tenant in talkers:
            tenant.script(Reply())
        hold.set()
        for tenant, job in jobs:
            assert (await _wait_for_end(tenant, job))["status"] == "completed"
            assert await _count_effects(own_services, tenant, job) == ONCE
    assert set(_count_requests(talkers).values()) == {1, 2}


async def _is_live(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health/live")).status_code == 200
    except httpx.TransportError:
        return False


async def _read_stream(client: httpx.AsyncClient, talk: Talker, started: asyncio.Event) -> None:
    """Reads a stream to its end and sets the event at its first delta."""
    body = {"message": "Hi"}
    with suppress(httpx.TransportError):
        async with client.stream("POST", f"{talk.path}/chat/stream", json=body) as answer:
            async for line in answer.aiter_lines():
                if line == "event: content_delta":
                    started.set()


async def test_a_web_process_that_is_stopped_stores_partial_replies(
    talk: Talker, own_stores: Stores, own_services: Services, workers: Workers
) -> None:
    talk.script(Reply(texts=["word "] * 2000, delay=0.05))
    url = f"http://127.0.0.1:{own_stores.settings.port}"
    headers = {"authorization": f"Bearer {talk.client.token}"}
    web, streams = workers.start_web(), rounds(4, 120)
    limits = httpx.Limits(max_connections=None)
    async with open_client(base_url=url, headers=headers, timeout=30, limits=limits) as client:
        async with asyncio.timeout(START_SECONDS):
            while not await _is_live(client):  # noqa: ASYNC110  # it starts
                await asyncio.sleep(0.05)
        starts = [asyncio.Event() for _ in range(streams)]
        readers = [asyncio.create_task(_read_stream(client, talk, start)) for start in starts]
        await asyncio.gather(*(start.wait() for start in starts))
        web.send_signal(signal.SIGTERM)
        await asyncio.gather(*readers)
    await asyncio.to_thread(web.wait, 30)
    row = await _fetch_row(
        own_services,
        "SELECT (SELECT count(*) FROM conversation_entries WHERE agent_id = $1"
        "   AND status = 'interrupted') AS interrupted,"
        " (SELECT count(*) FROM conversations WHERE agent_id = $1"
        "   AND turn_until IS NOT NULL) AS busy",
        talk.agent_id,
    )
    assert dict(row) == {"interrupted": streams, "busy": 0}
