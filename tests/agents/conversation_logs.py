"""Log settings, log entries and messages of agents, and asynchronous turns."""

import asyncio
from typing import Any

import msgspec

from app.services import Services
from db.session import ALL_TENANTS
from tests.talk import Talker
from tests.world import Client
from workers.main import JOBS
from workers.runner import Runner


async def set_log_settings(talk: Talker, **settings: Any) -> None:
    answer = await talk.client.put(f"{talk.path}/log-settings", settings)
    assert answer.status_code == 200, answer.text


async def list_log_entries(talk: Talker, **params: Any) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"{talk.path}/logs", params={"per_page": 100, **params})
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["data"]
    assert answer.json()["pagination"]["total"] == len(entries)
    return entries


async def list_messages(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/api/v1/conversations/{conversation_id}/messages")
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["data"]
    return messages


async def list_event_data(caller: Client, kind: str) -> list[dict[str, Any]]:
    """Returns the data of the events of one type, the oldest first."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    entries = reversed(answer.json()["data"])
    return [entry["data"] for entry in entries if entry["type"] == kind]


async def execute(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


class AsyncTurns(msgspec.Struct):
    """Asynchronous turns, run in this process instead of by a worker."""

    talk: Talker
    services: Services

    async def run(self, message: str) -> dict[str, Any]:
        path = f"{self.talk.path}/chat"
        answer = await self.talk.client.post(f"{path}/async", {"message": message})
        assert answer.status_code == 202, answer.text
        job_id = answer.json()["job_id"]
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            sql = "SELECT id FROM work WHERE ref_id = $1"
            work_id = await (await tx.raw()).fetchval(sql, job_id)
        # In its own task, since a runner sets the trace of its context.
        await asyncio.create_task(Runner(self.services, JOBS).run(work_id))
        job: dict[str, Any] = (await self.talk.client.get(f"{path}/jobs/{job_id}")).json()
        assert job["status"] == "completed", job
        return job
