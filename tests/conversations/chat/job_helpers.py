"""Asynchronous turns, run in this process instead of by a worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.domain.platform.events.service import emit_dead
from app.services import Services
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import list_messages
from tests.conversations.chat.database import execute, fetch_value
from tests.model_server import Reply
from tests.scripted_agents import Talker
from workers.runner import Runner

# `work.wait` reads the row every two seconds; a shorter wait ended by a message over Redis.
SOON_SECONDS = 1.5
RETRY_AT_ONCE = {"Retry-After": "0"}
EXPIRE_LEASE = "UPDATE work SET lease_until = now() - interval '1 second' WHERE ref_id = $1"


async def accept_job(talk: Talker, message: str = "Hi", **more: Any) -> dict[str, Any]:
    caller = more.pop("caller", talk.client)
    answer = await caller.post(f"{talk.path}/chat/async", {"message": message, **more})
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


def job_path(talk: Talker, job: dict[str, Any]) -> str:
    return f"{talk.path}/chat/jobs/{job['job_id']}"


async def get_job(talk: Talker, job: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = await talk.client.get(job_path(talk, job), params=params)
    assert answer.status_code == 200, answer.text
    view: dict[str, Any] = answer.json()
    return view


async def find_work_id(services: Services, job: dict[str, Any]) -> str:
    sql = "SELECT work_id FROM chat_jobs WHERE id = $1"
    work_id: str = await fetch_value(services, sql, job["job_id"])
    return work_id


def create_runner(services: Services, **options: Any) -> Runner:
    return Runner(services, on_any_dead=emit_dead, **options)


async def run_job(services: Services, job: dict[str, Any]) -> None:
    """Runs one attempt of the job, like a worker."""
    work_id = await find_work_id(services, job)
    # In its own task, since a runner sets the trace of its context.
    await asyncio.create_task(create_runner(services).run(work_id))


async def run_next_attempt(services: Services, job: dict[str, Any]) -> None:
    """Runs the next attempt without the delay before it."""
    await execute(services, "UPDATE work SET run_at = now() WHERE ref_id = $1", job["job_id"])
    await run_job(services, job)


async def run_new_job(
    talk: Talker, services: Services, message: str = "Hi", **more: Any
) -> dict[str, Any]:
    """Accepts a job, runs one attempt of it and returns its view."""
    job = await accept_job(talk, message, **more)
    await run_job(services, job)
    return await get_job(talk, job)


async def list_job_messages(talk: Talker, job: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns role and content of the messages of the job's conversation."""
    messages = await list_messages(talk, job["conversation_id"])
    return [(item["role"], item["content"]) for item in messages]


@asynccontextmanager
async def pause_job(
    talk: Talker, services: Services, job: dict[str, Any], *next_replies: Reply
) -> AsyncIterator[None]:
    """Runs the job, and pauses it at the request to its model while the block runs."""
    requests_before, hold = len(talk.asked), asyncio.Event()
    talk.script(Reply(hold=hold), *(next_replies or (Reply(),)))
    run = asyncio.create_task(run_job(services, job))
    try:
        await until(lambda: len(talk.asked) > requests_before)
        yield
    finally:
        hold.set()
        await run


class RedisWaiters:
    """Counts the clients that block on Redis, in addition to those at the start."""

    def __init__(self, services: Services, at_start: int) -> None:
        self._services = services
        self._at_start = at_start

    @classmethod
    async def create(cls, services: Services) -> "RedisWaiters":
        return cls(services, await cls(services, 0).count())

    async def count(self) -> int:
        info = await self._services.redis.info("clients")
        return int(info["blocked_clients"]) - self._at_start

    async def wait_for(self, number: int) -> None:
        async with asyncio.timeout(10):
            while await self.count() != number:  # noqa: ASYNC110  # Redis counts them
                await asyncio.sleep(0.01)
