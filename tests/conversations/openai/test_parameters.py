"""Parameters of a completion: passed on, refused, or limited by the agent."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.conversations.chat.conversation_helpers import list_ids, list_messages
from tests.conversations.openai.completions import HI, model_messages, post_completion, read_chunks
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World


async def test_parameters_reach_the_model(
    talk: Talker, any_client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    parameters: dict[str, Any] = {
        "stop": ["END", "STOP"],
        "seed": 7,
        "top_p": 0.5,
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "logit_bias": {"50256": -100.0},
        "reasoning_effort": "low",
        "verbosity": "low",
        "user": "somebody",
        "metadata": {"order": "42"},
        "response_format": {"type": "json_object"},
    }
    for stream in (False, True):
        with subtests.test(stream=stream):
            answer = await any_client.chat.completions.create(
                model=talk.agent_id, messages=HI, stream=stream, **parameters
            )
            if stream:
                await read_chunks(answer)
            assert parameters.items() <= talk.asked[-1].items()


async def test_one_stop_word_may_come_alone(talk: Talker) -> None:
    await post_completion(talk, {"stop": "END"})
    assert talk.asked[-1]["stop"] == ["END"]


async def test_values_that_change_nothing_are_accepted(talk: Talker) -> None:
    body = {
        "n": 1,
        "logprobs": False,
        "top_logprobs": 0,
        "modalities": ["text"],
        "service_tier": "auto",
        "tools": [],
        "stop": None,
        "logit_bias": {},
        "metadata": None,
    }
    answer = await post_completion(talk, body)
    assert answer.status_code == 200, answer.text
    assert set(talk.asked[-1]) == {"model", "messages", "temperature", "max_tokens"}


async def test_what_cannot_be_honoured_is_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    for body, field in (
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "alloy"}}, "audio"),
        ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
        ({"web_search_options": {}}, "web_search_options"),
    ):
        with subtests.test(field=field):
            answer = await post_completion(talk, body)
            assert answer.status_code == 422
            error = answer.json()["error"]
            assert set(error["details"]) == {field}
            assert (error["type"], error["param"]) == ("invalid_request_error", field)
    assert talk.asked == []


async def test_a_limit_above_the_agents_is_reduced_and_said(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    talk = await talker(world, models, max_tokens=100)
    for body in ({}, {"stream": True}):
        for wanted, header in ((100, None), (40, None), (500, "100")):
            with subtests.test(body=body, wanted=wanted):
                answer = await post_completion(talk, {**body, "max_tokens": wanted})
                assert answer.headers.get("x-parley-max-tokens") == header
                assert talk.asked[-1]["max_tokens"] == min(wanted, 100)


async def test_the_reason_of_the_end_is_the_models(
    talk: Talker, any_client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for reason in ("stop", "length", "content_filter"):
        with subtests.test(reason=reason):
            talk.script(Reply(finish_reason=reason))
            answer = await any_client.chat.completions.create(model=talk.agent_id, messages=HI)
            assert answer.choices[0].finish_reason == reason
            stream = await any_client.chat.completions.create(
                model=talk.agent_id, messages=HI, stream=True
            )
            assert (await read_chunks(stream))[-1].choices[0].finish_reason == reason
            assert (await talk.say("Hi"))["finish_reason"] == reason


async def test_a_conversation_goes_on_by_its_id(talk: Talker, client: AsyncOpenAI) -> None:
    first: Any = await client.chat.completions.create(model=talk.agent_id, messages=HI)
    said = first.choices[0].message.model_dump(exclude_none=True)
    instruction = {"role": "system", "content": "Be brief."}
    second: Any = await client.chat.completions.create(
        model=talk.agent_id,
        # What the conversation has already may come along.
        messages=[*HI, said, instruction, {"role": "user", "content": "Go on"}],
        extra_body={"conversation_id": first.conversation_id},
    )
    assert second.conversation_id == first.conversation_id
    assert model_messages(talk) == [
        ("system", "You are a test."),
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "Hello there"),
        ("user", "Go on"),
    ]
    messages = await list_messages(talk, first.conversation_id)
    assert [item["content"] for item in messages] == ["Hi", "Hello there", "Go on", "Hello there"]


async def test_another_users_conversation_is_not_found(talk: Talker) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    colleague = await talk.world.user("tenant_admin", tenant_id=talk.client.tenant_id)
    body = {"model": talk.agent_id, "messages": HI, "conversation_id": conversation_id}
    answer = await colleague.post("/v1/chat/completions", body)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "conversation_not_found"


async def test_a_visitor_names_no_conversation(talk: Talker, visitor: AsyncOpenAI) -> None:
    first: Any = await visitor.chat.completions.create(model=talk.agent_id, messages=HI)
    with pytest.raises(openai.UnprocessableEntityError) as refusal:
        await visitor.chat.completions.create(
            model=talk.agent_id,
            messages=HI,
            extra_body={"conversation_id": first.conversation_id},
        )
    assert refusal.value.param == "conversation_id"


async def test_an_answer_that_is_not_stored_leaves_nothing_but_its_usage(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for number, stream in enumerate((False, True), 1):
        with subtests.test(stream=stream):
            answer = await client.chat.completions.create(
                model=talk.agent_id, messages=HI, stream=stream, store=False
            )
            if stream:
                await read_chunks(answer)
            assert await list_ids(talk) == []
            stats = (await talk.client.get(f"{talk.path}/stats")).json()
            assert stats["total_tokens_used"] == 18 * number


async def test_everything_that_a_visitor_sends_along_counts(
    talk: Talker, visitor: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    long = "x" * 100_001
    schema: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"a": long}}}
    called = {"id": long[:200], "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calls: Any = [{"role": "assistant", "tool_calls": [called] * 100}] * 6
    for name, body in (
        ("format", {"response_format": schema}),
        ("stop", {"stop": [long]}),
        ("calls", {"messages": [*calls, *HI]}),
    ):
        with subtests.test(name=name), pytest.raises(openai.UnprocessableEntityError):
            await visitor.chat.completions.create(
                **{"model": talk.agent_id, "messages": HI, **body}
            )
    assert talk.asked == []


async def test_what_a_visitor_says_is_kept(talk: Talker, visitor: AsyncOpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refusal:
        await visitor.chat.completions.create(model=talk.agent_id, messages=HI, store=False)
    assert refusal.value.param == "store"


async def test_names_of_participants_reach_the_model(talk: Talker) -> None:
    said = [{"role": "user", "content": "Hi", "name": "Ann"}, {"role": "user", "content": "Go"}]
    await post_completion(talk, {"messages": said})
    assert talk.asked[-1]["messages"][1:] == said
