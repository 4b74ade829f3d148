"""Functions that the client runs, beside the tools of the agent."""

import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from app.domain.conversations.chat import client_results
from tests.conversations.chat.conversation_helpers import list_conversations, list_messages
from tests.conversations.openai.completions import HI, post_completion, read_chunks
from tests.model_server import Reply
from tests.scripted_agents import Talker

CLOCK = {
    "type": "function",
    "function": {
        "name": "clock",
        "description": "Tells the time",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
        "strict": True,
    },
}
_CALL = ("clock", {"zone": "UTC"})
_ASK_HELPER = ("delegate_to_helper", {"task": "Look"})


async def _call_clock(talk: Talker, client: AsyncOpenAI, *calls: Any, **more: Any) -> Any:
    """Returns the answer to a question whose answer calls functions."""
    talk.script(
        Reply(texts=["Let me look."], calls=list(calls) or [_CALL]), Reply(texts=["It is 9."])
    )
    return await client.chat.completions.create(
        model=talk.agent_id,
        messages=HI,
        tools=[CLOCK],
        **more,
    )


def _with_result(answer: Any, content: str = "09:00") -> list[Any]:
    message = answer.choices[0].message.model_dump(exclude_none=True)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": content}
        for call in message["tool_calls"]
    ]
    return [*HI, message, *results]


async def _go_on(talk: Talker, client: AsyncOpenAI, answer: Any, **more: Any) -> Any:
    return await client.chat.completions.create(
        model=talk.agent_id, messages=_with_result(answer), tools=[CLOCK], **more
    )


async def test_a_call_of_the_clients_function_ends_the_answer(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    answer = await _call_clock(talk, any_client)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me look."
    [call] = choice.message.tool_calls
    assert (call.type, call.function.name) == ("function", "clock")
    assert json.loads(call.function.arguments) == {"zone": "UTC"}
    assert talk.asked[0]["tools"] == [CLOCK]
    assert len(talk.asked) == 1


async def test_the_result_goes_on_with_the_conversation(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    first = await _call_clock(talk, any_client)
    second = await _go_on(talk, any_client, first)
    assert second.choices[0].message.content == "It is 9."
    assert second.choices[0].finish_reason == "stop"
    assert second.conversation_id == first.conversation_id
    call = first.choices[0].message.tool_calls[0]
    assert talk.asked[1]["messages"] == [
        {"role": "system", "content": "You are a test."},
        *HI,
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [call.model_dump(include={"id", "type", "function"})],
        },
        {"role": "tool", "content": "09:00", "tool_call_id": call.id},
    ]


async def test_the_conversation_has_the_call_and_its_result(
    talk: Talker, client: AsyncOpenAI
) -> None:
    first = await _call_clock(talk, client)
    [asked] = (await list_messages(talk, first.conversation_id))[1]["tool_calls"]
    assert (asked["tool"], asked["input"], asked["output"]) == ("clock", {"zone": "UTC"}, None)
    assert asked["status"] == "requested"
    await _go_on(talk, client, first)
    messages = await list_messages(talk, first.conversation_id)
    assert [(item["role"], item["content"]) for item in messages] == [
        ("user", "Hi"),
        ("assistant", "Let me look."),
        ("assistant", "It is 9."),
    ]
    [call] = messages[1]["tool_calls"]
    assert (call["status"], call["output"]) == ("completed", "09:00")
    assert len((await list_conversations(talk))["data"]) == 1


async def test_a_stream_has_the_calls_as_well(talk: Talker, any_client: AsyncOpenAI) -> None:
    stream = await _call_clock(talk, any_client, _CALL, _CALL, stream=True)
    chunks = await read_chunks(stream)
    deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert [delta.index for delta in deltas] == [0, 1]
    assert len({delta.id for delta in deltas}) == 2
    assert [delta.function.name for delta in deltas if delta.function] == ["clock", "clock"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_the_agents_tools_run_beside_those_of_the_client(
    talk: Talker, client: AsyncOpenAI
) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(texts=["Cloudy."]))
    first = await _call_clock(talk, client, _ASK_HELPER, _CALL)
    assert [call.function.name for call in first.choices[0].message.tool_calls] == ["clock"]
    assert len(helper.asked) == 1
    assert {tool["function"]["name"] for tool in talk.asked[0]["tools"]} == {
        "delegate_to_helper",
        "clock",
    }
    await _go_on(talk, client, first)
    # The model sees both calls, although the client knows only its own.
    shown = talk.asked[1]["messages"]
    assert [message["role"] for message in shown] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert shown[2]["tool_calls"][0]["function"]["name"] == "delegate_to_helper"
    assert shown[3]["content"] == "Cloudy."


async def test_an_earlier_turn_of_another_agent_or_user_is_not_shown(
    talk: Talker, client: AsyncOpenAI
) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(texts=["A secret."]))
    first = await _call_clock(talk, client, _ASK_HELPER, _CALL)
    other = await talk.agent("Other")
    body = {"model": other.agent_id, "messages": _with_result(first), "tools": [CLOCK]}
    assert (await post_completion(other, body)).status_code == 200
    assert "A secret." not in str(other.asked[-1]["messages"])
    colleague = await talk.world.user("tenant_admin", tenant_id=talk.client.tenant_id)
    answer = await colleague.post("/v1/chat/completions", {**body, "model": talk.agent_id})
    assert answer.status_code == 200
    assert answer.json()["conversation_id"] != first.conversation_id
    assert "A secret." not in str(talk.asked[-1]["messages"])


async def test_a_result_that_is_missing_is_explained_in_the_conversation(
    talk: Talker, client: AsyncOpenAI
) -> None:
    first = await _call_clock(talk, client)
    await client.chat.completions.create(
        model=talk.agent_id,
        messages=[{"role": "user", "content": "Never mind"}],
        tools=[CLOCK],
        extra_body={"conversation_id": first.conversation_id},
    )
    assert [(item["role"], item["content"]) for item in talk.asked[1]["messages"][1:]] == [
        ("user", "Hi"),
        ("assistant", "Let me look."),
        ("tool", "The caller did not return a result of this call."),
        ("user", "Never mind"),
    ]


async def test_results_go_on_with_a_conversation_that_is_named(
    talk: Talker, client: AsyncOpenAI
) -> None:
    first = await _call_clock(talk, client)
    body = {"conversation_id": first.conversation_id}
    second = await _go_on(talk, client, first, extra_body=body)
    assert second.conversation_id == first.conversation_id
    assert [(item["role"], item["content"]) for item in talk.asked[1]["messages"][1:]] == [
        ("user", "Hi"),
        ("assistant", "Let me look."),
        ("tool", "09:00"),
    ]


async def test_calls_and_results_of_the_clients_own_history_are_passed_on(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history: list[Any] = [
        *HI,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
        *HI,
    ]
    await any_client.chat.completions.create(model=talk.agent_id, messages=history)
    assert talk.asked[-1]["messages"][1:] == history


async def test_the_older_form_of_functions_works(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            talk.script(Reply(texts=[], calls=[_CALL]), Reply(texts=["It is 9."]))
            fields: Any = {"functions": [CLOCK["function"]], "function_call": {"name": "clock"}}
            answer = await client.chat.completions.create(
                model=talk.agent_id, messages=HI, stream=stream, **fields
            )
            if stream:
                chunks = await read_chunks(answer)
                assert chunks[-1].choices[0].finish_reason == "function_call"
                [called] = [
                    chunk.choices[0].delta.function_call
                    for chunk in chunks
                    if chunk.choices[0].delta.function_call
                ]
                message: Any = {"role": "assistant", "content": None}
                message["function_call"] = called.model_dump()
            else:
                assert answer.choices[0].finish_reason == "function_call"
                message = answer.choices[0].message.model_dump(exclude_none=True)
            assert message["function_call"]["name"] == "clock"
            assert talk.asked[-1]["tool_choice"]["function"] == {"name": "clock"}
            result = {"role": "function", "name": "clock", "content": "09:00"}
            await client.chat.completions.create(
                model=talk.agent_id, messages=[*HI, message, result]
            )
            *_, called_before, shown = talk.asked[-1]["messages"]
            assert called_before["tool_calls"][0]["function"]["name"] == "clock"
            assert (shown["role"], shown["content"]) == ("tool", "09:00")
            assert shown["tool_call_id"] == called_before["tool_calls"][0]["id"]


async def test_a_choice_of_functions_is_passed_on(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    for choice in ("none", "required", named):
        with subtests.test(choice=choice):
            talk.script(Reply())
            await post_completion(
                talk, {"tools": [CLOCK], "tool_choice": choice, "parallel_tool_calls": False}
            )
            assert talk.asked[-1]["tool_choice"] == choice
            assert talk.asked[-1]["parallel_tool_calls"] is False
    await post_completion(talk, {"tools": [CLOCK], "tool_choice": "auto"})
    assert "tool_choice" not in talk.asked[-1]


async def test_a_model_that_has_to_call_something_may_answer_afterwards(
    talk: Talker, client: AsyncOpenAI
) -> None:
    await talk.with_helper()
    talk.script(Reply(texts=[], calls=[_ASK_HELPER]), Reply(texts=["Done."]))
    answer = await post_completion(talk, {"tool_choice": "required"})
    assert answer.json()["choices"][0]["message"]["content"] == "Done."
    assert "tool_choice" not in talk.asked[1]


def _function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


async def test_a_wrong_function_is_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    await talk.with_helper()
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answered = {"role": "assistant", "tool_calls": [call]}
    stray = {"role": "tool", "tool_call_id": "c2", "content": "x"}
    for body, field, words in (
        ({"tools": [_function("delegate_to_helper")]}, "tools", "delegate_to_helper"),
        ({"tools": [_function("a"), _function("a")]}, "tools.1.function.name", "twice"),
        ({"tools": [_function("two words")]}, "tools.0.function.name", ""),
        ({"tools": [{"type": "custom", "custom": {"name": "a"}}]}, "tools.0.type", "function"),
        ({"tools": [{"type": "function"}]}, "tools.0.function", "required"),
        ({"tools": [_function("a")] * 129}, "tools", ""),
        ({"tool_choice": "perhaps"}, "tool_choice", "auto"),
        ({"tool_choice": {"type": "function", "function": {"name": "b"}}}, "tool_choice", "b"),
        ({"messages": [*HI, answered, stray]}, "messages.2.tool_call_id", "call"),
        ({"messages": [stray]}, "messages.0.tool_call_id", "call"),
    ):
        with subtests.test(field=field, words=words):
            answer = await post_completion(talk, body)
            assert answer.status_code == 422, answer.text
            error = answer.json()["error"]
            assert set(error["details"]) == {field}
            assert words in error["details"][field]
            assert (error["param"], error["type"]) == (field, "invalid_request_error")
    assert talk.asked == []


async def test_the_functions_of_a_visitor_count_as_text(talk: Talker, visitor: AsyncOpenAI) -> None:
    long = {"type": "function", "function": {"name": "f", "description": "x" * 100_001}}
    with pytest.raises(openai.UnprocessableEntityError) as refusal:
        await visitor.chat.completions.create(
            model=talk.agent_id,
            messages=HI,
            tools=[long],
        )
    assert refusal.value.param == "messages"


async def test_results_are_sent_again_after_a_failure(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    talk.script(Reply(calls=[_CALL]), Reply(status=500), Reply(texts=["It is 9."]))
    first: Any = await any_client.chat.completions.create(
        model=talk.agent_id, messages=HI, tools=[CLOCK]
    )
    with pytest.raises(openai.InternalServerError):
        await _go_on(talk, any_client, first)
    second = await _go_on(talk, any_client, first)
    assert second.conversation_id == first.conversation_id


async def test_calls_of_an_answer_that_was_cut_off_say_so(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    talk.script(Reply(calls=[_CALL], finish_reason="length"))
    answer: Any = await any_client.chat.completions.create(
        model=talk.agent_id, messages=HI, tools=[CLOCK]
    )
    assert answer.choices[0].finish_reason == "length"


async def test_a_visitor_does_not_choose_the_agents_tools(
    talk: Talker, visitor: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    await talk.with_helper()
    named: Any = {"type": "function", "function": {"name": "delegate_to_helper"}}
    for choice in ("required", named):
        with subtests.test(choice=choice):
            with pytest.raises(openai.UnprocessableEntityError) as refusal:
                await visitor.chat.completions.create(
                    model=talk.agent_id, messages=HI, tool_choice=choice
                )
            assert refusal.value.param == "tool_choice"


async def test_the_calls_of_an_answer_are_shown_once(talk: Talker, client: AsyncOpenAI) -> None:
    """However often a client names it: a small request must not become a large one."""
    helper = await talk.with_helper()
    helper.script(Reply(texts=["Cloudy."]))
    first = await _call_clock(talk, client, _ASK_HELPER, _CALL)
    question, *answered = _with_result(first)
    await post_completion(talk, {"messages": [question, *answered * 3], "tools": [CLOCK]})
    shown = [message["content"] for message in talk.asked[1]["messages"]]
    assert (shown.count("Cloudy."), shown.count("09:00")) == (1, 3)


async def test_calls_of_an_answer_that_are_too_long_are_not_shown(
    talk: Talker, client: AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_results, "_MAX_CHARS", 1000)
    helper = await talk.with_helper()
    helper.script(Reply(texts=["Cloudy. " * 200]))
    first = await _call_clock(talk, client, _ASK_HELPER, _CALL)
    answer = await post_completion(talk, {"messages": _with_result(first), "tools": [CLOCK]})
    assert answer.json()["conversation_id"] == first.conversation_id
    assert [item["role"] for item in talk.asked[1]["messages"][1:]] == ["user", "assistant", "tool"]


async def test_the_older_form_gets_one_call_at_a_time(talk: Talker) -> None:
    talk.script(Reply(texts=[], calls=[_CALL, ("clock", {"zone": "CET"})]))
    answer = await post_completion(talk, {"functions": [CLOCK["function"]]})
    [stored] = (await list_messages(talk, answer.json()["conversation_id"]))[1]["tool_calls"]
    assert stored["input"] == {"zone": "UTC"}


async def test_a_large_result_arrives_whole(talk: Talker, client: AsyncOpenAI) -> None:
    """Although it is larger than the history that a model sees otherwise."""
    result = "1,2;" * 20_000
    first = await _call_clock(talk, client)
    await client.chat.completions.create(
        model=talk.agent_id,
        messages=_with_result(first, result),
        tools=[CLOCK],
        extra_body={"conversation_id": first.conversation_id},
    )
    assert [(item["role"], item["content"]) for item in talk.asked[1]["messages"][1:]] == [
        ("user", "Hi"),
        ("assistant", "Let me look."),
        ("tool", result),
    ]
