"""What one tenant, one visitor or one model cannot do to everybody else."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec
import pytest
from litestar import Litestar

from app.domain.chat import agent_loop
from app.domain.events.service import emit_dead
from app.http import idempotency, sse
from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.model_server import ModelServer, Reply
from tests.stores import Stores
from tests.talk import Talker, give_key, talker
from tests.world import World
from workers.main import JOBS, ON_DEAD
from workers.runner import Runner


async def _child(talk: Talker, name: str) -> Talker:
    child = await talk.agent(name)
    body = {"agent_id": child.agent_id}
    answer = await talk.client.post(f"{talk.path}/sub-agents/attach", body)
    assert answer.status_code == 201, answer.text
    return child


# One request


async def test_a_turn_asks_models_a_bounded_number_of_times(talk: Talker) -> None:
    """Whatever the endpoints say of what they used."""
    child = await _child(talk, "Kid")
    await _child(child, "Grandkid")
    many = [("delegate_to_grandkid", {"task": "go on"})] * 16
    child.script(Reply(texts=[], calls=many, usage=(0, 0)))
    calls = [("delegate_to_kid", {"task": "go on"})] * 16
    talk.script(Reply(texts=[], calls=calls, usage=(0, 0)))
    before = len(talk.models.requests)
    await talk.say("Hello")
    # Those who were already at it when the bound was reached still end with an answer.
    assert len(talk.models.requests) - before <= 2 * agent_loop.MAX_TURN_REQUESTS


async def test_a_provider_s_words_do_not_reach_the_model_that_visitors_talk_to(
    talk: Talker,
) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(status=401, message="account 4711 of billing@corp.example is unpaid"))
    talk.script(Reply(texts=[], calls=[("delegate_to_kid", {"task": "x"})]), Reply())
    await talk.say("Hello")
    assert "4711" not in str(talk.asked)


# Visitors


async def _visitor(talk: Talker) -> dict[str, str]:
    body = {"agent_id": talk.agent_id, "name": "Site"}
    made = await talk.client.post("/api/v1/embed/api-keys", body)
    return {"x-api-key": made.json()["api_key"]}


async def test_all_visitors_together_have_what_the_plan_allows(
    world: World, models: ModelServer
) -> None:
    owner = await world.user("tenant_admin", await world.tenant("free"))
    talk = await talker(world, models, client=owner)
    headers, path = await _visitor(talk), f"/api/v1/public/agents/{talk.agent_id}/chat"
    answers = []
    for number in range(14):
        # Each from an address of its own, as a stolen key would be used.
        visitor = world.anonymous()
        body = {"session_id": f"s{number}", "message": "Hi"}
        answers.append(await visitor.post(path, body, headers=headers))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert [answer.status_code for answer in answers[:6]] == [200] * 6
    assert refused
    assert refused[0].json()["error"]["code"] == "rate_limited"
    assert int(refused[0].headers["retry-after"]) >= 1
    # Their own people are not locked out by it.
    assert (await owner.get("/auth/me")).status_code == 200


# Connections


@pytest.fixture
async def narrow(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    """The application with a single database connection."""
    world = World(create_app(msgspec.structs.replace(stores.settings, pool_size=1)))
    yield world
    await world.services.close()


async def test_async_chat_with_a_key_needs_one_connection(
    narrow: World, models: ModelServer
) -> None:
    talk = await talker(narrow, models)
    answers = await asyncio.gather(
        *(
            talk.client.post(
                f"{talk.path}/chat/async", {"message": "Hi"}, headers={"idempotency-key": f"k{n}"}
            )
            for n in range(4)
        )
    )
    assert [answer.status_code for answer in answers] == [202] * 4


async def test_a_turn_needs_no_connection_while_the_model_talks(
    narrow: World, models: ModelServer
) -> None:
    talk = await talker(narrow, models)
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    headers = {"idempotency-key": "k"}
    asked = asyncio.create_task(
        talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
    )
    await until(lambda: talk.asked)
    async with asyncio.timeout(5):
        assert (await talk.client.get("/auth/me")).status_code == 200
    hold.set()
    assert (await asked).status_code == 200


# Workers


async def test_no_tenant_takes_every_place_of_a_worker(
    world: World, models: ModelServer, services: Services
) -> None:
    greedy, patient = await talker(world, models), await talker(world, models)
    hold = asyncio.Event()
    greedy.script(Reply(hold=hold))
    runner = Runner(
        services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead, tenant_shares={"chat": 2}
    )
    accepted = []
    for talk in (greedy, greedy, greedy, patient):
        answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Hi"})
        accepted.append(
            (await _work_of(services, answer.json()["job_id"]), answer.json()["job_id"])
        )
    running = [asyncio.create_task(runner.run(work_id)) for work_id, _ in accepted[:2]]
    await until(lambda: len(greedy.asked) == 2)
    await runner.run(accepted[2][0])
    await runner.run(accepted[3][0])
    path = f"{patient.path}/chat/jobs/{accepted[3][1]}"
    assert (await patient.client.get(path)).json()["status"] == "completed"
    assert len(greedy.asked) == 2
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        put_back = await (await tx.raw()).fetchrow(
            "SELECT state, attempt FROM work WHERE id = $1", accepted[2][0]
        )
    assert dict(put_back) == {"state": "pending", "attempt": 0}
    hold.set()
    await asyncio.gather(*running)


async def _work_of(services: Services, job_id: str) -> str:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        found: str = await (await tx.raw()).fetchval(
            "SELECT work_id FROM chat_jobs WHERE id = $1", job_id
        )
    return found


# Long answers under a key


async def test_a_key_whose_holder_is_at_work_is_not_taken_over(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes; one that has fallen silent is."""
    monkeypatch.setattr(idempotency, "_RENEW_SECONDS", 0.05)
    hold = asyncio.Event()
    talk.script(Reply(hold=hold), Reply(texts=["Again"]))
    headers = {"idempotency-key": "slow"}

    async def post() -> Any:
        return await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)

    first = asyncio.create_task(post())
    await until(lambda: talk.asked)
    old = (
        "UPDATE idempotency_keys SET renewed_at = now() - interval '2 minutes', created_at = now()"
    )
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(old + " WHERE status IS NULL AND holder IS NOT NULL")
    await asyncio.sleep(0.3)
    second = asyncio.create_task(post())
    await asyncio.sleep(0.2)
    assert len(talk.asked) == 1
    hold.set()
    answers = [await first, await second]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert len(talk.asked) == 1


# Slow readers


async def test_a_reader_that_takes_nothing_slows_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(sse, "STALLED_SECONDS", 0.3)
    made = 0
    closed = asyncio.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        nonlocal made
        try:
            while True:
                made += 1
                yield b"x" * 100
        finally:
            closed.set()

    async def stuck(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def nothing() -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        await sse._Stream(source())({}, nothing, stuck)  # type: ignore[arg-type]
    assert closed.is_set()
    assert made < 50


async def test_a_tenant_has_a_bounded_number_of_provider_keys(
    world: World, models: ModelServer
) -> None:
    """One list of models asks each default key; nobody opens thousands of connections with it."""
    client = await world.user("tenant_admin")
    for _ in range(50):
        await give_key(client, models)
    more = {"provider": "scripted", "name": "One more", "api_key": "k", "base_url": models.url}
    assert (await client.post("/api/v1/api-keys", more)).status_code == 409
