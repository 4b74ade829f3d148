"""Sub-agents in completions."""

import openai
import pytest
from openai import AsyncOpenAI

from tests.conversations.embed.sites import attach_sub_agent, offered_tools
from tests.conversations.openai.completions import HI, read_chunks, text_of
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def test_a_completion_does_not_show_the_sub_agents_work(
    talk: Talker, any_client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            child = await talk.agent("Helper")
            await attach_sub_agent(talk, child)
            child.script(Reply(texts=["The safe code is 4711"]))
            talk.script(
                Reply(texts=[], calls=[("delegate_to_helper", {"task": "x"})]),
                Reply(texts=["Done."]),
            )
            completion = await any_client.chat.completions.create(
                model=talk.agent_id, messages=HI, stream=stream
            )
            if isinstance(completion, openai.AsyncStream):
                chunks = await read_chunks(completion)
                assert text_of(chunks) == "Done."
                text = " ".join(chunk.model_dump_json() for chunk in chunks)
            else:
                assert completion.choices[0].message.content == "Done."
                text = completion.model_dump_json()
            assert "4711" not in text
            assert "elper" not in text


async def test_usage_sums_all_model_calls(talk: Talker, client: AsyncOpenAI) -> None:
    child = await talk.agent("Helper")
    await attach_sub_agent(talk, child)
    child.script(Reply(usage=(100, 10)))
    talk.script(
        Reply(texts=[], calls=[("delegate_to_helper", {"task": "x"})], usage=(20, 2)),
        Reply(usage=(30, 3)),
    )
    completion = await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (150, 15)


async def test_a_draft_sub_agent_is_not_offered_to_visitors(
    talk: Talker, visitor: AsyncOpenAI
) -> None:
    await attach_sub_agent(talk, await talk.agent("Ready"))
    await attach_sub_agent(talk, await talk.agent("Unfinished", status="draft"))
    await visitor.chat.completions.create(model=talk.agent_id, messages=HI)
    assert offered_tools(talk.asked[-1]) == ["delegate_to_ready"]


async def test_a_draft_sub_agent_is_offered_to_signed_in_callers(
    talk: Talker, client: AsyncOpenAI
) -> None:
    await attach_sub_agent(talk, await talk.agent("Ready"))
    await attach_sub_agent(talk, await talk.agent("Unfinished", status="draft"))
    await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert offered_tools(talk.asked[-1]) == ["delegate_to_ready", "delegate_to_unfinished"]
