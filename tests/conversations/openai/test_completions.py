"""Whole completions of an agent, through a stock OpenAI client."""

import re
import time
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.conversations.embed.factories import KEYS_PATH
from tests.conversations.openai.completions import (
    HI,
    model_messages,
    post_completion,
    read_chunks,
    text_of,
)
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World

# Whole answers


async def test_a_stock_client_chats_with_an_agent(talk: Talker, any_client: AsyncOpenAI) -> None:
    talk.script(Reply(texts=["The shop ", "opens at 9."], usage=(40, 8)))
    before = int(time.time())
    completion = await any_client.chat.completions.create(
        model=talk.agent_id, messages=[{"role": "user", "content": "When does the shop open?"}]
    )
    assert re.fullmatch(r"chatcmpl-msg_[0-9a-z]{26}", completion.id)
    assert (completion.object, completion.model) == ("chat.completion", talk.agent_id)
    assert before - 5 <= completion.created <= time.time() + 5
    [choice] = completion.choices
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None)
    assert (choice.message.role, choice.message.content) == ("assistant", "The shop opens at 9.")
    assert choice.message.refusal is None
    assert not choice.message.tool_calls
    assert completion.usage is not None
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (40, 8, 48)


async def test_a_completion_has_exactly_the_documented_fields(talk: Talker) -> None:
    completion = (await post_completion(talk, {})).json()
    assert set(completion) == {
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "conversation_id",
    }
    assert set(completion["choices"][0]) == {"index", "message", "finish_reason", "logprobs"}
    assert set(completion["choices"][0]["message"]) == {"role", "content", "refusal"}
    assert set(completion["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}


async def test_the_client_learns_the_requests_id(talk: Talker, client: AsyncOpenAI) -> None:
    completion = await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert completion._request_id is not None
    assert completion._request_id.startswith("req_")


async def test_the_agents_prompt_comes_first(talk: Talker, any_client: AsyncOpenAI) -> None:
    await any_client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert model_messages(talk) == [("system", "You are a test."), ("user", "Hi")]


async def test_the_client_sends_its_history(talk: Talker, any_client: AsyncOpenAI) -> None:
    await any_client.chat.completions.create(
        model=talk.agent_id,
        messages=[
            {"role": "user", "content": "First?"},
            {"role": "assistant", "content": "One."},
            {"role": "user", "content": "Second?"},
        ],
    )
    assert model_messages(talk)[1:] == [
        ("user", "First?"),
        ("assistant", "One."),
        ("user", "Second?"),
    ]


async def test_a_request_does_not_include_earlier_ones(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    for _ in range(2):
        await any_client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert len(model_messages(talk)) == 2


async def test_each_request_is_a_conversation_of_its_own(talk: Talker, client: AsyncOpenAI) -> None:
    conversation_ids = set()
    for _ in range(2):
        answer = await client.chat.completions.create(
            model=talk.agent_id,
            messages=[
                {"role": "user", "content": "Old"},
                {"role": "assistant", "content": "Older"},
                {"role": "user", "content": "New"},
            ],
        )
        assert answer.model_extra is not None
        conversation_ids.add(answer.model_extra["conversation_id"])
    assert len(conversation_ids) == 2
    path = f"/api/v1/conversations/{conversation_ids.pop()}"
    conversation = (await talk.client.get(path)).json()
    assert (conversation["source"], conversation["user_id"]) == ("openai", talk.client.user_id)
    assert (conversation["message_count"], conversation["title"]) == (2, "New")
    messages = (await talk.client.get(f"{path}/messages")).json()["data"]
    assert [message["content"] for message in messages] == ["New", "Hello there"]


async def test_a_visitors_conversation_has_no_user(talk: Talker, visitor: AsyncOpenAI) -> None:
    answer = await visitor.chat.completions.create(model=talk.agent_id, messages=HI)
    assert answer.model_extra is not None
    path = f"/api/v1/conversations/{answer.model_extra['conversation_id']}"
    conversation = (await talk.client.get(path)).json()
    assert (conversation["source"], conversation["user_id"]) == ("openai", None)
    user = await talk.world.user("agent_user", talk.client.tenant_id)
    assert (await user.get(path)).status_code == 404


async def test_used_tokens_are_in_the_statistics(talk: Talker, any_client: AsyncOpenAI) -> None:
    talk.script(Reply(usage=(40, 8)))
    await any_client.chat.completions.create(model=talk.agent_id, messages=HI)
    stream = await any_client.chat.completions.create(model=talk.agent_id, messages=HI, stream=True)
    await read_chunks(stream)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_conversations"] == 2
    assert stats["total_messages"] == 4
    assert stats["total_tokens_used"] == 96


async def test_a_completion_updates_the_last_use_of_the_key(
    talk: Talker, visitor: AsyncOpenAI
) -> None:
    await visitor.chat.completions.create(model=talk.agent_id, messages=HI)
    [key] = (await talk.client.get(KEYS_PATH)).json()["data"]
    assert key["last_used_at"] is not None


# Parameters of the model


async def test_the_temperature_is_the_clients_or_else_the_agents(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[float | None, float]] = [
        (None, 0.3),
        (0, 0.0),
        (0.2, 0.2),
        (1, 1.0),
        (1.7, 1.7),
    ]
    for temperature, expected in cases:
        with subtests.test(temperature=temperature, expected=expected):
            talk = await talker(world, models, temperature=0.3)
            await post_completion(talk, {"temperature": temperature})
            assert talk.asked[-1]["temperature"] == expected


async def test_an_answer_is_never_longer_than_the_agents_limit(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 100),
        ({"max_tokens": 50}, 50),
        ({"max_tokens": 100}, 100),
        ({"max_tokens": 5000}, 100),
        ({"max_completion_tokens": 30}, 30),
        ({"max_completion_tokens": 5000}, 100),
        ({"max_tokens": 60, "max_completion_tokens": 30}, 30),
        ({"max_tokens": None, "max_completion_tokens": None}, 100),
    ]
    for limits, expected in cases:
        with subtests.test(limits=limits, expected=expected):
            talk = await talker(world, models, max_tokens=100)
            await post_completion(talk, limits)
            assert talk.asked[-1]["max_tokens"] == expected


async def test_a_response_format_is_passed_on(talk: Talker, any_client: AsyncOpenAI) -> None:
    schema = {"type": "object", "properties": {"hour": {"type": "integer"}}}
    response_format: Any = {
        "type": "json_schema",
        "json_schema": {"name": "hours", "schema": schema},
    }
    talk.script(Reply(texts=['{"hour":', "9}"]))
    completion = await any_client.chat.completions.create(
        model=talk.agent_id, messages=HI, response_format=response_format
    )
    assert talk.asked[-1]["response_format"] == response_format
    assert completion.choices[0].message.content == '{"hour":9}'


async def test_without_a_response_format_none_is_passed_on(talk: Talker) -> None:
    await post_completion(talk, {})
    await post_completion(talk, {"response_format": None})
    assert all("response_format" not in request for request in talk.asked)


async def test_a_refusal_is_not_the_content(talk: Talker, any_client: AsyncOpenAI) -> None:
    talk.script(Reply(is_refusal=True, texts=["I will", " not."]))
    answer = await any_client.chat.completions.create(model=talk.agent_id, messages=HI)
    message = answer.choices[0].message
    assert (message.content, message.refusal) == (None, "I will not.")
    stream = await any_client.chat.completions.create(model=talk.agent_id, messages=HI, stream=True)
    chunks = await read_chunks(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(delta.refusal or "" for delta in deltas) == "I will not."
    assert text_of(chunks) == ""


async def test_the_platforms_own_reply_says_that_it_is_a_refusal(talk: Talker) -> None:
    talk.script(Reply(is_refusal=True, texts=["I will not."]))
    reply = await talk.say("Hi")
    assert (reply["message"]["content"], reply["is_refusal"]) == ("I will not.", True)


async def test_an_answer_that_is_not_stored_names_no_conversation(
    talk: Talker, client: AsyncOpenAI
) -> None:
    answer: Any = await client.chat.completions.create(
        model=talk.agent_id, messages=HI, store=False
    )
    assert answer.conversation_id is None
    stream = await client.chat.completions.create(
        model=talk.agent_id, messages=HI, store=False, stream=True
    )
    assert not any(hasattr(chunk, "conversation_id") for chunk in await read_chunks(stream))
