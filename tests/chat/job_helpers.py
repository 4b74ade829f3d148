"""Requests and rows that the tests of asynchronous chat share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.domain.events.service import emit_dead
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.model_server import Reply
from tests.talk import Talker
from workers.main import JOBS, ON_DEAD
from workers.runner import Runner

SOON_SECONDS = 1.0


AT_ONCE = {"Retry-After": "0"}


async def run_sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def read_row(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(sql, *args)


async def accept_job(talk: Talker, message: str = "Hi", **more: Any) -> dict[str, Any]:
    who = more.pop("who", talk.client)
    answer = await who.post(f"{talk.path}/chat/async", {"message": message, **more})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def job_path(talk: Talker, job: dict[str, Any]) -> str:
    return f"{talk.path}/chat/jobs/{job['job_id']}"


async def get_job(talk: Talker, job: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = await talk.client.get(job_path(talk, job), params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def find_work_id(services: Services, job: dict[str, Any]) -> str:
    row = await read_row(services, "SELECT work_id FROM chat_jobs WHERE id = $1", job["job_id"])
    found: str = row["work_id"]
    return found


async def run_job(services: Services, job: dict[str, Any]) -> None:
    """One attempt, as a worker makes it."""
    await Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(
        await find_work_id(services, job)
    )


async def run_job_now(services: Services, job: dict[str, Any]) -> None:
    """The next attempt, without the pause before it."""
    await run_sql(services, "UPDATE work SET run_at = now() WHERE ref_id = $1", job["job_id"])
    await run_job(services, job)


async def run_to_end(
    talk: Talker, services: Services, message: str = "Hi", **more: Any
) -> dict[str, Any]:
    job = await accept_job(talk, message, **more)
    await run_job(services, job)
    return await get_job(talk, job)


async def list_messages(talk: Talker, job: dict[str, Any]) -> list[tuple[str, str]]:
    path = f"/api/v1/conversations/{job['conversation_id']}/messages"
    answer = await talk.client.get(path)
    assert answer.status_code == 200, answer.text
    return [(item["role"], item["content"]) for item in answer.json()["data"]]


async def list_events(talk: Talker, kind: str) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"event_type": kind, "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    found = [entry["data"] for entry in reversed(answer.json()["data"])]
    return [data for data in found if data["agent_id"] == talk.agent_id]


@asynccontextmanager
async def while_running(
    talk: Talker, services: Services, job: dict[str, Any], *then: Reply
) -> AsyncIterator[None]:
    """While a worker has the job and its model has not answered."""
    before, hold = len(talk.asked), asyncio.Event()
    talk.script(Reply(hold=hold), *(then or (Reply(),)))
    running = asyncio.create_task(run_job(services, job))
    try:
        await until(lambda: len(talk.asked) > before)
        yield
    finally:
        hold.set()
        await running


class ListeningClients:
    """How many wait on Redis for the end of some work, more than did before."""

    def __init__(self, services: Services, before: int) -> None:
        self._services = services
        self._before = before

    @classmethod
    async def counted(cls, services: Services) -> "ListeningClients":
        return cls(services, await cls(services, 0).open())

    async def open(self) -> int:
        info = await self._services.redis.info("clients")
        return int(info["blocked_clients"]) - self._before

    async def are_open(self, number: int) -> None:
        async with asyncio.timeout(10):
            while await self.open() != number:  # noqa: ASYNC110  # Redis counts them
                await asyncio.sleep(0.01)
