"""Stock clients in JavaScript: the SDK of OpenAI, and the AI SDK, which prefers responses."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from app.kit import node
from tests.clients.journey import ANSWER, Journey
from tests.model_server import Reply


@pytest.fixture
async def play(journey: Journey, javascript: Path) -> Any:
    """Runs a scenario of agent.mjs and returns its result."""

    async def run(scenario: str) -> Any:
        output = await asyncio.to_thread(
            node.run, javascript / "agent.mjs", scenario, cwd=javascript, env=journey.environment
        )
        return json.loads(output)

    return run


@pytest.mark.parametrize(
    "scenario",
    ["openai-loop", "ai-responses-loop", "ai-chat-loop", "ai-responses-stream", "ai-chat-stream"],
)
async def test_a_loop_calls_both_tools(journey: Journey, play: Any, scenario: str) -> None:
    journey.script()
    assert await play(scenario) == ANSWER
    journey.check()


async def test_a_stream_is_read_to_its_end(play: Any) -> None:
    assert await play("openai-stream") == "Hello there"


async def test_a_structure_is_answered(journey: Journey, play: Any) -> None:
    journey.talk.script(Reply(texts=['{"hour": 9}']))
    assert await play("ai-object") == {"hour": 9}
    assert journey.asked[0]["response_format"]["type"] == "json_schema"


async def test_an_error_is_read_and_repeated_by_the_client_alone(
    journey: Journey, play: Any
) -> None:
    refusal = Reply(status=429, headers={"Retry-After": "0"}, message="slow down")
    journey.talk.script(refusal)
    error = await play("openai-retries")
    assert error == {
        "status": 429,
        "code": "rate_limited",
        "type": "rate_limit_error",
        "param": None,
    }
    assert len(journey.asked) == 3
    journey.talk.script(Reply(status=400, message="too long"))
    error = await play("openai-retries")
    assert (error["status"], error["code"]) == (400, "provider_rejected")
    assert len(journey.asked) == 4
