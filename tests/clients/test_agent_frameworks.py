"""Libraries for agents run loops in which a tool of the client and one of the agent are called.

Each test imports its library itself. At the top of the file, the imports would take seconds in
every process that collects the tests.
"""

from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.clients.journey import ANSWER, QUESTION, Journey, tell_time

pytestmark = pytest.mark.filterwarnings("default")

WIRES = ("responses", "completions")


# openai-agents


def _agent(journey: Journey, client: AsyncOpenAI, wire: str) -> Any:
    import agents

    kinds = {
        "responses": agents.OpenAIResponsesModel,
        "completions": agents.OpenAIChatCompletionsModel,
    }
    model = kinds[wire](model=journey.model, openai_client=client)
    tools = [agents.function_tool(tell_time)]
    return agents.Agent("Assistant", instructions="Be brief.", model=model, tools=tools)


@pytest.mark.parametrize("wire", WIRES)
async def test_openai_agents_runs_a_loop(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    from agents import Runner

    journey.script()
    result = await Runner.run(_agent(journey, client, wire), QUESTION)
    assert result.final_output == ANSWER
    journey.check()


@pytest.mark.parametrize("wire", WIRES)
async def test_openai_agents_streams_a_loop(
    journey: Journey, client: AsyncOpenAI, wire: str
) -> None:
    from agents import Runner

    journey.script()
    result = Runner.run_streamed(_agent(journey, client, wire), QUESTION)
    names = [event.name async for event in result.stream_events() if hasattr(event, "name")]
    assert result.final_output == ANSWER
    assert "tool_called" in names
    journey.check()


async def test_openai_agents_goes_on_after_a_response(
    journey: Journey, client: AsyncOpenAI
) -> None:
    from agents import Runner

    agent = _agent(journey, client, "responses")
    first = await Runner.run(agent, "I am Ann.")
    await Runner.run(agent, "Who am I?", previous_response_id=first.last_response_id)
    said = [item["content"] for item in journey.asked[-1]["messages"] if item["role"] == "user"]
    assert said == ["I am Ann.", "Who am I?"]


# LangChain


def _chat(journey: Journey, client: AsyncOpenAI, **more: Any) -> Any:
    """With a client that is closed; the library keeps its own open."""
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    return ChatOpenAI(
        model=journey.model,
        base_url=journey.url,
        api_key=SecretStr(journey.key),
        root_async_client=client,
        async_client=client.chat.completions,
        **more,
    )


@pytest.mark.parametrize("wire", WIRES)
async def test_langchain_runs_a_loop(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
    from langchain_core.tools import tool

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


@pytest.mark.parametrize("wire", WIRES)
async def test_langchain_streams(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    model = _chat(journey, client, use_responses_api=wire == "responses")
    chunks = [chunk async for chunk in model.astream(QUESTION)]
    assert "".join(chunk.text for chunk in chunks) == "Hello there"


# pydantic-ai


def _assistant(journey: Journey, client: AsyncOpenAI, wire: str, **more: Any) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = {"responses": OpenAIResponsesModel, "completions": OpenAIChatModel}[wire]
    return Agent(kind(journey.model, provider=OpenAIProvider(openai_client=client)), **more)


@pytest.mark.parametrize("wire", WIRES)
async def test_pydantic_ai_runs_a_loop(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    journey.script()
    agent = _assistant(journey, client, wire, tools=[tell_time], instructions="Be brief.")
    assert (await agent.run(QUESTION)).output == ANSWER
    journey.check()


@pytest.mark.parametrize("wire", WIRES)
async def test_pydantic_ai_streams(journey: Journey, client: AsyncOpenAI, wire: str) -> None:
    async with _assistant(journey, client, wire).run_stream(QUESTION) as result:
        assert [text async for text in result.stream_text()][-1] == "Hello there"
