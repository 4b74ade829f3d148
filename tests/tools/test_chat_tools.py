"""Attached tools in conversations: offered to the model, run for its agent, told to everybody."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from aiohttp import web

from app.domain.events.service import emit_dead
from app.domain.tools import executions
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker, events_in, names_of
from tests.tools.factories import Bench
from tests.tools.site import Site, open_site
from workers.main import JOBS, ON_DEAD, WorkerProcess
from workers.runner import Runner

SUM = {
    "runtime": "python",
    "code": "def main(input):\n    return {'sum': sum(input['numbers'])}\n",
}
TAKES = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
    "required": ["numbers"],
}
ADDER: dict[str, Any] = {
    "name": "Add numbers",
    "description": "Adds up numbers",
    "input_schema": TAKES,
}
CALL = ("add_numbers", {"numbers": [1, 2, 3.5]})


@pytest.fixture
def bench(talk: Talker) -> Bench:
    return Bench(talk.client)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


async def _attach(talk: Talker, tool_id: str, **more: Any) -> None:
    path = f"/v1/agents/{talk.agent_id}/tools"
    answer = await talk.client.post(path, {"tool_id": tool_id, **more})
    assert answer.status_code == 201, answer.text


@pytest.fixture
async def adder(talk: Talker, bench: Bench) -> str:
    """A function that the agent has."""
    tool_id = await bench.create("function", SUM, **ADDER)
    await _attach(talk, tool_id)
    return tool_id


async def _records(talk: Talker, tool_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/v1/tools/{tool_id}/executions")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def _offered(talk: Talker) -> list[dict[str, Any]]:
    """The functions that the model was told of last."""
    return [item["function"] for item in talk.asked[-1].get("tools", [])]


def _told(talk: Talker) -> list[Any]:
    """What the model was told of its calls, as it was sent."""
    messages = talk.asked[-1]["messages"]
    return [json.loads(item["content"]) for item in messages if item["role"] == "tool"]


# What is offered


async def test_a_tool_is_offered_by_name_description_and_schema(talk: Talker, adder: str) -> None:
    await talk.say("Hi")
    assert _offered(talk) == [
        {"name": "add_numbers", "description": "Adds up numbers", "parameters": TAKES}
    ]


async def test_an_agent_without_tools_is_offered_none(talk: Talker, bench: Bench) -> None:
    await bench.create("function", SUM, **ADDER)
    await talk.say("Hi")
    assert "tools" not in talk.asked[-1]


async def test_tools_are_offered_in_their_order_and_disabled_ones_not(
    talk: Talker, bench: Bench
) -> None:
    for name, order, attached, enabled in [
        ("Third", 3, True, True),
        ("First", 1, True, True),
        ("Off here", 0, False, True),
        ("Off everywhere", 2, True, False),
        ("Second", 2, True, True),
    ]:
        tool_id = await bench.create("function", SUM, name=name, is_enabled=enabled)
        await _attach(talk, tool_id, display_order=order, is_enabled=attached)
    await talk.say("Hi")
    assert [item["name"] for item in _offered(talk)] == ["first", "second", "third"]


async def test_a_tool_without_description_and_schema_is_offered_by_what_its_type_takes(
    talk: Talker, bench: Bench
) -> None:
    config = {"db_type": "sqlite", "database": "shop.db"}
    await _attach(talk, await bench.create("database", config, name="Shop data"))
    await talk.say("Hi")
    (offered,) = _offered(talk)
    assert (offered["name"], offered["description"]) == ("shop_data", "Shop data")
    assert offered["parameters"]["required"] == ["query"]


async def test_no_two_tools_are_offered_by_one_name(talk: Talker, bench: Bench) -> None:
    await talk.with_helper()
    slugs = ["a" * 100, "a" * 99, "delegate-to-helper", "a" * 61]
    for slug in slugs:
        await _attach(talk, await bench.create("function", SUM, slug=slug))
    await talk.say("Hi")
    names = [item["name"] for item in _offered(talk)]
    assert len(set(names)) == len(names) == 5
    assert all(len(name) <= 64 for name in names)
    assert names.count("delegate_to_helper") == 1


# What a call does


async def test_a_call_is_run_for_the_agent_and_its_output_told_to_the_model(
    talk: Talker, adder: str, worker: WorkerProcess
) -> None:
    talk.script(Reply(texts=[], calls=[CALL]), Reply(texts=["It is 6.5."]))
    reply = await talk.say("Add up 1, 2 and 3.5")
    assert reply["message"]["content"] == "It is 6.5."
    assert _told(talk) == [{"sum": 6.5}]
    (record,) = await _records(talk, adder)
    assert (record["agent_id"], record["status"]) == (talk.agent_id, "completed")
    assert (record["input"], record["output"]) == (CALL[1], {"sum": 6.5})


async def test_a_reply_tells_its_calls(talk: Talker, adder: str, worker: WorkerProcess) -> None:
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


async def test_a_stream_tells_a_call_and_its_result(
    talk: Talker, adder: str, worker: WorkerProcess, server: Server
) -> None:
    talk.script(Reply(texts=["Well."], calls=[CALL]), Reply(texts=["6.5"]))
    headers = {"authorization": f"Bearer {talk.client.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30) as remote:
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
    used, result = (data for name, data in events if name.startswith("tool_"))
    assert (used["tool"], used["tool_id"], used["input"]) == ("Add numbers", adder, CALL[1])
    assert result["id"] == used["id"]
    assert (result["tool"], result["output"]) == ("Add numbers", {"sum": 6.5})
    assert (result["status"], result["execution_time_ms"] > 0) == ("completed", True)


async def test_calls_side_by_side_are_each_a_run(
    talk: Talker, adder: str, worker: WorkerProcess
) -> None:
    calls = [("add_numbers", {"numbers": [number]}) for number in range(5)]
    talk.script(Reply(texts=[], calls=calls), Reply())
    await talk.say("Hi")
    assert _told(talk) == [{"sum": number} for number in range(5)]
    assert len(await _records(talk, adder)) == 5


async def test_an_agents_own_settings_hold_for_its_calls(
    talk: Talker, bench: Bench, worker: WorkerProcess
) -> None:
    tool_id = await bench.create("function", SUM, **ADDER)
    code = "def main(input):\n    return 'overridden'\n"
    await _attach(talk, tool_id, config_override={"code": code})
    talk.script(Reply(texts=[], calls=[CALL]), Reply())
    (call,) = (await talk.say("Hi"))["tool_calls"]
    assert call["output"] == "overridden"


async def test_the_tools_of_a_sub_agent_run_under_the_sub_agents_id(
    talk: Talker, bench: Bench, worker: WorkerProcess
) -> None:
    helper = await talk.with_helper()
    tool_id = await bench.create("function", SUM, **ADDER)
    await _attach(helper, tool_id)
    helper.script(Reply(texts=[], calls=[CALL]), Reply(texts=["6.5"]))
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "add"})]), Reply())
    reply = await talk.say("Hi")
    assert [item["name"] for item in _offered(talk)] == ["delegate_to_helper"]
    (record,) = await _records(talk, tool_id)
    assert record["agent_id"] == helper.agent_id
    outer, inner = reply["tool_calls"]
    assert (inner["tool_id"], inner["parent_id"]) == (tool_id, outer["id"])
    assert inner["output"] == {"sum": 6.5}


# What goes wrong


async def test_a_failing_tool_is_told_to_the_model(
    talk: Talker, bench: Bench, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    raise ValueError('no luck')\n"
    tool_id = await bench.create("function", {"runtime": "python", "code": code}, name="Bad")
    await _attach(talk, tool_id)
    talk.script(Reply(texts=[], calls=[("bad", {})]), Reply(texts=["Sorry"]))
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "Sorry"
    assert _told(talk) == [{"error": "ValueError: no luck", "code": "runtime_error"}]
    assert [call["status"] for call in reply["tool_calls"]] == ["failed"]


async def test_a_tool_that_takes_too_long_is_told_to_the_model(
    talk: Talker, bench: Bench, worker: WorkerProcess
) -> None:
    code = "import time\ndef main(input):\n    time.sleep(30)\n"
    config = {"runtime": "python", "code": code, "timeout_ms": 200}
    await _attach(talk, await bench.create("function", config, name="Slow"))
    talk.script(Reply(texts=[], calls=[("slow", {})]), Reply(texts=["Sorry"]))
    (call,) = (await talk.say("Hi"))["tool_calls"]
    assert call["status"] == "timeout"
    assert _told(talk)[0]["code"] == "timeout"


async def test_what_an_endpoint_said_when_it_refused_is_told_to_the_model(
    talk: Talker, bench: Bench, site: Site, worker: WorkerProcess
) -> None:
    async def refuse(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"why": "out of stock"}, status=409)

    site.answer = refuse
    await _attach(talk, await bench.create("webhook", {"url": site.url}, name="Order"))
    talk.script(Reply(texts=[], calls=[("order", {"item": 1})]), Reply())
    await talk.say("Hi")
    (told,) = _told(talk)
    assert told["code"] == "http_error"
    assert told["output"]["body"] == {"why": "out of stock"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"numbers": "many"}, "input.numbers"),
        ({}, "required"),
        ("not json", "the arguments are not a JSON object"),
        ([1], "the arguments are not a JSON object"),
    ],
)
async def test_wrong_arguments_are_told_to_the_model_and_run_nothing(
    talk: Talker, adder: str, worker: WorkerProcess, arguments: Any, said: str
) -> None:
    talk.script(Reply(texts=[], calls=[("add_numbers", arguments)]), Reply(texts=["Sorry"]))
    reply = await talk.say("Hi")
    assert [call["status"] for call in reply["tool_calls"]] == ["failed"]
    assert said in _told(talk)[0]["error"]
    assert await _records(talk, adder) == []


async def test_a_tool_that_was_disabled_meanwhile_is_told_to_the_model(
    talk: Talker, adder: str
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(texts=["x"], calls=[CALL], hold=hold), Reply(texts=["Sorry"]))
    saying = asyncio.create_task(talk.say("Hi"))
    await until(lambda: talk.asked)
    await talk.client.put(f"/v1/tools/{adder}", {"is_enabled": False})
    hold.set()
    (call,) = (await saying)["tool_calls"]
    assert (call["status"], call["output"]["code"]) == ("failed", "tool_disabled")


async def test_a_tool_of_another_agent_cannot_be_called(
    talk: Talker, adder: str, worker: WorkerProcess
) -> None:
    other = await talk.agent()
    other.script(Reply(texts=[], calls=[CALL]), Reply(texts=["Sorry"]))
    (call,) = (await other.say("Hi"))["tool_calls"]
    assert call["output"] == {"error": "there is no tool add_numbers"}
    assert await _records(talk, adder) == []


# Once, whatever happens to workers


async def _accepted(talk: Talker, services: Services) -> tuple[str, str]:
    """The path of a job, and its work."""
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Order it"})
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT work_id FROM chat_jobs WHERE id = $1"
        return f"{talk.path}/chat/jobs/{job_id}", await (await tx.raw()).fetchval(sql, job_id)


async def _abandon(services: Services, work_id: str) -> None:
    """As it is some time after its worker was killed."""
    sql = "UPDATE work SET lease_until = now() - interval '1 second' WHERE id = $1"
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, work_id)


async def test_a_call_is_made_once_when_its_chats_worker_dies_before_the_outcome(
    talk: Talker, bench: Bench, site: Site, services: Services, worker: WorkerProcess
) -> None:
    release = asyncio.Event()

    async def slowly(_request: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.json_response({"order": 1})

    site.answer = slowly
    tool_id = await bench.create("webhook", {"url": site.url}, name="Order")
    await _attach(talk, tool_id)
    talk.script(Reply(texts=[], calls=[("order", {"item": 1})]), Reply(texts=["Ordered."]))
    path, work_id = await _accepted(talk, services)
    dying = asyncio.create_task(
        Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    )
    await until(lambda: site.seen)
    await _abandon(services, work_id)
    living = asyncio.create_task(
        Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    )
    release.set()
    await asyncio.gather(dying, living)
    view = (await talk.client.get(path)).json()
    assert view["status"] == "completed", view
    assert view["reply"]["message"]["content"] == "Ordered."
    assert len(site.seen) == 1
    assert [record["status"] for record in await _records(talk, tool_id)] == ["completed"]


async def test_a_call_is_made_once_when_its_chats_worker_dies_before_the_reply(
    talk: Talker, bench: Bench, site: Site, services: Services, worker: WorkerProcess
) -> None:
    hold = asyncio.Event()
    tool_id = await bench.create("webhook", {"url": site.url}, name="Order")
    await _attach(talk, tool_id)
    order = Reply(texts=[], calls=[("order", {"item": 1})])
    talk.script(order, Reply(texts=["Lost"], hold=hold), Reply(texts=["Ordered."]))
    path, work_id = await _accepted(talk, services)
    dying = asyncio.create_task(
        Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    )
    await until(lambda: len(talk.asked) == 2)
    await _abandon(services, work_id)
    await Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    hold.set()
    await dying
    view = (await talk.client.get(path)).json()
    assert view["reply"]["message"]["content"] == "Ordered."
    assert [call["status"] for call in view["reply"]["tool_calls"]] == ["completed"]
    assert len(site.seen) == 1


async def test_the_same_call_asked_for_twice_is_one_run(
    talk: Talker, bench: Bench, site: Site, services: Services, worker: WorkerProcess
) -> None:
    tool_id, tenant_id = await bench.create("webhook", {"url": site.url}), talk.client.tenant_id
    asked = [
        executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_one")
        for _ in range(2)
    ]
    first = await asked[0]
    second = await asked[1]
    assert first["id"] == second["id"]
    await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_two")
    assert len(site.seen) == 2


async def test_a_call_that_ran_is_told_as_it_ended_although_its_tool_is_disabled_now(
    talk: Talker, bench: Bench, site: Site, services: Services, worker: WorkerProcess
) -> None:
    """Asked for again after a crash; told otherwise, the model might try another way."""
    tool_id, tenant_id = await bench.create("webhook", {"url": site.url}), talk.client.tenant_id
    first = await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_one")
    await talk.client.put(f"/v1/tools/{tool_id}", {"is_enabled": False})
    again = await executions.run_and_wait(services, tenant_id, tool_id, {}, call_id="call_one")
    assert (again["id"], again["status"]) == (first["id"], "completed")
    assert len(site.seen) == 1
