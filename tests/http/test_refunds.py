"""Refunds: a request that is refused with 422 costs 1 unit, whoever pays for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from app.http import refunds
from app.http.limiter import Limiter
from app.http.refunds import Refunds
from app.jobs import background
from app.kit.redis import LuaScriptClient
from app.security.plans import Charge, Verdict
from app.services import Services
from tests.agents.tools.execution_requests import NO_AGENT, NO_TOOL
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import send_chat
from tests.conversations.embed.factories import create_agent
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import talker
from tests.world import World

_CHAT = f"/api/v1/agents/{NO_AGENT}/chat"


async def _read_used(services: Services, subject: str) -> tuple[int, ...]:
    """Returns the units used of the minute and the requests of the hour, once all is refunded."""
    await background.drain()
    values = await services.redis.hmget(f"parley:limit:{subject}", "minute", "hour")
    return tuple(int(value or 0) for value in values)


async def test_invalid_input_costs_a_caller_one_unit(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, Any]] = [
        ("POST", _CHAT, {"message": 7}),
        ("POST", f"{_CHAT}/stream", {}),
        ("POST", "/v1/chat/completions", {"model": NO_AGENT}),
        ("POST", f"/v1/tools/{NO_TOOL}/execute", {"input": "text"}),
        ("POST", "/users/invite", {}),
        ("DELETE", "/v1/tools/%00", None),
        ("GET", "/v1/tools?page=none", None),
    ]
    limits = {"requests_per_minute": 1000, "requests_per_hour": 1000}
    user = await world.user("tenant_admin", await world.tenant(limits=limits))
    for number, (method, path, body) in enumerate(cases, start=1):
        with subtests.test(method=method, path=path):
            answer = await user(method, path, json=body)
            assert answer.status_code == 422
            # It counts as a request of the hour all the same.
            assert await _read_used(services, user.tenant_id) == (number, number)


async def test_the_refused_answer_shows_the_charge_and_the_next_one_the_refund(
    world: World,
) -> None:
    user = await world.user("tenant_admin", await world.tenant(limits={"requests_per_minute": 100}))
    answer = await user.post(_CHAT, {})
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (422, "90")
    await background.drain()
    answer = await user.get("/auth/me")
    assert answer.headers["x-ratelimit-remaining"] == "98"


async def test_other_refusals_cost_a_caller_all_units(world: World, services: Services) -> None:
    developer = await world.user("agent_developer", await world.tenant())
    answer = await developer.post(f"/v1/tools/{NO_TOOL}/execute", {})
    refused(answer, 404, "tool_not_found")
    refused(await developer.post(_CHAT, {"message": "Hi"}), 404, "agent_not_found")
    assert (await _read_used(services, developer.tenant_id))[0] == 15


async def test_invalid_input_costs_an_address_one_unit(world: World, services: Services) -> None:
    caller = world.anonymous()
    assert (await caller.post("/auth/login", {})).status_code == 422
    assert (await _read_used(services, caller.address))[0] == 1
    refused(await caller.post("/users/invite", {}), 401, "unauthorized")
    assert (await _read_used(services, caller.address))[0] == 3


async def test_a_refusal_of_the_model_s_provider_costs_all_units(
    world: World, models: ModelServer, services: Services
) -> None:
    client = await world.user("tenant_admin", await world.tenant())
    talk = await talker(world, models, client=client)
    talk.script(Reply(status=422, message="content is not allowed"))
    before = (await _read_used(services, client.tenant_id))[0]
    refused(await send_chat(client, talk, "Hi"), 422, "provider_rejected")
    assert (await _read_used(services, client.tenant_id))[0] - before == 10


class _SlowLimiter(Limiter):
    def __init__(self) -> None:
        super().__init__(LuaScriptClient("redis://127.0.0.1:1/0", ""))
        self.started = 0
        self.end = asyncio.Event()

    async def refund(self, charges: Sequence[Charge], charged_at: int) -> None:
        self.started += 1
        await self.end.wait()


async def test_while_redis_is_slow_the_refunds_that_wait_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refunds, "_MAX_PENDING", 3)
    limiter = _SlowLimiter()
    service = Refunds(limiter)
    state: dict[str, Any] = {}
    refunds.record(state, [Charge("a", "", 2)], Verdict(True, 60, 9, 9, 0, 0))  # noqa: FBT003
    for _ in range(5):
        service.give_back(state, 422)
    await until(lambda: limiter.started)
    assert limiter.started == 3
    limiter.end.set()
    await background.drain()
    service.give_back(state, 422)
    await background.drain()
    assert limiter.started == 4


async def test_work_is_paid_for_even_if_it_is_refused(world: World, services: Services) -> None:
    user = await world.user(
        "tenant_admin", await world.tenant(limits={"requests_per_minute": 1000})
    )
    path = f"/api/v1/agents/{await create_agent(user)}/attachments"
    answer = await user.post(path, files={"file": ("a.pdf", b"no document")})
    refused(answer, 422, "validation_error")
    used, _ = await _read_used(services, user.tenant_id)
    assert used >= 10
    body = {"model": "local/espeak", "input": "Hi", "stream_format": "sse"}
    refused(await user.post("/v1/audio/speech", body), 422, "validation_error")
    assert (await _read_used(services, user.tenant_id))[0] == used + 10
