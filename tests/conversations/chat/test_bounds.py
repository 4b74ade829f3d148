"""Limits that protect a tenant from the requests, visitors and models of others."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from litestar import Litestar

from app.domain.conversations.chat import agent_loop
from app.domain.conversations.chat.chat_jobs import CHAT_TURN
from app.http import idempotency
from app.main import create_app
from app.services import Services
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import create_visitor_headers
from tests.conversations.chat.database import execute, fetch_value
from tests.conversations.chat.delegation_scripts import add_sub_agent, build_call, reply_with_calls
from tests.conversations.chat.job_helpers import accept_job, create_runner, get_job
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.stores import Stores
from tests.world import World
from workers.lane_scanner import LaneScanner

# Turns


async def test_a_turn_sends_a_limited_number_of_model_requests(talk: Talker) -> None:
    """The limit holds although the models report no used tokens."""
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(*[build_call("grandkid")] * 16, usage=(0, 0)))
    talk.script(reply_with_calls(*[build_call("kid")] * 16, usage=(0, 0)))
    requests_before = len(talk.models.requests)
    await talk.say("Hello")
    # Agents that run when the limit is reached still answer.
    assert len(talk.models.requests) - requests_before <= 2 * agent_loop.MAX_TURN_REQUESTS


async def test_the_parents_model_does_not_see_a_providers_message(
    talk: Talker,
) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(status=401, message="account 4711 of billing@corp.example is unpaid"))
    talk.script(reply_with_calls(build_call("kid")), Reply())
    await talk.say("Hello")
    assert "4711" not in str(talk.asked)


# Visitors


async def test_visitors_share_the_rate_limit_of_the_plan(world: World, models: ModelServer) -> None:
    owner = await world.user("tenant_admin", await world.tenant("free"))
    talk = await talker(world, models, client=owner)
    headers = await create_visitor_headers(talk)
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    answers = []
    for number in range(14):
        # Each visitor has another address, like the users of a stolen key.
        visitor = world.anonymous()
        body = {"session_id": f"s{number}", "message": "Hi"}
        answers.append(await visitor.post(path, body, headers=headers))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert [answer.status_code for answer in answers[:6]] == [200] * 6
    assert refused
    assert refused[0].json()["error"]["code"] == "rate_limited"
    assert int(refused[0].headers["retry-after"]) >= 1
    # The tenant's own users are not limited by it.
    assert (await owner.get("/auth/me")).status_code == 200


# Connections


@pytest.fixture(scope="module")
async def single_connection_world(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    """The application with a single database connection."""
    world = World(create_app(msgspec.structs.replace(stores.settings, pool_size=1)))
    yield world
    await world.services.close()


async def test_async_chat_with_an_idempotency_key_needs_one_connection(
    single_connection_world: World, models: ModelServer
) -> None:
    talk = await talker(single_connection_world, models)
    answers = await asyncio.gather(
        *(
            talk.client.post(
                f"{talk.path}/chat/async", {"message": "Hi"}, headers={"idempotency-key": f"k{n}"}
            )
            for n in range(4)
        )
    )
    assert [answer.status_code for answer in answers] == [202] * 4


async def test_a_turn_holds_no_connection_while_the_model_answers(
    single_connection_world: World, models: ModelServer
) -> None:
    talk = await talker(single_connection_world, models)
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    headers = {"idempotency-key": "k"}
    turn = asyncio.create_task(
        talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
    )
    await until(lambda: talk.asked)
    async with asyncio.timeout(5):
        assert (await talk.client.get("/auth/me")).status_code == 200
    hold.set()
    assert (await turn).status_code == 200


# Workers


async def test_a_worker_limits_the_concurrent_jobs_of_a_tenant(
    world: World, models: ModelServer, services: Services
) -> None:
    busy, other = await talker(world, models), await talker(world, models)
    hold = asyncio.Event()
    busy.script(Reply(hold=hold))
    await execute(services, "DELETE FROM work")
    runner = create_runner(services)
    scanner = LaneScanner(services, runner, CHAT_TURN.name, slots=8, share=2)
    jobs = [await accept_job(talk) for talk in (busy, busy, busy, other)]
    assert await scanner.scan() == 3
    await until(lambda: len(busy.asked) == 2)
    assert (await get_job(other, jobs[3], wait=10))["status"] == "completed"
    assert await scanner.scan() == 0
    hold.set()
    await until(lambda: not runner.running_count)
    assert await scanner.scan() == 1
    assert (await get_job(busy, jobs[2], wait=10))["status"] == "completed"


# Idempotency keys


async def test_an_idempotency_key_is_not_taken_over_while_its_request_runs(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request renews its key, however long it takes."""
    monkeypatch.setattr(idempotency, "_RENEW_SECONDS", 0.05)
    hold = asyncio.Event()
    talk.script(Reply(hold=hold), Reply(texts=["Again"]))
    headers = {"idempotency-key": "slow"}

    async def post() -> Any:
        return await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)

    first = asyncio.create_task(post())
    await until(lambda: talk.asked)
    is_running = "status IS NULL AND holder IS NOT NULL"
    await execute(
        services,
        "UPDATE idempotency_keys SET renewed_at = now() - interval '2 minutes', created_at = now() "
        f"WHERE {is_running}",
    )
    expired = (
        f"SELECT count(*) FROM idempotency_keys WHERE {is_running} "
        "AND renewed_at < now() - interval '1 minute'"
    )
    async with asyncio.timeout(10):
        while await fetch_value(services, expired):  # noqa: ASYNC110  # the request renews its key
            await asyncio.sleep(0.01)
    second = asyncio.create_task(post())
    _, waiting = await asyncio.wait([second], timeout=0.2)
    assert waiting
    hold.set()
    answers = [await first, await second]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert len(talk.asked) == 1
