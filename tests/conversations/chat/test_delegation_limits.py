"""Limits of rounds and tokens in a turn."""

from app.domain.agents.definition import runtime as runtimes
from app.domain.agents.knowledge.api import Reader
from app.domain.conversations.chat import delegation
from app.domain.conversations.chat.agent_loop import TokenBudget
from app.domain.conversations.chat.stream_events import ToolResult, ToolUse
from app.services import Services
from tests.conversations.chat.delegation_scripts import (
    add_sub_agent,
    build_call,
    list_offered,
    reply_with_calls,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def test_after_ten_rounds_the_model_is_asked_once_more_without_tools(
    talk: Talker,
) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(*[reply_with_calls(build_call("kid"))] * 10, Reply(texts=["Enough."]))
    reply = await talk.say("Hello")
    assert [bool(list_offered(request)) for request in talk.asked] == [True] * 10 + [False]
    assert len(child.asked) == 10
    assert reply["message"]["content"] == "Enough."
    assert len(reply["tool_calls"]) == 10


async def test_calls_in_a_request_without_tools_are_ignored(
    talk: Talker,
) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(build_call("kid"), texts=["More!"]))
    reply = await talk.say("Hello")
    assert len(talk.asked) == 11
    assert len(child.asked) == len(reply["tool_calls"]) == 10
    assert reply["message"]["content"] == "\n\n".join(["More!"] * 11)


async def test_a_child_has_ten_rounds_of_its_own(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    grandchild = await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("grandkid"), texts=["More!"]))
    talk.script(reply_with_calls(build_call("kid")), Reply())
    reply = await talk.say("Hello")
    assert (len(child.asked), len(grandchild.asked)) == (11, 10)
    assert (len(talk.asked), len(reply["tool_calls"])) == (2, 11)


async def test_a_turn_that_has_used_up_its_tokens_delegates_nothing(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(
        reply_with_calls(build_call("kid"), usage=(150_000, 50_000)), Reply(texts=["Enough."])
    )
    reply = await talk.say("Hello")
    (call,) = reply["tool_calls"]
    assert (call["status"], set(call["output"])) == ("failed", {"error"})
    assert child.asked == []
    assert not list_offered(talk.asked[1])
    assert reply["message"]["content"] == "Enough."


async def test_a_turn_just_below_its_token_limit_delegates(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(build_call("kid"), usage=(149_999, 50_000)), Reply())
    (call,) = (await talk.say("Hello"))["tool_calls"]
    assert (call["status"], len(child.asked)) == ("completed", 1)
    assert not list_offered(talk.asked[1])


async def test_tokens_of_a_child_count_for_its_parent(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Much."], usage=(200_000, 0)))
    talk.script(
        reply_with_calls(build_call("kid")), reply_with_calls(build_call("kid"), texts=["Again!"])
    )
    reply = await talk.say("Hello")
    assert len(child.asked) == len(reply["tool_calls"]) == 1
    assert not list_offered(talk.asked[1])


async def test_tokens_of_a_parent_count_for_its_child(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    grandchild = await add_sub_agent(child, "Grandkid")
    talk.script(reply_with_calls(build_call("kid"), usage=(199_000, 0)), Reply())
    child.script(reply_with_calls(build_call("grandkid"), usage=(1000, 0)), Reply(texts=["Alone."]))
    outer, inner = (await talk.say("Hello"))["tool_calls"]
    assert (outer["output"], inner["status"]) == ("Alone.", "failed")
    assert not list_offered(child.asked[1])
    assert grandchild.asked == []


async def test_the_next_turn_has_a_new_token_limit(talk: Talker) -> None:
    await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(build_call("kid"), usage=(200_000, 0)), Reply())
    first = await talk.say("Hello")
    await talk.say("Again", conversation_id=first["conversation_id"])
    assert list_offered(talk.asked[-1]) == ["delegate_to_kid"]


async def test_delegation_refuses_once_the_budget_is_used_up(
    talk: Talker, services: Services
) -> None:
    child = await add_sub_agent(talk, "Kid")
    async with services.db.tx(talk.client.tenant_id, autocommit=True) as tx:
        runtime = await runtimes.load_runtime(tx, services.keyring, talk.agent_id)
    budget = TokenBudget(limit=1)
    budget.add("x", 1, 0)
    toolbox = delegation.Delegation(services, runtime, budget, 0, Reader.inside())
    reports: list[ToolUse | ToolResult] = []
    outcome = await toolbox.run(toolbox.offers[0], "call_1", {"task": "Do it"}, reports.append)
    assert (outcome.status, reports, child.asked) == ("failed", [], [])
