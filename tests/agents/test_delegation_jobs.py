"""Delegation in asynchronous turns."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.delegation_scripts import add_sub_agent, build_call, reply_with_calls
from tests.model_server import Reply
from tests.talk import Talker
from workers.main import JOBS
from workers.runner import Runner


class AsyncJobs(msgspec.Struct):
    """Asynchronous turns of one agent, run in this process instead of by a worker."""

    talk: Talker
    services: Services

    async def accept(self) -> str:
        path = f"{self.talk.path}/chat/async"
        answer = await self.talk.client.post(path, {"message": "Hello"})
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["job_id"]
        return job_id

    async def attempt(self, job_id: str) -> None:
        async with self.services.db.tx(ALL_TENANTS) as tx:
            sql = "UPDATE work SET run_at = now() WHERE ref_id = $1 RETURNING id"
            work_id = await (await tx.raw()).fetchval(sql, job_id)
        # In its own task, since a runner sets the trace of its context.
        await asyncio.create_task(Runner(self.services, JOBS).run(work_id))

    async def job(self, job_id: str) -> dict[str, Any]:
        job = (await self.talk.client.get(f"{self.talk.path}/chat/jobs/{job_id}")).json()
        assert isinstance(job, dict)
        return job


@pytest.fixture
async def async_jobs(talk: Talker, services: Services) -> AsyncIterator[AsyncJobs]:
    yield AsyncJobs(talk, services)
    async with services.db.tx(ALL_TENANTS) as tx:
        sql = "DELETE FROM work WHERE tenant_id = $1"
        await (await tx.raw()).execute(sql, talk.client.tenant_id)


# The wait is so long that the gateway leaves the retry to the next attempt.
BUSY_REPLY = Reply(status=429, headers={"Retry-After": "30"})


async def test_an_asynchronous_turn_delegates(async_jobs: AsyncJobs) -> None:
    talk = async_jobs.talk
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."], usage=(300, 30)))
    talk.script(
        reply_with_calls(build_call("kid"), usage=(10, 1)), Reply(texts=["Fine."], usage=(20, 2))
    )
    job_id = await async_jobs.accept()
    await async_jobs.attempt(job_id)
    job = await async_jobs.job(job_id)
    assert job["status"] == "completed"
    assert job["reply"]["message"]["content"] == "Fine."
    assert [call["output"] for call in job["reply"]["tool_calls"]] == ["Done."]
    assert job["reply"]["usage"]["total_tokens"] == 363


async def test_a_second_attempt_continues_after_the_calls_of_the_first(
    async_jobs: AsyncJobs,
) -> None:
    talk = async_jobs.talk
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."]))
    talk.script(
        reply_with_calls(build_call("kid"), texts=["Wait."]), BUSY_REPLY, Reply(texts=["Fine."])
    )
    job_id = await async_jobs.accept()
    await async_jobs.attempt(job_id)
    assert (await async_jobs.job(job_id))["status"] == "running"
    await async_jobs.attempt(job_id)
    job = await async_jobs.job(job_id)
    assert job["reply"]["message"]["content"] == "Wait.\n\nFine."
    assert [call["output"] for call in job["reply"]["tool_calls"]] == ["Done."]
    assert len(child.asked) == 1


async def test_a_second_attempt_counts_the_tokens_of_the_first_attempts_children(
    async_jobs: AsyncJobs,
) -> None:
    talk = async_jobs.talk
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(usage=(300, 30)))
    talk.script(
        reply_with_calls(build_call("kid"), usage=(10, 1)), BUSY_REPLY, Reply(usage=(20, 2))
    )
    job_id = await async_jobs.accept()
    for _ in range(2):
        await async_jobs.attempt(job_id)
    job = await async_jobs.job(job_id)
    assert job["reply"]["usage"]["total_tokens"] == 363


async def test_a_second_attempt_has_the_calls_of_the_children(
    async_jobs: AsyncJobs,
) -> None:
    talk = async_jobs.talk
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("grandkid")), Reply())
    talk.script(reply_with_calls(build_call("kid")), BUSY_REPLY, Reply())
    job_id = await async_jobs.accept()
    for _ in range(2):
        await async_jobs.attempt(job_id)
    calls = (await async_jobs.job(job_id))["reply"]["tool_calls"]
    assert [call["tool"] for call in calls] == ["Kid", "Grandkid"]
