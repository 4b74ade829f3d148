"""Concurrent calls of one round."""

import asyncio

from tests.assertions import until
from tests.conversations.chat.delegation_scripts import add_sub_agent, build_call, reply_with_calls
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def test_calls_of_one_round_run_concurrently(talk: Talker) -> None:
    """Each sub-agent waits until both have received their request."""
    hold = asyncio.Event()
    first, second = await add_sub_agent(talk, "First"), await add_sub_agent(talk, "Second")
    first.script(Reply(texts=["1"], hold=hold))
    second.script(Reply(texts=["2"], hold=hold))
    talk.script(reply_with_calls(build_call("first"), build_call("second")), Reply())
    turn = asyncio.create_task(talk.say("Hello"))
    await until(lambda: first.asked and second.asked)
    hold.set()
    reply = await turn
    assert [(call["tool"], call["output"]) for call in reply["tool_calls"]] == [
        ("First", "1"),
        ("Second", "2"),
    ]


async def test_results_go_back_in_the_order_of_the_calls(talk: Talker) -> None:
    hold = asyncio.Event()
    slow, quick = await add_sub_agent(talk, "Slow"), await add_sub_agent(talk, "Quick")
    slow.script(Reply(texts=["slow"], hold=hold))
    quick.script(Reply(texts=["quick"]))
    talk.script(reply_with_calls(build_call("slow"), build_call("quick")), Reply())
    turn = asyncio.create_task(talk.say("Hello"))
    await until(lambda: slow.asked and quick.asked)
    hold.set()
    await turn
    *_, call_message, first, second = talk.asked[1]["messages"]
    assert [first["content"], second["content"]] == ["slow", "quick"]
    ids = [call["id"] for call in call_message["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids


async def test_one_child_does_several_tasks_at_once(talk: Talker) -> None:
    hold = asyncio.Event()
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."], hold=hold))
    talk.script(reply_with_calls(*(build_call("kid", str(number)) for number in range(4))), Reply())
    turn = asyncio.create_task(talk.say("Hello"))
    await until(lambda: len(child.asked) == 4)
    hold.set()
    calls = (await turn)["tool_calls"]
    assert [call["input"]["task"] for call in calls] == ["0", "1", "2", "3"]
    assert {call["output"] for call in calls} == {"Done."}


async def test_at_most_sixteen_calls_run_in_one_round(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(
        reply_with_calls(*(build_call("kid", str(number)) for number in range(18))), Reply()
    )
    calls = (await talk.say("Hello"))["tool_calls"]
    assert [call["status"] for call in calls] == ["completed"] * 16 + ["failed"] * 2
    assert calls[16]["output"] == {"error": "at most 16 calls at a time"}
    assert len(child.asked) == 16
