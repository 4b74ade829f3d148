"""Streamed completions, and failures of the model."""

import asyncio
import json

import openai
import pytest
from openai import AsyncOpenAI

from tests.agents.llm.answers import StepHold
from tests.conversations.embed.sites import Latch
from tests.conversations.openai.completions import (
    HI,
    code_of,
    post_completion,
    read_chunks,
    text_of,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker

# Streams


async def test_a_stream_sends_the_answer_in_chunks(talk: Talker, any_client: AsyncOpenAI) -> None:
    hold = StepHold()
    talk.script(Reply(texts=["The ", "shop ", "opens."], hold=hold))
    stream = await any_client.chat.completions.create(model=talk.agent_id, messages=HI, stream=True)
    chunks = []
    async for chunk in stream:
        chunks.append(chunk)
        hold.release()
    assert text_of(chunks) == "The shop opens."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * 4 + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].id.startswith("chatcmpl-msg_")
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk.model for chunk in chunks} == {talk.agent_id}
    assert len({chunk.created for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


async def test_a_stream_includes_its_usage_on_request(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    talk.script(Reply(usage=(40, 8)))
    stream = await any_client.chat.completions.create(
        model=talk.agent_id, messages=HI, stream=True, stream_options={"include_usage": True}
    )
    *chunks, last = await read_chunks(stream)
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.choices == []
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (40, 8)
    assert last.usage.total_tokens == 48


async def test_a_stream_has_no_usage_unless_requested(talk: Talker, client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model=talk.agent_id, messages=HI, stream=True, stream_options={"include_usage": False}
    )
    chunks = await read_chunks(stream)
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


async def test_a_stream_is_server_sent_events_that_end_with_done(talk: Talker) -> None:
    answer = await post_completion(talk, {"stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = answer.text.removesuffix("\n\n").split("\n\n")
    assert all(block.startswith("data: ") for block in blocks)
    assert blocks[-1] == "data: [DONE]"
    for block in blocks[:-1]:
        assert json.loads(block.removeprefix("data: "))["object"] == "chat.completion.chunk"


async def test_without_a_stream_the_answer_is_whole(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    cases: list[bool | None] = [None, False]
    for stream in cases:
        with subtests.test(stream=stream):
            answer = await post_completion(
                talk, {"stream": stream, "stream_options": {"include_usage": True}}
            )
            assert answer.json()["object"] == "chat.completion"


async def test_text_arrives_before_the_answer_is_complete(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    latch = Latch(first=1)
    talk.script(Reply(texts=["Early", " late"], hold=latch))
    texts = []
    try:
        stream = await any_client.chat.completions.create(
            model=talk.agent_id, messages=HI, stream=True
        )
        async for chunk in stream:
            texts.append(chunk.choices[0].delta.content or "")
            if "Early" in texts:
                latch.open()
    finally:
        latch.open()
    assert "".join(texts) == "Early late"


async def _list_messages(talk: Talker) -> list[tuple[str, str]]:
    """Returns content and status of the messages of the agent's only conversation."""
    [conversation] = (await talk.client.get(f"{talk.path}/conversations")).json()["data"]
    path = f"/api/v1/conversations/{conversation['id']}/messages"
    messages = (await talk.client.get(path)).json()["data"]
    return [(message["content"], message["status"]) for message in messages]


async def test_closing_the_stream_ends_the_turn_and_stores_the_partial_answer(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    latch = Latch(first=1)
    talk.script(Reply(texts=["Half", " lost"], hold=latch))
    try:
        stream = await any_client.chat.completions.create(
            model=talk.agent_id, messages=HI, stream=True
        )
        async for chunk in stream:
            if chunk.choices[0].delta.content == "Half":
                break
        await stream.close()
        async with asyncio.timeout(10):
            while not (messages := await _list_messages(talk)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    finally:
        latch.open()
    assert messages == [("Hi", "complete"), ("Half", "interrupted")]


# Failures


async def test_a_providers_refusal_has_its_status_and_its_words(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            talk.script(Reply(status=400, message="the window is too small"))
            with pytest.raises(openai.BadRequestError) as failure:
                await client.chat.completions.create(
                    model=talk.agent_id, messages=HI, stream=stream
                )
            assert code_of(failure.value) == "provider_rejected"
            assert failure.value.type == "invalid_request_error"
            assert "the window is too small" in failure.value.message
            assert failure.value.response.headers["x-should-retry"] == "false"


async def test_retries_are_the_clients_own(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            before = len(talk.asked)
            headers = {"Retry-After": "0.1"}
            talk.script(Reply(status=429, headers=headers, message="slow down"))
            patient = client.with_options(max_retries=1)
            with pytest.raises(openai.RateLimitError) as failure:
                await patient.chat.completions.create(
                    model=talk.agent_id, messages=HI, stream=stream
                )
            assert len(talk.asked) == before + 2
            assert (failure.value.code, failure.value.type) == ("rate_limited", "rate_limit_error")
            assert failure.value.response.headers["retry-after"] == "1"


async def test_a_stream_that_fails_in_the_middle_raises_after_the_text_before_it(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    talk.script(Reply(texts=["Half", " lost"], error_after=1))
    stream = await any_client.chat.completions.create(model=talk.agent_id, messages=HI, stream=True)
    texts: list[str] = []

    async def read() -> None:
        async for chunk in stream:
            texts.extend(choice.delta.content or "" for choice in chunk.choices)

    with pytest.raises(openai.APIError) as failure:
        await read()
    assert "".join(texts) == "Half"
    assert code_of(failure.value) == "provider_error"
    assert await _list_messages(talk) == [("Hi", "complete"), ("Half", "failed")]


async def test_a_failed_stream_ends_with_the_error_and_done(talk: Talker) -> None:
    talk.script(Reply(texts=["Half", " lost"], error_after=1))
    answer = await post_completion(talk, {"stream": True})
    *_, last, done = answer.text.removesuffix("\n\n").split("\n\n")
    error = json.loads(last.removeprefix("data: "))["error"]
    assert {"code", "message", "type", "param"} <= set(error)
    assert done == "data: [DONE]"
    assert '"finish_reason":"stop"' not in answer.text


_PROVIDER_MESSAGE = "Incorrect API key provided: sk-scripted-0123456789 of org-Acme"


async def test_visitors_do_not_see_the_providers_message(
    talk: Talker, visitor: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            talk.script(Reply(status=401, message=_PROVIDER_MESSAGE))

            async def ask() -> None:
                completion = await visitor.chat.completions.create(
                    model=talk.agent_id,
                    messages=HI,
                    stream=stream,  # noqa: B023
                )
                assert isinstance(completion, openai.AsyncStream)
                await read_chunks(completion)

            with pytest.raises(openai.APIError) as failure:
                await ask()
            assert code_of(failure.value) == "unavailable"
            for secret in ("sk-scripted", "org-Acme", talk.model):
                assert secret not in f"{failure.value} {failure.value.body}"


async def test_the_providers_key_is_masked_for_the_owner(talk: Talker, client: AsyncOpenAI) -> None:
    talk.script(Reply(status=401, message=_PROVIDER_MESSAGE))
    with pytest.raises(openai.ConflictError) as failure:
        await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert "org-Acme" in str(failure.value)
    assert "sk-scripted" not in f"{failure.value} {failure.value.body}"
