"""Requests to sub-agents, and their results in the parent's turn."""

import json

from tests.conversations.chat.conversation_helpers import count_conversations, list_messages
from tests.conversations.chat.delegation_scripts import (
    CALL_KEYS,
    add_sub_agent,
    build_call,
    reply_with_calls,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def test_a_child_is_asked_with_its_own_model_prompt_and_settings(talk: Talker) -> None:
    child = await add_sub_agent(
        talk, "Kid", system_prompt="You are the kid.", temperature=0.125, max_tokens=55
    )
    talk.script(reply_with_calls(build_call("kid", "Count to three")), Reply())
    await talk.say("Hello", context={"secret": "of the parent"})
    (request,) = child.asked
    assert request["messages"] == [
        {"role": "system", "content": "You are the kid."},
        {"role": "user", "content": "Count to three"},
    ]
    assert (request["temperature"], request["max_tokens"]) == (0.125, 55)
    assert "tools" not in request


async def test_the_answer_of_a_child_is_the_tool_result_of_its_parent(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["One, ", "two."]))
    talk.script(reply_with_calls(build_call("kid", "Count")), Reply(texts=["It counted."]))
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "It counted."
    *before, call_message, result = talk.asked[1]["messages"]
    assert [message["role"] for message in before] == ["system", "user"]
    (call,) = call_message["tool_calls"]
    assert (call_message["role"], call["type"]) == ("assistant", "function")
    assert call["function"]["name"] == "delegate_to_kid"
    assert json.loads(call["function"]["arguments"]) == {"task": "Count"}
    assert result == {"role": "tool", "content": "One, two.", "tool_call_id": call["id"]}


async def test_a_call_in_the_reply_has_all_fields(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid Two")
    child.script(Reply(texts=["Done."]))
    talk.script(reply_with_calls(build_call("kid_two", "Do it")), Reply())
    (call,) = (await talk.say("Hello"))["tool_calls"]
    assert set(call) == CALL_KEYS
    assert isinstance(call.pop("execution_time_ms"), int)
    assert call.pop("id")
    assert call == {
        "tool": "Kid Two",
        "tool_id": child.agent_id,
        "input": {"task": "Do it"},
        "output": "Done.",
        "status": "completed",
        "parent_id": None,
    }


async def test_calls_of_several_rounds_have_ids_of_their_own(talk: Talker) -> None:
    """The scripted model uses the id `call_0` every time."""
    await add_sub_agent(talk, "Kid")
    talk.script(
        reply_with_calls(build_call("kid", "1")), reply_with_calls(build_call("kid", "2")), Reply()
    )
    reply = await talk.say("Hello")
    assert [call["input"]["task"] for call in reply["tool_calls"]] == ["1", "2"]
    assert len({call["id"] for call in reply["tool_calls"]}) == 2


async def test_texts_before_and_after_a_call_are_separate_paragraphs(talk: Talker) -> None:
    await add_sub_agent(talk, "Kid")
    talk.script(
        reply_with_calls(build_call("kid"), texts=["Let me ask."]), Reply(texts=["It says", " hi."])
    )
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "Let me ask.\n\nIt says hi."
    assert talk.asked[1]["messages"][2]["content"] == "Let me ask."


async def test_the_stored_message_has_the_same_calls_as_the_reply(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("grandkid")), Reply(texts=["Done."]))
    talk.script(reply_with_calls(build_call("kid")), Reply())
    reply = await talk.say("Hello")
    user_message, reply_message = await list_messages(talk, reply["conversation_id"])
    assert user_message["tool_calls"] == []
    assert reply_message["tool_calls"] == reply["tool_calls"]
    assert len(reply["tool_calls"]) == 2


async def test_children_have_no_conversations_of_their_own(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(build_call("kid")), Reply())
    await talk.say("Hello")
    assert await count_conversations(child) == 0


async def test_the_next_turn_contains_the_parents_own_calls(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("grandkid")), Reply(texts=["Done."]))
    talk.script(
        reply_with_calls(build_call("kid")), Reply(texts=["Fine."]), Reply(texts=["Again."])
    )
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    messages = talk.asked[-1]["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    names = [call["function"]["name"] for call in messages[2]["tool_calls"]]
    assert (names, messages[3]["content"]) == (["delegate_to_kid"], "Done.")
    assert [messages[4]["content"], messages[5]["content"]] == ["Fine.", "Two"]


async def test_the_next_turn_without_children_contains_no_calls(talk: Talker) -> None:
    """Providers refuse a history with calls of functions that the request does not define."""
    child = await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(build_call("kid")), Reply(texts=["Fine."]))
    first = await talk.say("One")
    await talk.client.delete(f"{talk.path}/sub-agents/{child.agent_id}")
    await talk.say("Two", conversation_id=first["conversation_id"])
    messages = talk.asked[-1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]


async def test_a_very_long_answer_is_truncated_for_the_model_only(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["x" * 60_000]))
    talk.script(reply_with_calls(build_call("kid")), Reply())
    reply = await talk.say("Hello")
    assert reply["tool_calls"][0]["output"] == "x" * 60_000
    content = talk.asked[1]["messages"][-1]["content"]
    assert content == "x" * 50_000 + "… (cut)"
