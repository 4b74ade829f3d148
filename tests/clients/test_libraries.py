"""Libraries and commands for models, with chats, streams, tools and structures.

Each test imports its library itself. At the top of the file, the imports would take seconds in
every process that collects the tests.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.clients.journey import ANSWER, QUESTION, Journey, tell_time
from tests.model_server import Reply
from tests.processes import ROOT

pytestmark = pytest.mark.filterwarnings("default")

_LLM = Path(sys.executable).parent / "llm"
_LLAMA_INDEX = (sys.executable, "-m", "tests.clients.llama_index_program")


class Time(BaseModel):
    hour: int


async def test_instructor_gets_a_structure(journey: Journey, client: AsyncOpenAI) -> None:
    import instructor

    journey.talk.script(Reply(texts=[], calls=[("Time", {"hour": 9})]))
    wrapped: Any = instructor.from_openai(client)
    answer = await wrapped.chat.completions.create(
        model=journey.model,
        messages=[{"role": "user", "content": QUESTION}],
        response_model=Time,
    )
    assert answer.hour == 9
    assert journey.asked[0]["tool_choice"]["function"] == {"name": "Time"}


async def test_openai_parses_a_structure(journey: Journey, client: AsyncOpenAI) -> None:
    journey.talk.script(Reply(texts=['{"hour": 9}']))
    response = await client.responses.parse(model=journey.model, input=QUESTION, text_format=Time)
    assert response.output_parsed == Time(hour=9)
    assert journey.asked[0]["response_format"]["type"] == "json_schema"


async def test_litellm_calls_a_function(journey: Journey) -> None:
    import litellm

    journey.script()
    clock = {"type": "function", "function": {"name": "tell_time", "parameters": {}}}
    target: Any = {
        "model": f"openai/{journey.model}",
        "api_base": journey.url,
        "api_key": journey.key,
        "tools": [clock],
    }
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    answer: Any = await litellm.acompletion(messages=messages, **target)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    messages.append(message.model_dump())
    for call in message.tool_calls:
        result = tell_time(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    second: Any = await litellm.acompletion(messages=messages, **target)
    assert second.choices[0].message.content == ANSWER
    journey.check()


async def test_llama_index_calls_a_function_and_streams(journey: Journey) -> None:
    """In a process of its own: the library leaves its event loop busy."""
    journey.script()
    printed = await _run(*_LLAMA_INDEX, env=journey.environment)
    assert json.loads(printed) == {"loop": ANSWER, "stream": ANSWER}
    journey.check(later=1)


async def test_the_llm_command_runs_a_loop(journey: Journey, tmp_path: Path) -> None:
    model = {
        "model_id": "agent",
        "model_name": journey.model,
        "api_base": journey.url,
        "api_key_name": "parley",
        "supports_tools": True,
    }
    # JSON is YAML as well.
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps([model]))
    functions = 'def tell_time(zone: str) -> str:\n    return f"09:00 {zone}"\n'
    journey.script()
    command = [str(_LLM), "-m", "agent", "--key", journey.key, "--functions", functions, QUESTION]
    # Without the plugins of other packages.
    env = {"LLM_USER_PATH": str(tmp_path), "LLM_LOAD_PLUGINS": ""}
    assert (await _run(*command, env=env)).strip() == ANSWER
    journey.check()


async def _run(*command: str, env: dict[str, str]) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, env={"PATH": "", **env}, cwd=ROOT, stdout=pipe, stderr=pipe
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()
