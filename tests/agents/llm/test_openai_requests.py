"""Requests that the OpenAI adapter sends."""

from typing import Any

import pytest

from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import Function, Message, Target, ToolCall
from tests.agents.llm.answers import KEY, text_of
from tests.agents.llm.openai_provider import make_target, request_parts
from tests.model_server import ModelServer


async def _send(
    adapter: OpenAIAdapter, models: ModelServer, target: Target, **fields: Any
) -> dict[str, Any]:
    before = len(models.requests)
    await request_parts(adapter, target, **fields)
    assert len(models.requests) == before + 1
    return models.requests[-1]


async def test_a_request_names_the_model_without_its_provider(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    body = await _send(adapter, models, make_target(models.url, "scripted/family/big"))
    assert body["model"] == "family/big"


async def test_the_key_is_sent_as_a_bearer_token(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    await request_parts(adapter, make_target(models.url))
    assert models.headers[-1]["Authorization"] == f"Bearer {KEY}"
    assert models.headers[-1]["Content-Type"] == "application/json"


async def test_without_a_key_no_authorization_is_sent(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    await request_parts(adapter, Target("one", "", base_url=models.url))
    assert "Authorization" not in models.headers[-1]


async def test_a_base_url_may_end_in_a_slash(adapter: OpenAIAdapter, models: ModelServer) -> None:
    assert text_of(await request_parts(adapter, make_target(f"{models.url}/"))) == "Hello there"


async def test_a_streamed_request_includes_usage(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    body = await _send(adapter, models, make_target(models.url))
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


async def test_a_whole_request_has_no_stream_options(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    body = await _send(adapter, models, make_target(models.url), is_streamed=False)
    assert "stream" not in body
    assert "stream_options" not in body


async def test_a_request_has_temperature_and_max_tokens(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    body = await _send(adapter, models, make_target(models.url), temperature=0.25, max_tokens=99)
    assert (body["temperature"], body["max_tokens"]) == (0.25, 99)
    assert "max_completion_tokens" not in body


async def test_a_request_to_openai_has_max_completion_tokens(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    body = await _send(adapter, models, make_target(models.url, "openai/gpt-4o", "openai"))
    assert body["max_completion_tokens"] == 2048
    assert body["temperature"] == 0.7
    assert "max_tokens" not in body


async def test_a_request_to_a_reasoning_model_of_openai_has_no_temperature(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for name in ("o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5-nano"):
        with subtests.test(name=name):
            assert "temperature" not in await _send(
                adapter, models, make_target(models.url, f"openai/{name}", "openai")
            )
            assert "temperature" in await _send(
                adapter, models, make_target(models.url, f"scripted/{name}")
            )


async def test_messages_keep_their_roles_calls_and_order(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    messages = [
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", (ToolCall("call_7", "weather", '{"at": "Ulm"}'),)),
        Message("tool", "rain", tool_call_id="call_7"),
    ]
    body = await _send(adapter, models, make_target(models.url), messages=messages)
    call = {
        "id": "call_7",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"at": "Ulm"}'},
    }
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "call_7"},
    ]


async def test_a_request_has_functions_and_response_format(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    parameters = {"type": "object", "properties": {"at": {"type": "string"}}}
    function = Function("weather", "Tells the weather", parameters)
    form = {"type": "json_object"}
    body = await _send(
        adapter, models, make_target(models.url), functions=(function,), response_format=form
    )
    described = {
        "name": "weather",
        "description": "Tells the weather",
        "parameters": parameters,
    }
    assert body["tools"] == [{"type": "function", "function": described}]
    assert body["response_format"] == form


async def test_functions_that_may_not_be_called_are_sent_with_tool_choice_none(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    functions = (Function("weather", "Tells the weather", {"type": "object"}),)
    target = make_target(models.url)
    body = await _send(adapter, models, target, functions=functions, tool_choice="none")
    assert body["tool_choice"] == "none"
    assert body["tools"][0]["function"]["name"] == "weather"
    assert "tool_choice" not in await _send(adapter, models, target, functions=functions)


async def test_a_request_without_functions_has_no_tools(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    body = await _send(adapter, models, make_target(models.url))
    assert not {"tools", "tool_choice", "response_format"} & set(body)
