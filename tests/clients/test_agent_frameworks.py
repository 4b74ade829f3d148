"""Libraries for agents run loops in which a tool of the client and one of the agent are called."""

from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic import SecretStr
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.journey import ANSWER, QUESTION, Journey, tell_time

pytestmark = pytest.mark.filterwarnings("default")


# openai-agents


def _agent(journey: Journey, kind: Any, client: AsyncOpenAI) -> Agent[None]:
    model = kind(model=journey.model, openai_client=client)
    return Agent("Assistant", instructions="Be brief.", model=model, tools=[_function()])


def _function() -> Any:
    return function_tool(tell_time)


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
async def test_openai_agents_runs_a_loop(journey: Journey, client: AsyncOpenAI, kind: Any) -> None:
    journey.script()
    result = await Runner.run(_agent(journey, kind, client), QUESTION)
    assert result.final_output == ANSWER
    journey.check()


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
async def test_openai_agents_streams_a_loop(
    journey: Journey, client: AsyncOpenAI, kind: Any
) -> None:
    journey.script()
    result = Runner.run_streamed(_agent(journey, kind, client), QUESTION)
    names = [event.name async for event in result.stream_events() if hasattr(event, "name")]
    assert result.final_output == ANSWER
    assert "tool_called" in names
    journey.check()


async def test_openai_agents_goes_on_after_a_response(
    journey: Journey, client: AsyncOpenAI
) -> None:
    agent = _agent(journey, OpenAIResponsesModel, client)
    first = await Runner.run(agent, "I am Ann.")
    await Runner.run(agent, "Who am I?", previous_response_id=first.last_response_id)
    said = [item["content"] for item in journey.asked[-1]["messages"] if item["role"] == "user"]
    assert said == ["I am Ann.", "Who am I?"]


# LangChain


def _chat(journey: Journey, client: AsyncOpenAI, **more: Any) -> Any:
    """With a client that is closed; the library keeps its own open."""
    return ChatOpenAI(
        model=journey.model,
        base_url=journey.url,
        api_key=SecretStr(journey.key),
        root_async_client=client,
        async_client=client.chat.completions,
        **more,
    )


@pytest.mark.parametrize("wire", ["responses", "completions"])
async def test_langchain_runs_a_loop(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    journey.script()
    clock = tool(tell_time)
    model = _chat(journey, client, use_responses_api=wire == "responses").bind_tools([clock])
    messages: list[BaseMessage] = [HumanMessage(QUESTION)]
    answer = await model.ainvoke(messages)
    messages.append(answer)
    messages += [
        ToolMessage(clock.invoke(call["args"]), tool_call_id=call["id"])
        for call in answer.tool_calls
    ]
    assert (await model.ainvoke(messages)).text == ANSWER
    journey.check()


@pytest.mark.parametrize("wire", ["responses", "completions"])
async def test_langchain_streams(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    model = _chat(journey, client, use_responses_api=wire == "responses")
    chunks = [chunk async for chunk in model.astream(QUESTION)]
    assert "".join(chunk.text for chunk in chunks) == "Hello there"


# pydantic-ai


@pytest.mark.parametrize("kind", [PydanticResponsesModel, OpenAIChatModel])
async def test_pydantic_ai_runs_a_loop(journey: Journey, client: AsyncOpenAI, kind: Any) -> None:
    journey.script()
    model = kind(journey.model, provider=OpenAIProvider(openai_client=client))
    agent = PydanticAgent(model, tools=[tell_time], instructions="Be brief.")
    assert (await agent.run(QUESTION)).output == ANSWER
    journey.check()


@pytest.mark.parametrize("kind", [PydanticResponsesModel, OpenAIChatModel])
async def test_pydantic_ai_streams(journey: Journey, client: AsyncOpenAI, kind: Any) -> None:
    model = kind(journey.model, provider=OpenAIProvider(openai_client=client))
    async with PydanticAgent(model).run_stream(QUESTION) as result:
        assert [text async for text in result.stream_text()][-1] == "Hello there"
