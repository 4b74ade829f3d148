"""Sub-agents of sub-agents: depth, parent calls and usage."""

from tests.conversations.chat.delegation_scripts import (
    CALL_KEYS,
    add_sub_agent,
    build_call,
    list_offered,
    reply_with_calls,
)
from tests.model_server import Reply
from tests.scripted_agents import PROVIDER, Talker


async def test_calls_of_a_grandchild_have_the_id_of_their_parent_call(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    grandchild = await add_sub_agent(child, "Grandkid")
    great = await add_sub_agent(grandchild, "Great")
    great.script(Reply(texts=["Deep."]))
    grandchild.script(reply_with_calls(build_call("great", "c")), Reply(texts=["Grand."]))
    child.script(reply_with_calls(build_call("grandkid", "b")), Reply(texts=["Kid."]))
    talk.script(reply_with_calls(build_call("kid", "a")), Reply())
    calls = (await talk.say("Hello"))["tool_calls"]
    results = [(call["tool"], call["input"]["task"], call["output"]) for call in calls]
    assert results == [("Kid", "a", "Kid."), ("Grandkid", "b", "Grand."), ("Great", "c", "Deep.")]
    assert calls[0]["parent_id"] is None
    assert calls[1]["parent_id"] == calls[0]["id"]
    assert calls[2]["parent_id"] == calls[1]["id"]
    assert {call["status"] for call in calls} == {"completed"}
    assert all(set(call) == CALL_KEYS for call in calls)


async def test_delegation_has_a_depth_of_three_at_most(talk: Talker) -> None:
    line = [talk]
    for name in ("one", "two", "three", "four"):
        line.append(await add_sub_agent(line[-1], name))
    for agent, name in zip(line, ("one", "two", "three", "four"), strict=False):
        agent.script(reply_with_calls(build_call(name)), Reply())
    reply = await talk.say("Hello")
    offered = [list_offered(agent.asked[0]) for agent in line[:4]]
    expected = ["delegate_to_one", "delegate_to_two", "delegate_to_three"]
    assert offered == [*([name] for name in expected), []]
    assert line[4].asked == []
    *_, last = reply["tool_calls"]
    assert [call["tool"] for call in reply["tool_calls"]] == ["one", "two", "three", last["tool"]]
    assert (last["tool"], last["status"]) == ("delegate_to_four", "failed")


async def test_usage_sums_every_call_of_every_model(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    grandchild = await add_sub_agent(child, "Grandkid")
    talk.script(reply_with_calls(build_call("kid"), usage=(1000, 1)), Reply(usage=(2000, 2)))
    child.script(reply_with_calls(build_call("grandkid"), usage=(300, 30)), Reply(usage=(400, 40)))
    grandchild.script(Reply(usage=(50_000, 500)))
    reply = await talk.say("Hello")
    assert reply["usage"] == {
        "prompt_tokens": 53_700,
        "completion_tokens": 573,
        "total_tokens": 54_273,
    }
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_tokens_used"] == 54_273
    assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)


async def test_usage_is_logged_for_each_model(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(build_call("kid"), usage=(10, 1)), Reply(usage=(20, 2)))
    child.script(Reply(usage=(300, 30)))
    await talk.say("Hello")
    entries = (await talk.client.get(f"{talk.path}/logs", params={"type": "token_usage"})).json()
    used = {
        item["data"]["model"]: (item["data"]["prompt_tokens"], item["data"]["completion_tokens"])
        for item in entries["data"]
    }
    assert used == {
        f"{PROVIDER}/{talk.model}": (30, 3),
        f"{PROVIDER}/{child.model}": (300, 30),
    }
