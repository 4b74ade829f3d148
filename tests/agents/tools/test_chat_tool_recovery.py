"""A tool call in a conversation runs once, also when workers die."""

import asyncio

import pytest
from aiohttp import web

from app.domain.agents.tools import executions
from app.domain.platform.events.service import emit_dead
from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.tools.chat_tools import attach_tool, list_executions
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site
from tests.assertions import until
from tests.model_server import Reply
from tests.scripted_agents import Talker
from workers.main import WorkerProcess
from workers.runner import Runner


@pytest.fixture
def tools(talk: Talker) -> ToolClient:
    return ToolClient(talk.client)


async def _start_chat_job(talk: Talker, services: Services) -> tuple[str, str]:
    """Returns the path of a new job and the id of its work."""
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Order it"})
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT work_id FROM chat_jobs WHERE id = $1"
        return f"{talk.path}/chat/jobs/{job_id}", await (await tx.raw()).fetchval(sql, job_id)


async def _expire_lease(services: Services, work_id: str) -> None:
    """Lets the lease run out, as after the death of its worker."""
    sql = "UPDATE work SET lease_until = now() - interval '1 second' WHERE id = $1"
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, work_id)


async def _run_in_new_worker(services: Services, work_id: str) -> None:
    await Runner(services, on_any_dead=emit_dead).run(work_id)


async def test_a_call_runs_once_when_the_worker_of_its_chat_dies_before_the_outcome(
    talk: Talker, tools: ToolClient, site: Site, services: Services, worker: WorkerProcess
) -> None:
    release = asyncio.Event()

    async def respond_when_released(_request: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.json_response({"order": 1})

    site.handler = respond_when_released
    tool_id = await tools.create("webhook", {"url": site.url}, name="Order")
    await attach_tool(talk, tool_id)
    talk.script(Reply(texts=[], calls=[("order", {"item": 1})]), Reply(texts=["Ordered."]))
    path, work_id = await _start_chat_job(talk, services)
    first = asyncio.create_task(_run_in_new_worker(services, work_id))
    await until(lambda: site.requests)
    await _expire_lease(services, work_id)
    second = asyncio.create_task(_run_in_new_worker(services, work_id))
    release.set()
    await asyncio.gather(first, second)
    view = (await talk.client.get(path)).json()
    assert view["status"] == "completed", view
    assert view["reply"]["message"]["content"] == "Ordered."
    assert len(site.requests) == 1
    assert [record["status"] for record in await list_executions(talk, tool_id)] == ["completed"]


async def test_a_call_runs_once_when_the_worker_of_its_chat_dies_before_the_reply(
    talk: Talker, tools: ToolClient, site: Site, services: Services, worker: WorkerProcess
) -> None:
    hold = asyncio.Event()
    tool_id = await tools.create("webhook", {"url": site.url}, name="Order")
    await attach_tool(talk, tool_id)
    order = Reply(texts=[], calls=[("order", {"item": 1})])
    talk.script(order, Reply(texts=["Lost"], hold=hold), Reply(texts=["Ordered."]))
    path, work_id = await _start_chat_job(talk, services)
    first = asyncio.create_task(_run_in_new_worker(services, work_id))
    await until(lambda: len(talk.asked) == 2)
    await _expire_lease(services, work_id)
    await _run_in_new_worker(services, work_id)
    hold.set()
    await first
    view = (await talk.client.get(path)).json()
    assert view["reply"]["message"]["content"] == "Ordered."
    assert [call["status"] for call in view["reply"]["tool_calls"]] == ["completed"]
    assert len(site.requests) == 1


async def test_two_requests_with_one_call_id_are_one_run(
    talk: Talker, tools: ToolClient, site: Site, services: Services, worker: WorkerProcess
) -> None:
    tool_id, tenant_id = await tools.create("webhook", {"url": site.url}), talk.client.tenant_id
    first, second = [
        await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_one")
        for _ in range(2)
    ]
    assert first["id"] == second["id"]
    await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_two")
    assert len(site.requests) == 2


async def test_a_repeated_call_returns_its_outcome_although_the_tool_is_disabled_now(
    talk: Talker, tools: ToolClient, site: Site, services: Services, worker: WorkerProcess
) -> None:
    """A call is repeated after a crash; with another outcome the model might try another way."""
    tool_id, tenant_id = await tools.create("webhook", {"url": site.url}), talk.client.tenant_id
    first = await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_one")
    await talk.client.put(f"/v1/tools/{tool_id}", {"is_enabled": False})
    second = await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_one")
    assert (second["id"], second["status"]) == (first["id"], "completed")
    assert len(site.requests) == 1
