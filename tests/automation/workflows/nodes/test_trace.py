"""Traces and events of executions, and who is notified of their ends."""

from typing import Any

from app.services import Services
from tests.agents.tools.chat_tools import attach_tool
from tests.agents.tools.execution_requests import ECHO
from tests.agents.tools.factories import ToolClient
from tests.assertions import wait_until
from tests.automation.workflows.factories import create_published, create_workflow, run, transform
from tests.automation.workflows.nodes.single_node import build_node
from tests.messaging.notifications.center.api import list_notifications
from tests.model_server import Reply
from tests.platform.events.api import read_trace
from tests.platform.events.database import load_events, wait_until_idle
from tests.scripted_agents import Talker
from tests.world import World
from workers.main import WorkerProcess


async def test_one_trace_shows_the_request_the_nodes_the_agent_and_its_tool(
    talk: Talker, worker: WorkerProcess
) -> None:
    tool_id = await ToolClient(talk.client).create("function", ECHO, name="Echo")
    await attach_tool(talk, tool_id)
    talk.script(Reply(texts=[], calls=[("echo", {"a": 1})]), Reply(texts=["Done."]))
    agent = build_node("agent", {"agent_id": talk.agent_id, "message": "Go"})
    child = await create_published(talk.client, [agent])
    nodes = [transform("first", 1), {**build_node("workflow", {"workflow_id": child}), "id": "sub"}]
    workflow = await create_workflow(talk.client, nodes, [{"from": "first", "to": "sub"}])
    record = await run(talk.client, workflow["id"])
    assert record["status"] == "completed", record["error"]
    trace = await read_trace(talk.client, record["correlation_id"])
    spans = trace["spans"]
    kinds = {span["kind"] for span in spans}
    assert {"request", "node", "job", "model", "tool"} <= kinds
    named = {span["name"]: span for span in spans if span["kind"] == "node"}
    assert set(named) == {"Orders: first", "Orders: sub", "Orders: one"}
    assert named["Orders: one"]["parent_id"] == named["Orders: sub"]["id"]
    started = next(event for event in trace["data"] if event["type"].endswith("execution.started"))
    assert named["Orders: sub"]["parent_id"] == started["id"]
    turn = next(span for span in spans if span["name"] == "chat.turn")
    tool = next(span for span in spans if span["kind"] == "tool")
    run_of_tool = next(span for span in spans if span["name"] == "tools.run")
    assert tool["parent_id"] == run_of_tool["id"]
    model = next(span for span in spans if span["kind"] == "model")
    assert model["parent_id"] == turn["id"]
    types = [event["type"] for event in trace["data"]]
    assert types.count("workflow.execution.started") == 2
    assert types.count("workflow.execution.node_completed") == 3
    assert types.count("workflow.execution.completed") == 2
    assert "chat.completed" in types or "agent.chat.completed" in types


async def test_whoever_started_a_workflow_is_told_of_its_end(
    world: World, worker: WorkerProcess
) -> None:
    owner = await world.user("agent_developer")
    starter = await world.user("agent_developer", owner.tenant_id)
    bad = await create_workflow(owner, [transform("bad", "{{ 1 / 0 }}")], name="Refunds")
    good = await create_workflow(owner, [transform("good", 1)], name="Greetings")
    record = await run(starter, bad["id"])
    await run(starter, good["id"])

    async def find() -> dict[str, dict[str, Any]] | None:
        found = {item["type"]: item for item in await list_notifications(starter)}
        return found if {"workflow_failed", "workflow_completed"} <= found.keys() else None

    found = await wait_until(find)
    assert found is not None
    assert "Refunds" in found["workflow_failed"]["title"]
    assert record["error"]["message"] in found["workflow_failed"]["message"]
    assert "Greetings" in found["workflow_completed"]["title"]
    assert await list_notifications(owner) == []
    trace = await read_trace(owner, record["correlation_id"])
    (event,) = [item for item in trace["data"] if item["type"] == "workflow.execution.failed"]
    assert event["data"]["started_by"] == starter.user_id
    assert event["data"]["owner_id"] == owner.user_id
    assert event["data"]["node_id"] == "bad"


async def test_a_failed_execution_that_a_node_called_is_reported_with_the_one_that_called_it(
    world: World, services: Services, worker: WorkerProcess
) -> None:
    owner = await world.user("agent_developer")
    starter = await world.user("agent_developer", owner.tenant_id)
    called = await create_published(owner, [transform("bad", "{{ 1 / 0 }}")])
    call = build_node("workflow", {"workflow_id": called})
    workflow = await create_workflow(owner, [call], name="Refunds")
    record = await run(starter, workflow["id"])
    assert record["error"]["code"] == "workflow_failed"
    await wait_until(lambda: list_notifications(starter))
    await wait_until_idle(services, owner.tenant_id)
    (notification,) = await list_notifications(starter)
    assert "Refunds" in notification["title"]
    assert await list_notifications(owner) == []
    name = "workflow.execution.failed"
    assert len(await load_events(services, owner.tenant_id, name)) == 2
