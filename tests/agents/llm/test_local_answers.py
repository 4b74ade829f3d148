"""How the local model answers: its deadline, and what a stream says until the first word."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from app.domain.agents.llm import gateway
from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.gateway import LOCAL_MODEL, Models
from app.domain.agents.llm.protocol import Accepted, Target, Text, Waiting
from app.net.egress import Guard
from app.services import Services
from tests.agents.llm.answers import StepHold, make_request, read_parts
from tests.agents.llm.local_model import announce_local_model
from tests.assertions import until
from tests.model_server import ModelServer, Reply

_TARGET = Target(LOCAL_MODEL, "local")


@pytest.fixture
async def local(services: Services, models: ModelServer) -> AsyncIterator[Models]:
    local = Models(Guard(()), services.redis, has_local=True)
    async with announce_local_model(services, models.url, slots=2):
        yield local
    await local.close()


async def test_a_stream_says_that_the_model_is_at_work_until_its_first_word(
    local: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_PROGRESS_SECONDS", 0.02)
    hold = StepHold()
    models.script(LOCAL_MODEL, Reply(texts=["One", " two"], hold=hold))
    parts = []
    async with aclosing(local.answer(_TARGET, make_request())) as answer:
        async for part in answer:
            parts.append(part)
            if len(parts) == 4:
                hold.release()
                hold.release()
    waits = [part for part in parts if isinstance(part, Waiting)]
    assert [Accepted(), *waits] == parts[: len(waits) + 1]
    assert len(waits) >= 3
    texts = [part.text for part in parts if isinstance(part, Text)]
    assert "".join(texts) == "One two"


async def test_a_stream_that_is_left_before_the_first_word_ends_the_models_work(
    local: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_PROGRESS_SECONDS", 0.02)
    models.script(LOCAL_MODEL, Reply(hold=StepHold()))
    closed_before = models.closed_early
    async with aclosing(local.answer(_TARGET, make_request())) as answer:
        assert await anext(answer) == Accepted()
        assert isinstance(await anext(answer), Waiting)
    await until(lambda: models.closed_early > closed_before)


async def test_an_answer_has_a_deadline_that_grows_with_its_length(
    local: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(gateway, "LOCAL_SECONDS", 0.2)
    for max_tokens, is_streamed, seconds in (
        (512, False, 0.2),
        (100, True, 0.2),
        (1024, True, 0.4),
    ):
        with subtests.test(max_tokens=max_tokens, is_streamed=is_streamed):
            models.script(LOCAL_MODEL, Reply(hold=StepHold()))
            request = make_request(max_tokens=max_tokens, is_streamed=is_streamed)
            started = asyncio.get_running_loop().time()
            with pytest.raises(ModelFailed) as failed:
                await read_parts(local, _TARGET, request)
            assert failed.value.reason == "timeout"
            assert asyncio.get_running_loop().time() - started >= seconds
