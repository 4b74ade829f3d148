"""Nodes that ask an agent."""

import asyncio
import json

from app.services import Services
from tests.agents.tools.chat_tools import attach_tool
from tests.agents.tools.execution_requests import ECHO
from tests.agents.tools.factories import ToolClient
from tests.assertions import until
from tests.automation.workflows.factories import create_workflow, start
from tests.automation.workflows.nodes.single_node import (
    cancel,
    fail_single,
    read_end,
    run_single,
    start_single,
    wait_for_row,
)
from tests.database import fetch_rows
from tests.lengths import rounds
from tests.model_server import Reply
from tests.scripted_agents import Talker
from workers.main import WorkerProcess

_JOB_WITH_STATUS = "SELECT id FROM chat_jobs WHERE agent_id = $1 AND status = $2"


async def test_the_answer_is_the_output_and_its_usage_belongs_to_the_workflow(
    talk: Talker, worker: WorkerProcess, services: Services
) -> None:
    talk.script(Reply(texts=["It is", " fine."], usage=(5, 3)))
    config = {
        "agent_id": talk.agent_id,
        "message": "Check order {{ input.order }}",
        "context": {"customer": "{{ input.customer }}"},
    }
    node = await run_single(talk.client, "agent", config, {"order": 4711, "customer": "Zoe Zed"})
    assert node["output"]["text"] == "It is fine."
    asked = json.dumps(talk.asked[0]["messages"])
    assert "Check order 4711" in asked
    assert "Zoe Zed" in asked
    conversation_id = node["output"]["conversation_id"]
    for sql in (
        "SELECT source FROM conversations WHERE id = $1",
        "SELECT source FROM usage WHERE conversation_id = $1",
    ):
        assert await fetch_rows(services, sql, conversation_id) == [{"source": "workflow"}]


async def test_a_failure_of_the_model_fails_the_node_with_its_code(
    talk: Talker, worker: WorkerProcess
) -> None:
    talk.script(Reply(status=400, message="no such thing"))
    config = {"agent_id": talk.agent_id, "message": "Hi"}
    assert await fail_single(talk.client, "agent", config) == "provider_rejected"


async def test_a_retry_asks_by_a_new_job(
    talk: Talker, worker: WorkerProcess, services: Services
) -> None:
    talk.script(Reply(status=400), Reply(texts=["Better."]))
    config = {"agent_id": talk.agent_id, "message": "Hi"}
    retry = {"max_attempts": 2, "delay_seconds": 0}
    node = await run_single(talk.client, "agent", config, retry=retry)
    assert (node["status"], node["attempt"], node["error"]) == ("completed", 2, None)
    assert node["output"]["text"] == "Better."
    sql = "SELECT status FROM chat_jobs WHERE agent_id = $1 ORDER BY id"
    rows = await fetch_rows(services, sql, talk.agent_id)
    assert [row["status"] for row in rows] == ["failed", "completed"]


async def test_a_node_that_takes_too_long_cancels_its_job(
    talk: Talker, worker: WorkerProcess, services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    config = {"agent_id": talk.agent_id, "message": "Hi"}
    assert await fail_single(talk.client, "agent", config, timeout_seconds=0.3) == "timeout"
    await wait_for_row(services, _JOB_WITH_STATUS, talk.agent_id, "cancelled")
    hold.set()


async def test_a_cancelled_execution_cancels_the_job_that_it_waits_for(
    talk: Talker, worker: WorkerProcess, services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    config = {"agent_id": talk.agent_id, "message": "Hi"}
    execution_id = await start_single(talk.client, "agent", config)
    await until(lambda: talk.asked)
    record = await cancel(talk.client, execution_id)
    assert (record["status"], record["nodes"][0]["status"]) == ("cancelled", "cancelled")
    await wait_for_row(services, _JOB_WITH_STATUS, talk.agent_id, "cancelled")
    hold.set()


async def test_an_agent_that_cannot_answer_fails_the_node(
    talk: Talker, worker: WorkerProcess
) -> None:
    config = {"agent_id": talk.agent_id, "message": "Hi {{ input.name }}"}
    answer = await talk.client.put(talk.path, {"status": "archived"})
    assert answer.status_code == 200, answer.text
    assert await fail_single(talk.client, "agent", config, {"name": "Ann"}) == "agent_archived"
    blank = {"agent_id": talk.agent_id, "message": "{{ input.name }}"}
    assert await fail_single(talk.client, "agent", blank, {"name": " "}) == "invalid_config"


async def test_a_deleted_agent_fails_the_node(talk: Talker, worker: WorkerProcess) -> None:
    other = await talk.agent()
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    first = {"agent_id": talk.agent_id, "message": "Hi"}
    execution_id = await start_single(talk.client, "agent", first)
    await until(lambda: talk.asked)
    assert (await talk.client.delete(talk.path)).status_code == 204
    record = await read_end(talk.client, execution_id)
    assert (record["status"], record["error"]["code"]) == ("failed", "cancelled")
    hold.set()
    second = {"agent_id": other.agent_id, "message": "Hi"}
    delayed = {"retry": {"max_attempts": 2, "delay_seconds": 0}}
    other.script(Reply(hold=hold))
    hold.clear()
    execution_id = await start_single(talk.client, "agent", second, **delayed)
    await until(lambda: other.asked)
    assert (await talk.client.delete(other.path)).status_code == 204
    record = await read_end(talk.client, execution_id)
    assert (record["status"], record["error"]["code"]) == ("failed", "agent_not_found")
    hold.set()


async def test_the_agent_of_a_node_calls_its_tools(talk: Talker, worker: WorkerProcess) -> None:
    tools = ToolClient(talk.client)
    tool_id = await tools.create("function", ECHO, name="Echo")
    await attach_tool(talk, tool_id)
    talk.script(Reply(texts=[], calls=[("echo", {"word": "pong"})]), Reply(texts=["Pong."]))
    node = await run_single(talk.client, "agent", {"agent_id": talk.agent_id, "message": "Ping"})
    assert node["output"]["text"] == "Pong."
    (call,) = node["output"]["tool_calls"]
    assert (call["status"], call["output"]) == ("completed", {"word": "pong"})


async def test_parallel_nodes_end_when_their_agent_is_deleted_meanwhile(
    talk: Talker, worker: WorkerProcess
) -> None:
    tool_id = await ToolClient(talk.client).create("function", ECHO, name="Echo")
    await attach_tool(talk, tool_id)
    talk.script(Reply(delay=0.05))
    ask, use = {"agent_id": talk.agent_id, "message": "Hi"}, {"tool_id": tool_id}
    retry = {"max_attempts": 3, "delay_seconds": 0}
    nodes = [
        {"id": f"{name}{index}", "type": name, "config": config, "retry": retry}
        for name, config in (("agent", ask), ("tool", use))
        for index in range(2)
    ]
    workflow = await create_workflow(talk.client, nodes)
    ids = [await start(talk.client, workflow["id"]) for _ in range(rounds(2, 3))]
    await until(lambda: len(talk.asked) > 2)
    assert (await talk.client.delete(talk.path)).status_code == 204
    assert (await talk.client.delete(f"/v1/tools/{tool_id}")).status_code == 204
    for execution_id in ids:
        await read_end(talk.client, execution_id)
