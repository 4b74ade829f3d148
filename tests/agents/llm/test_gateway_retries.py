"""Retries of the gateway to models."""

import asyncio
import itertools
import time

import pytest

from app.domain.agents.llm import gateway
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import Target, Text, UsedTokens
from app.net.egress import Guard
from app.services import Services
from tests.agents.llm.answers import (
    KEY,
    STREAMED_REQUEST,
    make_request,
    read_failure,
    read_parts,
    scripted_target,
)
from tests.assertions import until
from tests.model_server import ModelServer, Reply
from tests.ports import free_port

WHOLE_REQUEST = make_request(is_streamed=False)

BROKEN_REPLY = Reply(raw=b"{nope")

TRANSIENT_REPLIES = {
    "too many requests": Reply(status=429),
    "500": Reply(status=500),
    "502": Reply(status=502),
    "503": Reply(status=503),
    "dropped": Reply(drop_after=0),
    "not the wire format": BROKEN_REPLY,
}


async def test_a_transient_failure_is_retried(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    name = "once-more"
    for is_streamed, (reason, reply) in itertools.product((True, False), TRANSIENT_REPLIES.items()):
        with subtests.test(reason, is_streamed=is_streamed):
            models.script(name, reply, Reply(texts=["Yes"]))
            requests_before = len(models.asked(name))
            request = STREAMED_REQUEST if is_streamed else WHOLE_REQUEST
            parts = await read_parts(model_gateway, scripted_target(models, name), request)
            assert parts == [Text("Yes"), UsedTokens(11, 7)]
            assert len(models.asked(name)) == requests_before + 2


async def test_a_retry_repeats_the_same_request(model_gateway: Models, models: ModelServer) -> None:
    models.script("same", Reply(status=500), Reply(status=500), Reply())
    await read_parts(model_gateway, scripted_target(models, "same"))
    first, *others = models.asked("same")
    assert others == [first, first]


async def test_a_request_is_sent_three_times_at_most(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for reason, reply in TRANSIENT_REPLIES.items():
        with subtests.test(reason):
            models.script("three", reply)
            requests_before = len(models.asked("three"))
            await read_failure(model_gateway, scripted_target(models, "three"))
            assert len(models.asked("three")) == requests_before + 3


async def test_the_last_failure_is_reported(model_gateway: Models, models: ModelServer) -> None:
    replies = [Reply(status=500, message=word) for word in ("one", "two", "three")]
    models.script("last", *replies)
    error, _ = await read_failure(model_gateway, scripted_target(models, "last"))
    assert error.message == "scripted/last: three"


async def test_a_refusal_or_a_timeout_is_not_retried(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    """The provider charges for an answer that arrives too late."""
    cases: list[tuple[int, str]] = [
        *[(status, "refused") for status in (400, 401, 403, 404, 413, 422)],
        *[(status, "timeout") for status in (408, 504)],
    ]
    for status, reason in cases:
        with subtests.test(status=status, reason=reason):
            name = f"{reason}-{status}"
            models.script(name, Reply(status=status), Reply())
            error, _ = await read_failure(model_gateway, scripted_target(models, name))
            assert error.reason == reason
            assert len(models.asked(name)) == 1


async def test_a_refusal_after_a_transient_failure_ends_the_retries(
    model_gateway: Models, models: ModelServer
) -> None:
    models.script("then", Reply(status=500), Reply(status=401), Reply())
    error, _ = await read_failure(model_gateway, scripted_target(models, "then"))
    assert error.reason == "refused"
    assert len(models.asked("then")) == 2


@pytest.mark.usefixtures("_short_retries")
async def test_an_unreachable_provider_is_retried(services: Services, models: ModelServer) -> None:
    closed_port, open_port = free_port(), int(models.url.rpartition(":")[2].partition("/")[0])
    ports: list[int] = []

    async def resolve(_host: str, port: int) -> list[str]:
        ports.append(port)
        return ["127.0.0.1"]

    model_gateway = Models(Guard(("models.example.com",), resolve), services.redis, has_local=False)
    for port in (closed_port, open_port):
        url = f"http://models.example.com:{port}/v1"
        target = Target("scripted/late", "scripted", KEY, url)
        if port == closed_port:
            error, _ = await read_failure(model_gateway, target)
            assert error.reason == "unreachable"
        else:
            assert await read_parts(model_gateway, target)
    await model_gateway.close()
    assert ports == [closed_port, closed_port, closed_port, open_port]


async def test_an_answer_with_passed_on_parts_is_not_retried(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: dict[str, Reply] = {
        "dropped": Reply(texts=["One", "two"], drop_after=1),
        "an error": Reply(texts=["One", "two"], error_after=1),
    }
    for name, reply in cases.items():
        with subtests.test(name):
            models.script("amid", reply, Reply(texts=["From the start"]))
            requests_before = len(models.asked("amid"))
            _, before = await read_failure(model_gateway, scripted_target(models, "amid"))
            assert before == [Text("One")]
            assert len(models.asked("amid")) == requests_before + 1


async def test_the_retry_delays_grow(
    model_gateway: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.1, 0.3))
    models.script("pauses", Reply(status=500))
    started = time.monotonic()
    await read_failure(model_gateway, scripted_target(models, "pauses"))
    assert 0.4 <= time.monotonic() - started < 3


async def test_retry_after_sets_the_delay(model_gateway: Models, models: ModelServer) -> None:
    models.script("own-wait", Reply(status=429, headers={"Retry-After": "0.4"}), Reply())
    started = time.monotonic()
    await read_parts(model_gateway, scripted_target(models, "own-wait"))
    assert 0.4 <= time.monotonic() - started < 3
    assert len(models.asked("own-wait")) == 2


async def test_a_retry_after_of_zero_retries_at_once(
    model_gateway: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (30.0, 30.0))
    models.script("no-wait", Reply(status=503, headers={"Retry-After": "0"}), Reply())
    async with asyncio.timeout(5):
        await read_parts(model_gateway, scripted_target(models, "no-wait"))


async def test_a_retry_after_over_ten_seconds_ends_the_retries(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["10.1", "60", "9" * 30, "11.5"]
    for seconds in cases:
        with subtests.test(seconds=seconds):
            models.script("long-wait", Reply(status=429, headers={"Retry-After": seconds}), Reply())
            requests_before = len(models.asked("long-wait"))
            async with asyncio.timeout(5):
                error, _ = await read_failure(model_gateway, scripted_target(models, "long-wait"))
            assert error.reason == "rate_limited"
            assert len(models.asked("long-wait")) == requests_before + 1


async def test_a_retry_after_of_exactly_the_limit_is_waited(
    model_gateway: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_MAX_RETRY_SECONDS", 0.3)
    models.script("longest", Reply(status=429, headers={"Retry-After": "0.3"}), Reply())
    assert await read_parts(model_gateway, scripted_target(models, "longest"))
    assert len(models.asked("longest")) == 2


async def test_a_cancelled_request_is_not_retried(
    model_gateway: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (9.0, 9.0))
    models.script("cancelled", Reply(status=500), Reply())
    task = asyncio.create_task(read_parts(model_gateway, scripted_target(models, "cancelled")))
    await until(lambda: models.asked("cancelled") and not models.open)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(models.asked("cancelled")) == 1
