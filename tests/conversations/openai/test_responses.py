"""Responses with a stock client: texts, functions, conversations, streams."""

import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from app.domain.conversations.openai import messages
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import list_ids, list_messages
from tests.conversations.openai.completions import code_of, model_messages
from tests.model_server import Reply
from tests.scripted_agents import Talker

CLOCK: dict[str, Any] = {
    "type": "function",
    "name": "clock",
    "description": "Tells the time",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
    "strict": True,
}
_CALL = ("clock", {"zone": "UTC"})


async def ask(talk: Talker, client: AsyncOpenAI, said: Any = "Hi", **more: Any) -> Any:
    return await client.responses.create(model=talk.agent_id, input=said, **more)


def calls_of(response: Any) -> list[Any]:
    return [item for item in response.output if item.type == "function_call"]


def output_for(response: Any, content: str = "09:00") -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": content}
        for call in calls_of(response)
    ]


async def test_a_response_has_the_answer_and_its_usage(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    response = await ask(talk, any_client, instructions="Be brief.", metadata={"order": "42"})
    assert response.output_text == "Hello there"
    assert (response.status, response.model, response.error) == ("completed", talk.agent_id, None)
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (11, 7, 18)
    assert (response.instructions, response.metadata) == ("Be brief.", {"order": "42"})
    assert [content for _, content in model_messages(talk)] == [
        "You are a test.",
        "Be brief.",
        "Hi",
    ]
    assert talk.asked[-1]["metadata"] == {"order": "42"}


async def test_a_conversation_goes_on_after_a_response(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    said = [
        {"role": "developer", "content": "Remember it."},
        {"role": "user", "content": "I am Ann."},
        {"role": "user", "content": "Hi"},
    ]
    first = await ask(talk, any_client, said, instructions="Be brief.")
    second = await ask(talk, any_client, "Who am I?", previous_response_id=first.id)
    assert second.conversation.id == first.conversation.id
    # Everything but the instructions, which belong to their response.
    texts = ["You are a test.", "Remember it.", "I am Ann.", "Hi", "Hello there", "Who am I?"]
    assert "\n\n".join(text for _, text in model_messages(talk)) == "\n\n".join(texts)
    third = await ask(talk, any_client, "And now?", previous_response_id=second.id)
    assert third.conversation.id == first.conversation.id
    assert model_messages(talk)[-1] == ("user", "And now?")


async def test_only_the_last_answer_is_continued(talk: Talker, any_client: AsyncOpenAI) -> None:
    first = await ask(talk, any_client)
    await ask(talk, any_client, "More", previous_response_id=first.id)
    with pytest.raises(openai.ConflictError) as refusal:
        await ask(talk, any_client, "Again", previous_response_id=first.id)
    assert code_of(refusal.value) == "not_last_answer"
    assert refusal.value.response.headers["x-should-retry"] == "false"
    # Nobody waits for a turn that never began.
    await ask(talk, any_client, "Again")


async def test_a_conversation_goes_on_by_its_id(talk: Talker, client: AsyncOpenAI) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    for wanted in (conversation_id, {"id": conversation_id}):
        response = await ask(talk, client, "Go on", conversation=wanted)
        assert response.conversation.id == conversation_id
    assert len(await list_messages(talk, conversation_id)) == 6


async def test_a_call_of_a_function_ends_the_response(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    talk.script(Reply(texts=["Let me look."], calls=[_CALL]), Reply(texts=["It is 9."]))
    first = await ask(talk, any_client, tools=[CLOCK], tool_choice={"type": "function", **_NAME})
    assert first.output_text == "Let me look."
    [call] = calls_of(first)
    assert (call.name, json.loads(call.arguments)) == ("clock", {"zone": "UTC"})
    function = {name: value for name, value in CLOCK.items() if name != "type"}
    assert talk.asked[0]["tools"] == [{"type": "function", "function": function}]
    assert talk.asked[0]["tool_choice"] == {"type": "function", "function": _NAME}
    second = await ask(
        talk, any_client, output_for(first), previous_response_id=first.id, tools=[CLOCK]
    )
    assert second.output_text == "It is 9."
    assert second.conversation.id == first.conversation.id
    assert [message["role"] for message in talk.asked[1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert talk.asked[1]["messages"][-1]["content"] == "09:00"


_NAME = {"name": "clock"}


async def test_a_client_may_send_its_whole_history(talk: Talker, any_client: AsyncOpenAI) -> None:
    """As agent frameworks do by default."""
    talk.script(Reply(texts=["Looking."], calls=[_CALL, _CALL]), Reply(texts=["It is 9."]))
    asked = [{"role": "user", "content": "Hi"}]
    first = await ask(talk, any_client, asked, tools=[CLOCK])
    items = [item.model_dump(exclude_none=True) for item in first.output]
    history = [*asked, *items, *output_for(first)]
    second = await ask(talk, any_client, history, tools=[CLOCK])
    assert second.conversation.id == first.conversation.id
    shown = talk.asked[1]["messages"][1:]
    assert [message["role"] for message in shown] == ["user", "assistant", "tool", "tool"]
    assert (shown[1]["content"], len(shown[1]["tool_calls"])) == ("Looking.", 2)


async def test_items_may_be_named_by_their_ids(talk: Talker, any_client: AsyncOpenAI) -> None:
    """As the AI SDK does, because responses are stored."""
    talk.script(Reply(texts=["Looking."], calls=[_CALL]), Reply(texts=["It is 9."]))
    asked = [{"role": "user", "content": "Hi"}]
    first = await ask(talk, any_client, asked, tools=[CLOCK])
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    await ask(talk, any_client, [*asked, *references, *output_for(first)], tools=[CLOCK])
    shown = talk.asked[1]["messages"][1:]
    assert [message["role"] for message in shown] == ["user", "assistant", "tool"]
    assert shown[1]["content"] == "Looking."
    assert shown[1]["tool_calls"][0]["function"]["arguments"] == '{"zone":"UTC"}'


async def test_a_response_has_the_wanted_structure(talk: Talker, client: AsyncOpenAI) -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    named = {"name": "time", "schema": schema, "strict": True}
    talk.script(Reply(texts=['{"at": "9"}']))
    text: Any = {"format": {"type": "json_schema", **named}, "verbosity": "low"}
    response = await ask(talk, client, text=text)
    assert json.loads(response.output_text) == {"at": "9"}
    assert talk.asked[-1]["response_format"] == {"type": "json_schema", "json_schema": named}
    assert talk.asked[-1]["verbosity"] == "low"
    assert response.text.format.type == "json_schema"


async def test_parameters_reach_the_model(talk: Talker, client: AsyncOpenAI) -> None:
    await ask(
        talk, client, temperature=1.5, top_p=0.5, user="somebody", reasoning={"effort": "low"}
    )
    wanted = {"temperature": 1.5, "top_p": 0.5, "user": "somebody", "reasoning_effort": "low"}
    assert wanted.items() <= talk.asked[-1].items()


async def test_an_incomplete_answer_says_why(talk: Talker, any_client: AsyncOpenAI) -> None:
    for end, reason in (("length", "max_output_tokens"), ("content_filter", "content_filter")):
        talk.script(Reply(finish_reason=end))
        response = await ask(talk, any_client)
        assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)
        assert [item.status for item in response.output] == ["incomplete"]


async def test_a_response_that_is_not_stored_leaves_nothing(
    talk: Talker, client: AsyncOpenAI
) -> None:
    response = await ask(talk, client, store=False)
    assert (response.output_text, response.conversation) == ("Hello there", None)
    assert await list_ids(talk) == []
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(response.id)


async def test_what_cannot_be_honoured_is_refused(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    call = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    for body, field in (
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"type": "function"}]}, "tools.0.name"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"truncation": "disabled"}, "truncation"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice"),
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"reasoning": {"summary": "auto"}}, "reasoning.summary"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
        ({"background": True, "stream": True}, "stream"),
        ({"background": True, "store": False}, "store"),
        ({"conversation": "cnv_1", "previous_response_id": "resp_1"}, "conversation"),
        ({"input": [call]}, "input"),
        ({"input": [{"role": "assistant", "content": "Hi"}]}, "input"),
        ({"input": [{"content": "Hi"}]}, "input.0.role"),
        ({"input": [{"type": "computer_call"}]}, "input.0.type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0.id"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input.0.content.0"),
        ({"input": "x" * 1_000_001}, "input"),
    ):
        with subtests.test(field=field):
            answer = await talk.client.post(
                "/v1/responses", {"model": talk.agent_id, "input": "Hi", **body}
            )
            assert answer.status_code == 422, answer.text
            assert set(answer.json()["error"]["details"]) == {field}
    assert talk.asked == []


async def test_unknown_responses_are_not_found(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    stranger = await talk.world.user("tenant_admin", tenant_id=talk.client.tenant_id)
    answer = await stranger.post("/v1/responses", {"model": talk.agent_id, "input": "Hi"})
    other = await talk.agent("Other")
    own = await ask(other, client)
    for name, response_id in (
        ("none", "resp_01k9x3m7e8c0v2q4r6t8w0y2a4"),
        ("no id", "x"),
        ("a colleague's", answer.json()["id"]),
        ("another agent's", own.id),
    ):
        with subtests.test(name=name):
            with pytest.raises(openai.NotFoundError) as refusal:
                await ask(talk, client, previous_response_id=response_id)
            assert code_of(refusal.value) == "response_not_found"


async def test_a_visitor_uses_the_responses_of_its_key_only(
    talk: Talker, client: AsyncOpenAI, visitor: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    own = await ask(talk, client)
    with pytest.raises(openai.NotFoundError):
        await ask(talk, visitor, previous_response_id=own.id)
    for body in ({"background": True}, {"conversation": own.conversation.id}):
        with subtests.test(body=body), pytest.raises(openai.UnprocessableEntityError):
            await ask(talk, visitor, **body)
    mine = await ask(talk, visitor, instructions="Obey.")
    assert model_messages(talk)[1] == ("user", "Obey.")
    with pytest.raises(openai.AuthenticationError):
        await visitor.responses.retrieve(mine.id)


async def test_a_client_tries_again_after_a_failure(talk: Talker, any_client: AsyncOpenAI) -> None:
    talk.script(Reply(calls=[_CALL]), Reply(status=429), Reply(texts=["It is 9."]))
    first = await ask(talk, any_client, tools=[CLOCK])
    goes_on: Any = {"previous_response_id": first.id, "tools": [CLOCK]}
    # A visitor does not learn of the limit.
    with pytest.raises((openai.RateLimitError, openai.InternalServerError)):
        await ask(talk, any_client, output_for(first), **goes_on)
    second = await ask(talk, any_client, output_for(first), **goes_on)
    assert second.output_text == "It is 9."
    assert second.conversation.id == first.conversation.id
    assert [message["role"] for message in talk.asked[-1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]


async def test_what_is_kept_with_a_response_is_what_was_read(talk: Talker) -> None:
    """Anything else would be stored without a limit."""
    long = "x" * 1_000_001
    for text in ("text", "json_object"):
        wanted = {"format": {"type": text, "more": long}}
        choice = {"type": "function", "name": "clock", "more": long}
        body = {"input": "Hi", "text": wanted, "tools": [CLOCK], "tool_choice": choice}
        answer = await talk.client.post("/v1/responses", {"model": talk.agent_id, **body})
        response = answer.json()
        assert response["text"] == {"format": {"type": text}}
        assert response["tool_choice"] == {"type": "function", "name": "clock"}


async def test_items_that_are_too_long_together_are_refused(
    talk: Talker, client: AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MAX_CHARS", 200)
    talk.script(Reply(texts=["x" * 500]))
    references = [
        {"type": "item_reference", "id": (await ask(talk, client)).output[0].id} for _ in range(2)
    ]
    body = {"model": talk.agent_id, "input": [*references, {"role": "user", "content": "Go on"}]}
    answer = await talk.client.post("/v1/responses", body)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"input"}


async def test_items_that_the_conversation_has_are_not_repeated(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    talk.script(Reply(texts=["Looking."], calls=[_CALL]), Reply(texts=["It is 9."]))
    first = await ask(talk, any_client, tools=[CLOCK])
    items = [item.model_dump(exclude_none=True) for item in first.output]
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    said = [*items, *references, *output_for(first)]
    await ask(talk, any_client, said, previous_response_id=first.id, tools=[CLOCK])
    shown = talk.asked[-1]["messages"][1:]
    assert [message["role"] for message in shown] == ["user", "assistant", "tool"]


async def test_other_items_are_added_to_the_conversation(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    first = await ask(talk, any_client)
    said = [
        {"role": "user", "content": "What did the other say?"},
        {"role": "assistant", "content": "Nine."},
        {"role": "user", "content": "Thanks"},
    ]
    second = await ask(talk, any_client, said, previous_response_id=first.id)
    texts = ["Hi", "Hello there", "What did the other say?", "Nine.", "Thanks"]
    assert [content for _, content in model_messages(talk)[1:]] == texts
    await ask(talk, any_client, "And now?", previous_response_id=second.id)
    assert [content for _, content in model_messages(talk)[1:]] == [
        *texts,
        "Hello there",
        "And now?",
    ]


async def test_a_call_that_was_not_stored_is_sent_with_its_output(
    talk: Talker, client: AsyncOpenAI
) -> None:
    first = await ask(talk, client)
    talk.script(Reply(texts=[], calls=[_CALL]), Reply(texts=["It is 9."]))
    goes_on: Any = {"previous_response_id": first.id, "store": False, "tools": [CLOCK]}
    question = {"role": "user", "content": "What is the time?"}
    called = await ask(talk, client, [question], **goes_on)
    items = [item.model_dump(exclude_none=True) for item in called.output]
    last = await ask(talk, client, [question, *items, *output_for(called)], **goes_on)
    assert last.output_text == "It is 9."
    assert [message["role"] for message in talk.asked[-1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]


async def test_a_client_tries_again_after_half_an_answer(talk: Talker, client: AsyncOpenAI) -> None:
    """The conversation then has the whole one in its place."""
    helper = await talk.with_helper()
    first = await ask(talk, client)
    call = ("delegate_to_helper", {"task": "Look"})
    talk.script(Reply(texts=["Let me see."], calls=[call]), Reply(status=400), Reply(texts=["9."]))
    with pytest.raises(openai.BadRequestError):
        await ask(talk, client, "When?", previous_response_id=first.id)
    second = await ask(talk, client, "When?", previous_response_id=first.id)
    assert second.output_text == "9."
    assert [content for _, content in model_messages(talk)[1:]] == ["Hi", "Hello there", "When?"]
    stored = await list_messages(talk, first.conversation.id)
    assert [item["content"] for item in stored] == ["Hi", "Hello there", "When?", "9."]
    assert len(helper.asked) == 1


async def test_a_refusal_is_one(talk: Talker, any_client: AsyncOpenAI) -> None:
    talk.script(Reply(is_refusal=True, texts=["I will", " not."]))
    response = await ask(talk, any_client)
    [part] = response.output[0].content
    assert (part.type, part.refusal, response.output_text) == ("refusal", "I will not.", "")
