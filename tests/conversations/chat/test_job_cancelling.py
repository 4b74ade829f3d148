"""Asynchronous chat: cancelling a job."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from app.services import Services
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import list_event_data
from tests.conversations.chat.job_helpers import (
    SOON_SECONDS,
    RedisWaiters,
    accept_job,
    get_job,
    job_path,
    list_job_messages,
    pause_job,
    run_job,
    run_new_job,
)
from tests.conversations.chat.stream_helpers import SilentModel, create_silent_agent
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World
from workers import lane_scanner
from workers.main import WorkerProcess


@pytest.fixture
async def worker(services: Services) -> AsyncIterator[None]:
    """A worker for chat within this process."""
    process = WorkerProcess(services, ["chat"])
    run = asyncio.create_task(process.run())
    yield
    process.stopped.set()
    await asyncio.wait_for(run, 40)


async def test_a_pending_job_is_cancelled_and_never_runs(talk: Talker, services: Services) -> None:
    job = await accept_job(talk, "Never mind")
    answer = await talk.client.delete(job_path(talk, job))
    assert answer.status_code == 200
    view = answer.json()
    assert view["status"] == "cancelled"
    assert view["finished_at"]
    assert "reply" not in view
    assert "error" not in view
    assert await get_job(talk, job) == view
    await run_job(services, job)
    assert talk.asked == []
    # The question is stored, and the conversation is free.
    assert await list_job_messages(talk, job) == [("user", "Never mind")]
    await talk.say("Something else", conversation_id=job["conversation_id"])


async def test_cancelling_a_job_emits_an_event(talk: Talker) -> None:
    job = await accept_job(talk)
    await talk.client.delete(job_path(talk, job))
    [event] = await list_event_data(talk, "agent.chat.completed")
    assert (event["reason"], event["status"]) == ("job", "cancelled")
    assert event["job_id"] == job["job_id"]
    assert event["message"] is None


async def test_a_job_is_cancelled_once(talk: Talker) -> None:
    job = await accept_job(talk)
    answers = await asyncio.gather(*(talk.client.delete(job_path(talk, job)) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused(await talk.client.delete(job_path(talk, job)), 409, "job_finished")
    assert len(await list_event_data(talk, "agent.chat.completed")) == 1


async def test_a_finished_job_cannot_be_cancelled(
    world: World, models: ModelServer, services: Services, subtests: pytest.Subtests
) -> None:
    for status in (200, 400):
        with subtests.test(status=status):
            talk = await talker(world, models)
            talk.script(Reply(status=status))
            job = await run_new_job(talk, services)
            refused(await talk.client.delete(job_path(talk, job)), 409, "job_finished")
            assert await get_job(talk, job) == job


async def test_a_worker_that_misses_the_cancellation_stores_no_reply(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    async with pause_job(talk, services, job):
        assert (await talk.client.delete(job_path(talk, job))).status_code == 200
    assert (await get_job(talk, job))["status"] == "cancelled"
    assert await list_job_messages(talk, job) == [("user", "Hi")]
    assert len(await list_event_data(talk, "agent.chat.completed")) == 1


async def test_the_worker_of_a_cancelled_job_does_not_affect_the_next_turn(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    async with pause_job(talk, services, job, Reply(texts=["The next"])):
        await talk.client.delete(job_path(talk, job))
        await talk.say("Next", conversation_id=job["conversation_id"])
    assert await list_job_messages(talk, job) == [
        ("user", "Hi"),
        ("user", "Next"),
        ("assistant", "The next"),
    ]


async def test_waiting_for_a_job_ends_when_it_is_cancelled(
    talk: Talker, services: Services
) -> None:
    job, waiters = await accept_job(talk), await RedisWaiters.create(services)
    request = asyncio.create_task(get_job(talk, job, wait=30))
    await waiters.wait_for(1)
    await talk.client.delete(job_path(talk, job))
    cancelled_at = time.monotonic()
    assert (await request)["status"] == "cancelled"
    assert time.monotonic() - cancelled_at < SOON_SECONDS


async def test_cancelling_a_running_job_closes_the_models_connection(
    talk: Talker, silent_model: SilentModel, worker: None
) -> None:
    agent = await create_silent_agent(talk, silent_model)
    job = await accept_job(agent)
    await until(lambda: silent_model.connections == 1)
    answer = await agent.client.delete(job_path(agent, job))
    assert answer.json()["status"] == "cancelled"
    # Sooner than the worker notices that its lease is lost.
    await until(lambda: silent_model.connections == 0, seconds=5)
    refused(await agent.client.delete(job_path(agent, job)), 409, "job_finished")
    # The conversation is free: with a model that answers, the next turn succeeds.
    await agent.client.put(agent.path, {"primary_model": f"scripted/{talk.model}"})
    reply = await agent.say("Next", conversation_id=job["conversation_id"])
    assert reply["message"]["content"] == "Hello there"
    assert silent_model.requests == 1


@pytest.fixture
def no_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its first scan, a worker scans for work only when it is woken."""
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)


async def test_a_worker_takes_a_job_as_soon_as_it_is_accepted(
    talk: Talker, no_scans: None, worker: None
) -> None:
    # The first scan may find the first job.
    for _ in range(2):
        job = await accept_job(talk)
        assert (await get_job(talk, job, wait=30))["status"] == "completed"
