"""Refusals, errors and broken connections of a provider in OpenAI's wire format."""

import base64
import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import Text
from app.domain.agents.llm.provider_failures import error_message
from tests.agents.llm.answers import KEY, STATUS_REASONS, STREAMED_AND_WHOLE, check_refusal
from tests.agents.llm.openai_provider import (
    DONE,
    JSON,
    SSE,
    encode_delta,
    encode_event,
    make_target,
    request_failure,
    serve_packets,
)
from tests.model_server import ModelServer, Reply
from tests.ports import free_port

# Refusals


async def test_a_refusal_has_a_reason_a_status_and_the_provider_s_message(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed, (status, reason, ours) in itertools.product(
        STREAMED_AND_WHOLE, STATUS_REASONS
    ):
        with subtests.test(is_streamed=is_streamed, status=status):
            models.script("refusing", Reply(status=status, message="not today"))
            error, before = await request_failure(
                adapter, make_target(models.url, "scripted/refusing"), is_streamed=is_streamed
            )
            assert before == []
            assert error.message == "scripted/refusing: not today"
            check_refusal(error, "scripted/refusing", status, reason, ours)


async def test_any_status_but_200_is_a_refusal(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for status in (201, 204, 206, 301, 307):
        with subtests.test(status=status):
            head = f"HTTP/1.1 {status} Odd\r\nContent-Length: 0\r\nLocation: /v1/elsewhere\r\n\r\n"
            async with serve_packets(head.encode()) as url:
                error, _ = await request_failure(adapter, make_target(url))
            assert (error.reason, (error.details or {})["provider_status"]) == ("refused", status)
            assert error.message == f"scripted/one: the provider answered {status}"


async def test_a_redirect_is_not_followed(adapter: OpenAIAdapter, models: ModelServer) -> None:
    requests_before = len(models.requests)
    location = f"{models.url}/chat/completions"
    head = f"HTTP/1.1 308 Moved\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
    async with serve_packets(head.encode()) as url:
        await request_failure(adapter, make_target(url))
    assert len(models.requests) == requests_before


_CASES: list[tuple[bytes, str]] = [
    (b'{"error": {"message": "no credit"}}', "no credit"),
    (b'{"error": "no credit"}', "no credit"),
    (b'{"message": "no credit"}', "no credit"),
    (b'"no credit"', "no credit"),
    (b'{"error": {"message": "a\\u0000b"}}', "ab"),
    (b'{"error": {"message": " "}}', "the provider answered 400"),
    (b'{"error": {"message": 5}}', "the provider answered 400"),
    (b'{"error": null}', "the provider answered 400"),
    (b'{"detail": "no"}', "the provider answered 400"),
    (b"[1]", "the provider answered 400"),
    (b"<html>Bad</html>", "the provider answered 400"),
    (b"\xff\xfe", "the provider answered 400"),
    (b"", "the provider answered 400"),
]


async def test_the_provider_s_message_is_read_from_every_known_field(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for body, message in _CASES:
        with subtests.test(body=body, message=message):
            head = f"HTTP/1.1 400 Bad\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            async with serve_packets(head + body) as url:
                error, _ = await request_failure(adapter, make_target(url))
            assert error.message == f"scripted/one: {message}"


async def test_a_long_message_is_cut(adapter: OpenAIAdapter, models: ModelServer) -> None:
    models.script("wordy", Reply(status=400, message="x" * 100_000))
    error, _ = await request_failure(adapter, make_target(models.url, "scripted/wordy"))
    assert len(error.message) == 500


async def test_retry_after_is_read(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, float | None]] = [
        ("3", 3.0),
        ("0.25", 0.25),
        ("0", 0.0),
        ("-5", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ]
    for (header, seconds), status in itertools.product(cases, (429, 503)):
        with subtests.test(header=header, seconds=seconds):
            models.script("later", Reply(status=status, headers={"Retry-After": header}))
            error, _ = await request_failure(adapter, make_target(models.url, "scripted/later"))
            assert error.retry_after == seconds


async def test_without_retry_after_there_is_no_delay(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("bare", Reply(status=429))
    error, _ = await request_failure(adapter, make_target(models.url, "scripted/bare"))
    assert error.retry_after is None


# The provider's key


async def test_a_refusal_that_repeats_the_key_is_masked(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("echo", Reply(status=401, message=f"Wrong key {KEY}, again: {KEY}"))
            error, _ = await request_failure(
                adapter, make_target(models.url, "scripted/echo"), is_streamed=is_streamed
            )
            assert error.message == "scripted/echo: Wrong key ***, again: ***"
            assert KEY not in repr(error.details)


async def test_an_error_in_a_stream_that_repeats_the_key_is_masked(adapter: OpenAIAdapter) -> None:
    async with serve_packets(SSE, encode_event(error={"message": f"Wrong key {KEY}"}), DONE) as url:
        error, _ = await request_failure(adapter, make_target(url))
    assert error.message == "scripted/one: Wrong key ***"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[::-1],
        str.upper,
        " ".join,
        "\n".join,
        lambda text: base64.b64encode(f"x:{text}".encode()).decode(),
        lambda text: text.encode().hex(),
        lambda text: f"https://u:{text}@api.example.com/",
    ],
)
def test_a_changed_key_is_masked(change: Callable[[str], str]) -> None:
    target = make_target("https://api.example.com/v1", "scripted/one")
    target = msgspec.structs.replace(target, api_key="sk-planted-0123456789-abcdef")
    key = target.api_key or ""
    for message in (f"Wrong key {change(key)}", "x" * 470 + change(key), change(key) * 100_000):
        masked = error_message(target, {"error": {"message": message}})
        assert "***" in masked
        letters = "".join(char for char in masked if char.isalnum())
        assert "planted" not in letters.lower()
        assert "planted"[::-1] not in letters.lower()
        assert b"planted".hex() not in masked
        assert len(masked) <= 500


async def test_a_key_on_the_edge_of_a_long_message_is_masked(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for length in range(470, 500, 6):
        with subtests.test(length=length):
            models.script("edge", Reply(status=401, message="x" * length + KEY))
            error, _ = await request_failure(adapter, make_target(models.url, "scripted/edge"))
            assert KEY[:4] not in error.message


async def test_a_target_does_not_show_its_key() -> None:
    assert KEY not in repr(make_target("https://api.example.com/v1"))
    assert KEY not in str(make_target("https://api.example.com/v1"))


# Errors inside an answer


async def test_an_error_in_the_middle_of_a_stream_ends_it(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("amid", Reply(texts=["one", "two"], error_after=1, message="overloaded"))
    error, before = await request_failure(adapter, make_target(models.url, "scripted/amid"))
    assert before == [Text("one")]
    assert error.message == "scripted/amid: overloaded"


async def test_an_error_in_a_stream_may_have_any_form(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = ["overloaded", {"code": 5}, {}, 5, ["overloaded"]]
    for provider_error in cases:
        with subtests.test(provider_error=provider_error):
            async with serve_packets(SSE, encode_event(error=provider_error), DONE) as url:
                error, _ = await request_failure(adapter, make_target(url))
            message = (
                provider_error
                if provider_error == "overloaded"
                else "the provider reports an error"
            )
            assert error.message == f"scripted/one: {message}"


async def test_an_error_instead_of_a_whole_answer_is_a_failure(adapter: OpenAIAdapter) -> None:
    async with serve_packets(JSON, b'{"error": {"message": "no credit"}}') as url:
        error, _ = await request_failure(adapter, make_target(url), is_streamed=False)
    assert error.message == "scripted/one: no credit"


# Connections that fail


async def test_a_closed_port_is_unreachable(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            url = f"http://127.0.0.1:{free_port()}/v1"
            error, _ = await request_failure(adapter, make_target(url), is_streamed=is_streamed)
            assert error.reason == "unreachable"
            assert error.message.startswith("scripted/one: 127.0.0.1")
            details = {"model": "scripted/one", "reason": "unreachable", "retry_after": 5}
            assert error.details == details


async def test_a_server_without_tls_is_unreachable_by_https(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    error, _ = await request_failure(
        adapter, make_target(models.url.replace("http://", "https://"))
    )
    assert error.reason == "unreachable"


async def test_a_connection_that_closes_without_an_answer_is_unreachable(
    adapter: OpenAIAdapter,
) -> None:
    async with serve_packets() as url:
        error, _ = await request_failure(adapter, make_target(url))
    assert error.reason == "unreachable"


async def test_an_answer_that_is_no_http_is_unreachable(adapter: OpenAIAdapter) -> None:
    async with serve_packets(b"220 mail.example.com ESMTP\r\n") as url:
        error, _ = await request_failure(adapter, make_target(url))
    assert error.reason == "unreachable"


async def test_a_dropped_stream_is_broken(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for after in (0, 1):
        with subtests.test(after=after):
            models.script("dropped", Reply(texts=["one", "two"], drop_after=after))
            error, before = await request_failure(
                adapter, make_target(models.url, "scripted/dropped")
            )
            assert error.reason == "broken"
            assert before == [Text("one")][:after]


async def test_a_whole_answer_that_is_cut_off_is_broken(adapter: OpenAIAdapter) -> None:
    head = JSON[:-2] + b"Content-Length: 500\r\n\r\n"
    async with serve_packets(head, b'{"choices": [{"message"') as url:
        error, _ = await request_failure(adapter, make_target(url), is_streamed=False)
    assert error.reason == "broken"


async def test_an_answer_without_a_finish_reason_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: dict[str, bytes] = {
        "end of connection": b"",
        "done": DONE,
    }
    for name, end in cases.items():
        with subtests.test(name):
            async with serve_packets(SSE, encode_delta(content="One sec"), end) as url:
                error, before = await request_failure(adapter, make_target(url))
            assert error.reason == "broken"
            assert error.message == "scripted/one broke off its answer"
            assert before == [Text("One sec")]


async def test_half_a_tool_call_is_not_passed_on(adapter: OpenAIAdapter) -> None:
    half = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": '{"sum": 1'}}
    async with serve_packets(SSE, encode_delta(tool_calls=[half])) as url:
        error, before = await request_failure(adapter, make_target(url))
    assert error.reason == "broken"
    assert before == []
