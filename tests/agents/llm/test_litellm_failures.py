"""Failures of providers that are called through litellm."""

import asyncio
import itertools
import time

import pytest

from app.domain.agents.llm import litellm_adapter
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from app.domain.agents.llm.protocol import Text
from tests.agents.llm.answers import (
    KEY,
    STATUS_REASONS,
    STREAMED_AND_WHOLE,
    calls_of,
    check_refusal,
)
from tests.agents.llm.litellm_providers import Anthropic, move_provider, request_failure
from tests.model_server import ModelServer, Reply
from tests.ports import free_port

# litellm emits warnings at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")


async def test_a_refusal_has_a_reason_and_is_not_retried(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed, (status, reason, ours) in itertools.product(
        STREAMED_AND_WHOLE, STATUS_REASONS
    ):
        with subtests.test(is_streamed=is_streamed, status=status):
            models.script("refusing", Reply(status=status, message="not today"))
            requests_before = len(models.asked("refusing"))
            error, before = await request_failure(ai21, "ai21/refusing", is_streamed=is_streamed)
            assert before == []
            check_refusal(error, "ai21/refusing", status, reason, ours)
            assert error.message.startswith("ai21/refusing: ")
            assert "not today" in error.message
            assert len(models.asked("refusing")) == requests_before + 1


async def test_a_refusal_in_another_format_has_a_reason_as_well(
    anthropic: LiteLLMAdapter, anthropic_server: Anthropic, subtests: pytest.Subtests
) -> None:
    for status, reason, _ours in STATUS_REASONS:
        anthropic_server.requests.clear()
        with subtests.test(status=status, reason=reason):
            error, _ = await request_failure(anthropic, f"anthropic/{status}")
            assert error.reason == reason
            assert "not today" in error.message
            assert len(anthropic_server.requests) == 1


async def test_retry_after_is_read(anthropic: LiteLLMAdapter) -> None:
    error, _ = await request_failure(anthropic, "anthropic/429")
    assert error.retry_after == 7.0


async def test_a_refusal_that_repeats_the_key_is_masked(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("echo", Reply(status=401, message=f"Wrong key {KEY}, again: {KEY}"))
            error, _ = await request_failure(ai21, "ai21/echo", is_streamed=is_streamed)
            assert "Wrong key ***, again: ***" in error.message
            assert KEY not in error.message
            assert KEY not in repr(error.details)


async def test_a_long_message_is_cut(ai21: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("wordy", Reply(status=400, message="x" * 100_000))
    error, _ = await request_failure(ai21, "ai21/wordy")
    assert len(error.message) <= 500


async def test_a_failure_does_not_name_litellm(ai21: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("name", Reply(status=401))
    error, _ = await request_failure(ai21, "ai21/name")
    assert "litellm" not in error.message.lower()


async def test_a_closed_port_is_unreachable(
    litellm: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed), pytest.MonkeyPatch.context() as monkeypatch:
            move_provider(monkeypatch, "anthropic", f"http://127.0.0.1:{free_port()}")
            error, _ = await request_failure(litellm, "anthropic/claude", is_streamed=is_streamed)
            assert error.reason == "unreachable"


async def test_silence_times_out(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(litellm_adapter, "IDLE_SECONDS", 0.2)
            hold = asyncio.Event()
            models.script("silent", Reply(hold=hold))
            started = time.monotonic()
            error, _ = await request_failure(ai21, "ai21/silent", is_streamed=is_streamed)
            hold.set()
            assert error.reason == "timeout"
            assert time.monotonic() - started < 5


async def test_a_whole_answer_that_does_not_come_to_an_end_is_broken(
    ai21: LiteLLMAdapter, models: ModelServer
) -> None:
    models.script("dropped-whole", Reply(drop_after=0))
    error, _ = await request_failure(ai21, "ai21/dropped-whole", is_streamed=False)
    assert error.reason == "broken"


async def test_a_stream_that_breaks_off_is_broken(
    anthropic: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for ending, place in itertools.product(("end", "drop"), (1, 3)):
        with subtests.test(ending=ending, place=place):
            error, before = await request_failure(anthropic, f"anthropic/{ending}-at-{place}")
            assert error.reason == "broken"
            assert before == ([Text("Let me")] if place == 3 else [])


async def test_a_dropped_stream_of_openai_s_kind_is_broken(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for after in (0, 1):
        with subtests.test(after=after):
            models.script("dropped", Reply(texts=["one", "two"], drop_after=after))
            error, before = await request_failure(ai21, "ai21/dropped")
            assert error.reason == "broken"
            assert before == [Text("one")][:after]


@pytest.mark.usefixtures("google_server")
async def test_a_stream_of_gemini_that_breaks_off_is_broken(
    litellm: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for ending in ("end", "drop", "error"):
        with subtests.test(ending=ending):
            error, before = await request_failure(litellm, f"gemini/{ending}")
            assert error.reason == ("unavailable" if ending == "error" else "broken")
            assert before == [Text("Let me")]


async def test_half_a_tool_call_is_not_passed_on(
    anthropic: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for place in (5, 7):
        with subtests.test(place=place):
            _, before = await request_failure(anthropic, f"anthropic/end-at-{place}")
            assert calls_of(before) == []


async def test_an_error_in_a_stream_of_openai_s_kind_ends_it(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for after in (0, 1):
        with subtests.test(after=after):
            models.script(
                "amid", Reply(texts=["one", "two"], error_after=after, message="overloaded")
            )
            error, before = await request_failure(ai21, "ai21/amid")
            assert before == [Text("one")][:after]
            assert "overloaded" in error.message


async def test_an_error_in_the_middle_of_a_stream_ends_it(anthropic: LiteLLMAdapter) -> None:
    error, before = await request_failure(anthropic, "anthropic/error-at-3")
    assert before == [Text("Let me")]
    assert "Overloaded" in error.message


async def test_an_overloaded_provider_is_unavailable(
    anthropic: LiteLLMAdapter, subtests: pytest.Subtests
) -> None:
    for place in (1, 3):
        with subtests.test(place=place):
            error, _ = await request_failure(anthropic, f"anthropic/error-at-{place}")
            assert error.reason == "unavailable"


async def test_a_malformed_answer_is_broken(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("nonsense", Reply(raw=b"{nope"))
            error, _ = await request_failure(ai21, "ai21/nonsense", is_streamed=is_streamed)
            assert error.reason == "broken"


async def test_a_very_long_answer_is_broken(
    ai21: LiteLLMAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("endless", Reply(texts=["x" * 300_000] * 4))
            error, _ = await request_failure(ai21, "ai21/endless", is_streamed=is_streamed)
            assert error.reason == "broken"
            assert error.message == "ai21/endless: the answer is too long"
