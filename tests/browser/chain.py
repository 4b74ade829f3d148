"""A chain of events and jobs for the trace page, inserted in another order than shown."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client

START = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
MARKUP = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='bad'</script>"

_INSERT_EVENT = """
INSERT INTO event_log (tenant_id, id, type, correlation_id, parent_id, request_id, data, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
"""
_INSERT_WORK = """
INSERT INTO work (tenant_id, id, kind, state, max_attempts, correlation_id, cause_event_id,
                  started_at, finished_at)
VALUES ($1, $2, $3, 'done', 1, $4, $5, $6, $7)
"""
_INSERT_EXECUTION = """
INSERT INTO tool_executions (tenant_id, id, tool_id, work_id, status, input, execution_time_ms,
                             correlation_id, executed_at)
VALUES ($1, $2, $3, $4, 'failed', '{}', 900, $5, $6)
"""


def _at_second(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Chain(msgspec.Struct):
    id: str
    tenant_id: str
    services: Services

    async def event(self, name: str, at: float, parent: str | None = None, **data: Any) -> str:
        event_id, payload = new_id("evt"), msgspec.json.encode(data).decode()
        request = None if parent else new_id("req")
        await self._execute(
            _INSERT_EVENT, event_id, name, self.id, parent, request, payload, _at_second(at)
        )
        return event_id

    async def job(self, kind: str, begin: float, end: float, cause: str) -> str:
        work_id = new_id("wrk")
        await self._execute(
            _INSERT_WORK, work_id, kind, self.id, cause, _at_second(begin), _at_second(end)
        )
        return work_id

    async def tool(self, tool_id: str, at: float, work_id: str) -> None:
        await self._execute(
            _INSERT_EXECUTION, new_id("exe"), tool_id, work_id, self.id, _at_second(at)
        )

    async def set_tool_status(self, status: str) -> None:
        sql = "UPDATE tool_executions SET status = $3 WHERE tenant_id = $1 AND correlation_id = $2"
        await self._execute(sql, self.id, status)

    async def _execute(self, sql: str, *args: object) -> None:
        async with self.services.db.tx(ALL_TENANTS) as tx:
            await (await tx.raw()).execute(sql, self.tenant_id, *args)


async def _create_tool(caller: Client) -> str:
    endpoints = {"a": {"method": "GET", "path": "/"}}
    body = {
        "name": MARKUP,
        "category": "custom",
        "tool_type": "rest_api",
        "config": {"base_url": "https://example.com", "endpoints": endpoints},
        "auth_type": "none",
    }
    answer = await caller.post("/v1/tools", body)
    assert answer.status_code == 201, answer.text
    tool_id: str = answer.json()["data"]["id"]
    return tool_id


async def create_chain(owner: Client, services: Services) -> Chain:
    chain = Chain(new_id("cor"), owner.tenant_id, services)
    root = await chain.event("agent.chat.message", 0, agent=MARKUP)
    late_event = await chain.event("system.test", 3, root)
    early_event = await chain.event("agent.chat.completed", 1, root)
    await chain.event("agent.updated", 2.5, early_event)
    job = await chain.job("tools.run", 1.2, 2.4, early_event)
    await chain.tool(await _create_tool(owner), 1.4, job)
    await chain.job("mail.send", 3.1, 3.5, late_event)
    return chain


# Name and depth of each row: a row follows its cause, in the order of time.
ROWS = [
    ("request agent.chat.message", 0),
    ("event agent.chat.message", 0),
    ("event agent.chat.completed", 1),
    ("job tools.run", 2),
    (f"tool {MARKUP}", 3),
    ("event agent.updated", 2),
    ("event system.test", 1),
    ("job mail.send", 2),
]
