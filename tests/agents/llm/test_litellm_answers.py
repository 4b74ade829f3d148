"""Requests and answers through the real litellm, with providers on loopback."""

import asyncio
import json
import socket
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.domain.agents.llm import litellm_adapter
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from app.domain.agents.llm.protocol import (
    Accepted,
    AnswerPart,
    Function,
    Message,
    Text,
    ToolCall,
    UsedTokens,
)
from app.domain.agents.llm.providers import PROVIDERS
from tests.agents.llm.answers import (
    KEY,
    STREAMED_AND_WHOLE,
    StepHold,
    calls_of,
    make_request,
    text_of,
)
from tests.agents.llm.litellm_providers import (
    Anthropic,
    Google,
    make_target,
    request_failure,
    request_parts,
)
from tests.assertions import until
from tests.model_server import ModelServer, Reply

# litellm emits warnings at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")


# Requests


async def test_a_request_carries_the_tenant_s_key(
    ai21: LiteLLMAdapter, models: ModelServer
) -> None:
    await request_parts(ai21, "ai21/jamba-small", temperature=0.25, max_tokens=99)
    assert models.headers[-1]["Authorization"] == f"Bearer {KEY}"
    body = models.requests[-1]
    assert body["model"] == "jamba-small"
    assert (body["temperature"], body["max_tokens"]) == (0.25, 99)
    assert body["messages"] == [{"role": "user", "content": "Hello"}]


async def test_a_request_has_the_provider_s_format(
    anthropic: LiteLLMAdapter, anthropic_server: Anthropic
) -> None:
    parameters = {"type": "object", "properties": {"at": {"type": "string"}}}
    messages = [
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", (ToolCall("tu_7", "weather", '{"at": "Ulm"}'),)),
        Message("tool", "rain", tool_call_id="tu_7"),
    ]
    functions = (Function("weather", "Tells the weather", parameters),)
    await request_parts(anthropic, "anthropic/claude", messages=messages, functions=functions)
    body = anthropic_server.requests[-1]
    assert anthropic_server.headers[-1]["x-api-key"] == KEY
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"][-1]["input"] == {"at": "Ulm"}
    assert body["messages"][2]["content"][0]["tool_use_id"] == "tu_7"
    assert body["tools"][0]["name"] == "weather"
    assert body["tools"][0]["input_schema"]["properties"] == parameters["properties"]


_ADDRESSES = [
    ("anthropic/claude", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"]),
    ("anthropic/claude-2", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"]),
    ("gemini/gemini-2.0-flash", ["GEMINI_API_BASE"]),
    ("cohere/command-r", ["COHERE_API_BASE"]),
    ("ai21/jamba-mini-1.7", ["AI21_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_BASE"]),
    ("ai21/jamba-of-tomorrow", ["AI21_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_BASE"]),
    ("replicate/meta/llama", ["REPLICATE_API_BASE"]),
]


def _record_hosts(patch: pytest.MonkeyPatch) -> list[str]:
    """Refuses to resolve names; returns the list to which it adds them."""
    hosts: list[str] = []

    def resolve(host: str | bytes, *_arguments: Any, **_options: Any) -> Any:
        hosts.append(host if isinstance(host, str) else host.decode())
        raise socket.gaierror(f"no network: {host!r}")

    async def resolve_by_loop(host: str | bytes, *_arguments: Any, **_options: Any) -> Any:
        resolve(host)

    patch.setattr(socket, "getaddrinfo", resolve)
    # uvloop does not ask the module.
    patch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve_by_loop)
    return hosts


async def test_environment_variables_do_not_redirect_a_tenant_s_key(
    litellm: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for model, names in _ADDRESSES:
        with subtests.test(model=model, names=names), pytest.MonkeyPatch.context() as monkeypatch:
            for name in names:
                monkeypatch.setenv(name, "https://elsewhere.test")
            resolved_hosts = _record_hosts(monkeypatch)
            await request_failure(litellm, model)
            assert "elsewhere.test" not in resolved_hosts
            provider = litellm_adapter.LITELLM_PROVIDERS[model.partition("/")[0]]
            assert urlsplit(provider.chat_url).hostname in resolved_hosts


def test_every_provider_without_a_base_url_is_called_through_litellm() -> None:
    providers = {name for name, provider in PROVIDERS.items() if provider.base_url is None}
    assert providers == set(litellm_adapter.LITELLM_PROVIDERS)


# Answers


async def test_a_stream_has_several_texts(ai21: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("pieces", Reply(texts=["One", ", ", "two"], usage=(40, 8)))
    parts = await request_parts(ai21, "ai21/pieces")
    assert parts == [Text("One"), Text(", "), Text("two"), UsedTokens(40, 8)]


async def test_a_whole_answer_is_one_text(ai21: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("whole", Reply(texts=["One", ", ", "two"], usage=(40, 8)))
    parts = await request_parts(ai21, "ai21/whole", is_streamed=False)
    assert parts == [Text("One, two"), UsedTokens(40, 8)]


async def test_a_part_is_passed_on_before_the_next_one_exists(
    ai21: LiteLLMAdapter, models: ModelServer
) -> None:
    hold = StepHold(steps=1)
    models.script("held", Reply(texts=["first", "second"], hold=hold))
    async with aclosing(ai21.answer(make_target("ai21/held"), make_request())) as parts:
        async with asyncio.timeout(5):
            assert await anext(parts) == Accepted()
            assert await anext(parts) == Text("first")
        hold.release()
        assert text_of([part async for part in parts]) == "second"


async def test_parallel_calls_are_separate_and_in_order(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            calls = [("weather", {"at": town}) for town in ("Ulm", "Bonn", "Kiel")]
            models.script("calls", Reply(texts=["Let me see."], calls=calls))
            parts = await request_parts(ai21, "ai21/calls", is_streamed=is_streamed)
            assert text_of(parts) == "Let me see."
            assert [(call.id, json.loads(call.arguments)["at"]) for call in calls_of(parts)] == [
                ("call_0", "Ulm"),
                ("call_1", "Bonn"),
                ("call_2", "Kiel"),
            ]


async def test_another_format_gives_the_same_parts(
    anthropic: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            parts = await request_parts(anthropic, "anthropic/claude", is_streamed=is_streamed)
            assert text_of(parts) == "Let me see."
            assert [
                (call.id, call.name, json.loads(call.arguments)) for call in calls_of(parts)
            ] == [
                ("tu_1", "weather", {"at": "Ulm"}),
                ("tu_2", "weather", {"at": "Bonn"}),
            ]
            assert [part for part in parts if isinstance(part, UsedTokens)] == [UsedTokens(5, 6)]


async def test_gemini_streams(litellm: LiteLLMAdapter, google_server: Google) -> None:
    parts = await request_parts(litellm, "gemini/gemini-x")
    assert google_server.requests[0][0] == "/models/gemini-x:streamGenerateContent?alt=sse"
    assert text_of(parts) == "Let me see."
    assert [(call.name, json.loads(call.arguments)) for call in calls_of(parts)] == [
        ("weather", {"at": "Ulm"})
    ]
    assert [part for part in parts if isinstance(part, UsedTokens)] == [UsedTokens(5, 6)]


async def test_cohere_receives_a_request_for_a_whole_answer(
    litellm: LiteLLMAdapter, google_server: Google, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            parts = await request_parts(litellm, "cohere/command-r", is_streamed=is_streamed)
            assert not google_server.requests[-1][1].get("stream")
            assert parts == [Text("Let me see."), UsedTokens(5, 6)]


async def test_nul_characters_are_dropped(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("nul", Reply(texts=["a\0b", "\0c"], calls=[("f", '{"x": "\0y"}')]))
            parts = await request_parts(ai21, "ai21/nul", is_streamed=is_streamed)
            assert text_of(parts) == "abc"
            assert calls_of(parts)[0].arguments == '{"x": "y"}'


async def test_implausible_usage_is_limited(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[int, int]] = [(-100, -5), (10**15, 10**15)]
    for usage in cases:
        with subtests.test(usage=usage):
            models.script("usage", Reply(usage=usage))
            (tokens,) = [
                p for p in await request_parts(ai21, "ai21/usage") if isinstance(p, UsedTokens)
            ]
            assert 0 <= tokens.prompt_tokens < 2**31
            assert 0 <= tokens.completion_tokens < 2**31


async def test_closing_the_answer_closes_the_provider_s_connection(
    anthropic: LiteLLMAdapter, anthropic_server: Anthropic
) -> None:
    async with aclosing(
        anthropic.answer(make_target("anthropic/wait-at-4"), make_request())
    ) as parts:
        async with asyncio.timeout(5):
            assert await anext(parts) == Accepted()
            assert await anext(parts) == Text("Let me")
    async with asyncio.timeout(10):
        await anthropic_server.client_left.wait()


async def test_closing_the_answer_closes_an_openai_compatible_connection(
    ai21: LiteLLMAdapter, models: ModelServer
) -> None:
    models.script("talkative", Reply(texts=["word"] * 100, delay=0.05))
    closed_before = models.closed_early
    async with aclosing(ai21.answer(make_target("ai21/talkative"), make_request())) as parts:
        async with asyncio.timeout(5):
            assert await anext(parts) == Accepted()
            assert await anext(parts) == Text("word")
    await until(lambda: models.closed_early > closed_before)


async def test_closing_the_answer_closes_gemini_s_connection(
    litellm: LiteLLMAdapter, google_server: Google
) -> None:
    async with aclosing(litellm.answer(make_target("gemini/wait"), make_request())) as parts:
        async with asyncio.timeout(5):
            assert await anext(parts) == Accepted()
            assert await anext(parts) == Text("Let me")
    async with asyncio.timeout(10):
        await google_server.client_left.wait()


async def test_cancelling_a_waiting_reader_closes_the_provider_s_connection(
    anthropic: LiteLLMAdapter, anthropic_server: Anthropic
) -> None:
    parts_read: list[AnswerPart] = []

    async def read_all() -> None:
        async with aclosing(
            anthropic.answer(make_target("anthropic/wait-at-4"), make_request())
        ) as parts:
            async for part in parts:
                parts_read.append(part)  # noqa: PERF401  # the test reads it meanwhile

    task = asyncio.create_task(read_all())
    await until(lambda: text_of(parts_read) == "Let me see.")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        await anthropic_server.client_left.wait()
