"""Tools in conversations: offered to the model, and run for its agent."""

import asyncio
import json
from typing import Any

import pytest

from tests.agents.tools.chat_tools import attach_tool, list_executions
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site, respond_with
from tests.assertions import until
from tests.http_clients import open_client
from tests.model_server import Reply
from tests.scripted_agents import Talker, events_in, names_of
from tests.server import Server
from workers.main import WorkerProcess

SUM = {
    "runtime": "python",
    "code": "def main(input):\n    return {'sum': sum(input['numbers'])}\n",
}

INPUT_SCHEMA = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
    "required": ["numbers"],
}

ADDER: dict[str, Any] = {
    "name": "Add numbers",
    "description": "Adds up numbers",
    "input_schema": INPUT_SCHEMA,
}

CALL = ("add_numbers", {"numbers": [1, 2, 3.5]})


@pytest.fixture
def tools(talk: Talker) -> ToolClient:
    return ToolClient(talk.client)


@pytest.fixture
async def adder(talk: Talker, tools: ToolClient) -> str:
    """A function that is attached to the agent."""
    tool_id = await tools.create("function", SUM, **ADDER)
    await attach_tool(talk, tool_id)
    return tool_id


def _list_offered_functions(talk: Talker) -> list[dict[str, Any]]:
    """Returns the functions of the last request to the model."""
    return [item["function"] for item in talk.asked[-1].get("tools", [])]


def _list_tool_messages(talk: Talker) -> list[Any]:
    """Returns the decoded tool messages of the last request to the model."""
    messages = talk.asked[-1]["messages"]
    return [json.loads(item["content"]) for item in messages if item["role"] == "tool"]


# Offered functions


async def test_a_tool_is_offered_by_name_description_and_schema(talk: Talker, adder: str) -> None:
    await talk.say("Hi")
    assert _list_offered_functions(talk) == [
        {"name": "add_numbers", "description": "Adds up numbers", "parameters": INPUT_SCHEMA}
    ]


async def test_an_agent_without_tools_is_offered_none(talk: Talker, tools: ToolClient) -> None:
    await tools.create("function", SUM, **ADDER)
    await talk.say("Hi")
    assert "tools" not in talk.asked[-1]


async def test_tools_are_offered_in_their_order_and_disabled_ones_not(
    talk: Talker, tools: ToolClient
) -> None:
    for name, order, attached, enabled in [
        ("Third", 3, True, True),
        ("First", 1, True, True),
        ("Off here", 0, False, True),
        ("Off everywhere", 2, True, False),
        ("Second", 2, True, True),
    ]:
        tool_id = await tools.create("function", SUM, name=name, is_enabled=enabled)
        await attach_tool(talk, tool_id, display_order=order, is_enabled=attached)
    await talk.say("Hi")
    assert [item["name"] for item in _list_offered_functions(talk)] == ["first", "second", "third"]


async def test_a_tool_without_schema_is_offered_with_the_parameters_of_its_type(
    talk: Talker, tools: ToolClient
) -> None:
    config = {"db_type": "sqlite", "database": "shop.db"}
    await attach_tool(talk, await tools.create("database", config, name="Shop data"))
    await talk.say("Hi")
    (function,) = _list_offered_functions(talk)
    assert (function["name"], function["description"]) == ("shop_data", "Shop data")
    assert function["parameters"]["required"] == ["query"]


async def test_no_two_offered_functions_have_the_same_name(talk: Talker, tools: ToolClient) -> None:
    await talk.with_helper()
    slugs = ["a" * 100, "a" * 99, "delegate-to-helper", "a" * 61]
    for slug in slugs:
        await attach_tool(talk, await tools.create("function", SUM, slug=slug))
    await talk.say("Hi")
    names = [item["name"] for item in _list_offered_functions(talk)]
    assert len(set(names)) == len(names) == 5
    assert all(len(name) <= 64 for name in names)
    assert names.count("delegate_to_helper") == 1


# Calls


async def test_a_call_runs_for_the_agent_and_its_output_is_sent_to_the_model(
    talk: Talker, adder: str, worker: WorkerProcess
) -> None:
    talk.script(Reply(texts=[], calls=[CALL]), Reply(texts=["It is 6.5."]))
    reply = await talk.say("Add up 1, 2 and 3.5")
    assert reply["message"]["content"] == "It is 6.5."
    assert _list_tool_messages(talk) == [{"sum": 6.5}]
    (record,) = await list_executions(talk, adder)
    assert (record["agent_id"], record["status"]) == (talk.agent_id, "completed")
    assert (record["input"], record["output"]) == (CALL[1], {"sum": 6.5})


async def test_a_reply_lists_its_calls(talk: Talker, adder: str, worker: WorkerProcess) -> None:
    talk.script(Reply(texts=[], calls=[CALL]), Reply())
    (call,) = (await talk.say("Hi"))["tool_calls"]
    assert call.pop("id").startswith("call_")
    assert call.pop("execution_time_ms") > 0
    assert call == {
        "tool": "Add numbers",
        "tool_id": adder,
        "input": CALL[1],
        "output": {"sum": 6.5},
        "status": "completed",
        "parent_id": None,
    }


async def test_a_stream_has_events_for_a_call_and_its_result(
    talk: Talker, adder: str, worker: WorkerProcess, server: Server
) -> None:
    talk.script(Reply(texts=["Well."], calls=[CALL]), Reply(texts=["6.5"]))
    headers = {"authorization": f"Bearer {talk.client.token}"}
    async with open_client(base_url=server.url, headers=headers, timeout=30) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    events = events_in(answer.text)
    assert names_of(events) == [
        "message_start",
        "content_delta",
        "tool_use",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    call, result = (data for name, data in events if name.startswith("tool_"))
    assert (call["tool"], call["tool_id"], call["input"]) == ("Add numbers", adder, CALL[1])
    assert result["id"] == call["id"]
    assert (result["tool"], result["output"]) == ("Add numbers", {"sum": 6.5})
    assert (result["status"], result["execution_time_ms"] > 0) == ("completed", True)


async def test_each_of_several_calls_in_one_reply_is_a_run(
    talk: Talker, adder: str, worker: WorkerProcess
) -> None:
    calls = [("add_numbers", {"numbers": [number]}) for number in range(5)]
    talk.script(Reply(texts=[], calls=calls), Reply())
    await talk.say("Hi")
    assert _list_tool_messages(talk) == [{"sum": number} for number in range(5)]
    assert len(await list_executions(talk, adder)) == 5


async def test_an_agents_config_override_applies_to_its_calls(
    talk: Talker, tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", SUM, **ADDER)
    code = "def main(input):\n    return 'overridden'\n"
    await attach_tool(talk, tool_id, config_override={"code": code})
    talk.script(Reply(texts=[], calls=[CALL]), Reply())
    (call,) = (await talk.say("Hi"))["tool_calls"]
    assert call["output"] == "overridden"


async def test_the_tools_of_a_sub_agent_run_under_the_sub_agents_id(
    talk: Talker, tools: ToolClient, worker: WorkerProcess
) -> None:
    helper = await talk.with_helper()
    tool_id = await tools.create("function", SUM, **ADDER)
    await attach_tool(helper, tool_id)
    helper.script(Reply(texts=[], calls=[CALL]), Reply(texts=["6.5"]))
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "add"})]), Reply())
    reply = await talk.say("Hi")
    assert [item["name"] for item in _list_offered_functions(talk)] == ["delegate_to_helper"]
    (record,) = await list_executions(talk, tool_id)
    assert record["agent_id"] == helper.agent_id
    outer, inner = reply["tool_calls"]
    assert (inner["tool_id"], inner["parent_id"]) == (tool_id, outer["id"])
    assert inner["output"] == {"sum": 6.5}


# Failures


async def test_the_error_of_a_tool_is_sent_to_the_model(
    talk: Talker, tools: ToolClient, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    raise ValueError('no luck')\n"
    tool_id = await tools.create("function", {"runtime": "python", "code": code}, name="Bad")
    await attach_tool(talk, tool_id)
    talk.script(Reply(texts=[], calls=[("bad", {})]), Reply(texts=["Sorry"]))
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "Sorry"
    assert _list_tool_messages(talk) == [{"error": "ValueError: no luck", "code": "runtime_error"}]
    assert [call["status"] for call in reply["tool_calls"]] == ["failed"]


async def test_the_timeout_of_a_tool_is_sent_to_the_model(
    talk: Talker, tools: ToolClient, worker: WorkerProcess
) -> None:
    code = "import time\ndef main(input):\n    time.sleep(30)\n"
    config = {"runtime": "python", "code": code, "timeout_ms": 200}
    await attach_tool(talk, await tools.create("function", config, name="Slow"))
    talk.script(Reply(texts=[], calls=[("slow", {})]), Reply(texts=["Sorry"]))
    (call,) = (await talk.say("Hi"))["tool_calls"]
    assert call["status"] == "timeout"
    assert _list_tool_messages(talk)[0]["code"] == "timeout"


async def test_the_body_of_an_error_response_is_sent_to_the_model(
    talk: Talker, tools: ToolClient, site: Site, worker: WorkerProcess
) -> None:
    headers = {"Content-Type": "application/json"}
    site.handler = respond_with('{"why": "out of stock"}', status=409, headers=headers)
    await attach_tool(talk, await tools.create("webhook", {"url": site.url}, name="Order"))
    talk.script(Reply(texts=[], calls=[("order", {"item": 1})]), Reply())
    await talk.say("Hi")
    (message,) = _list_tool_messages(talk)
    assert message["code"] == "http_error"
    assert message["output"]["body"] == {"why": "out of stock"}


async def test_invalid_arguments_are_reported_to_the_model_and_run_nothing(
    talk: Talker, adder: str, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, str]] = [
        ({"numbers": "many"}, "input.numbers"),
        ({}, "required"),
        ("not json", "the arguments are not a JSON object"),
        ([1], "the arguments are not a JSON object"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            talk.script(Reply(texts=[], calls=[("add_numbers", arguments)]), Reply(texts=["Sorry"]))
            reply = await talk.say("Hi")
            assert [call["status"] for call in reply["tool_calls"]] == ["failed"]
            assert message in _list_tool_messages(talk)[-1]["error"]
            assert await list_executions(talk, adder) == []


async def test_a_tool_that_is_disabled_meanwhile_does_not_run(talk: Talker, adder: str) -> None:
    hold = asyncio.Event()
    talk.script(Reply(texts=["x"], calls=[CALL], hold=hold), Reply(texts=["Sorry"]))
    reply_task = asyncio.create_task(talk.say("Hi"))
    await until(lambda: talk.asked)
    await talk.client.put(f"/v1/tools/{adder}", {"is_enabled": False})
    hold.set()
    (call,) = (await reply_task)["tool_calls"]
    assert (call["status"], call["output"]["code"]) == ("failed", "tool_disabled")


async def test_a_tool_of_another_agent_cannot_be_called(
    talk: Talker, adder: str, worker: WorkerProcess
) -> None:
    other = await talk.agent()
    other.script(Reply(texts=[], calls=[CALL]), Reply(texts=["Sorry"]))
    (call,) = (await other.say("Hi"))["tool_calls"]
    assert call["output"] == {"error": "there is no tool add_numbers"}
    assert await list_executions(talk, adder) == []
