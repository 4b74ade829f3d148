"""Asynchronous chat: cancelling a job."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from app.services import Services
from tests.asking import refused, until
from tests.chat.job_helpers import (
    SOON_SECONDS,
    ListeningClients,
    accept_job,
    get_job,
    job_path,
    list_events,
    list_messages,
    run_job,
    run_to_end,
    while_running,
)
from tests.chat.stream_helpers import SilentModel, on_silent
from tests.model_server import Reply
from tests.talk import Talker
from workers.main import WorkerProcess


@pytest.fixture
async def worker(services: Services) -> AsyncIterator[None]:
    """A worker in this process, with its queue, its poller and its ear for cancels."""
    process = WorkerProcess(services, ["chat"])
    running = asyncio.create_task(process.run())
    yield
    process.stopped.set()
    await asyncio.wait_for(running, 40)


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
    # The question stays, and the conversation is free.
    assert await list_messages(talk, job) == [("user", "Never mind")]
    await talk.say("Something else", conversation_id=job["conversation_id"])


async def test_a_cancelled_job_is_an_event(talk: Talker) -> None:
    job = await accept_job(talk)
    await talk.client.delete(job_path(talk, job))
    [event] = await list_events(talk, "agent.chat.completed")
    assert (event["reason"], event["status"]) == ("job", "cancelled")
    assert event["job_id"] == job["job_id"]
    assert event["message"] is None


async def test_a_job_is_cancelled_once(talk: Talker) -> None:
    job = await accept_job(talk)
    answers = await asyncio.gather(*(talk.client.delete(job_path(talk, job)) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused(await talk.client.delete(job_path(talk, job)), 409, "job_finished")
    assert len(await list_events(talk, "agent.chat.completed")) == 1


@pytest.mark.parametrize("status", [200, 400])
async def test_a_job_that_is_over_cannot_be_cancelled(
    talk: Talker, services: Services, status: int
) -> None:
    talk.script(Reply(status=status))
    job = await run_to_end(talk, services)
    refused(await talk.client.delete(job_path(talk, job)), 409, "job_finished")
    assert await get_job(talk, job) == job


async def test_a_cancelled_job_gets_no_reply_from_a_worker_that_did_not_hear_of_it(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    async with while_running(talk, services, job):
        assert (await talk.client.delete(job_path(talk, job))).status_code == 200
    assert (await get_job(talk, job))["status"] == "cancelled"
    assert await list_messages(talk, job) == [("user", "Hi")]
    assert len(await list_events(talk, "agent.chat.completed")) == 1


async def test_a_worker_of_a_cancelled_job_leaves_the_next_turn_alone(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    async with while_running(talk, services, job, Reply(texts=["The next"])):
        await talk.client.delete(job_path(talk, job))
        await talk.say("Next", conversation_id=job["conversation_id"])
    assert await list_messages(talk, job) == [
        ("user", "Hi"),
        ("user", "Next"),
        ("assistant", "The next"),
    ]


async def test_who_waits_is_told_of_a_cancel(talk: Talker, services: Services) -> None:
    job, ears = await accept_job(talk), await ListeningClients.counted(services)
    waiting = asyncio.create_task(get_job(talk, job, wait=30))
    await ears.are_open(1)
    await talk.client.delete(job_path(talk, job))
    ended = time.monotonic()
    assert (await waiting)["status"] == "cancelled"
    assert time.monotonic() - ended < SOON_SECONDS


async def test_cancelling_a_running_job_hangs_up_on_its_model(
    talk: Talker, silent: SilentModel, worker: None
) -> None:
    mine = await on_silent(talk, silent)
    job = await accept_job(mine)
    await until(lambda: silent.open == 1)
    answer = await mine.client.delete(job_path(mine, job))
    assert answer.json()["status"] == "cancelled"
    await until(lambda: silent.open == 0, 2)
    refused(await mine.client.delete(job_path(mine, job)), 409, "job_finished")
    # Free at once: with a model that speaks, the next turn is answered.
    await mine.client.put(mine.path, {"primary_model": f"scripted/{talk.model}"})
    again = await mine.say("Next", conversation_id=job["conversation_id"])
    assert again["message"]["content"] == "Hello there"
    assert silent.asked == 1


async def test_a_worker_takes_a_job_as_soon_as_it_is_accepted(talk: Talker, worker: None) -> None:
    job = await accept_job(talk)
    started = time.monotonic()
    assert (await get_job(talk, job, wait=30))["status"] == "completed"
    assert time.monotonic() - started < 2
