"""Asynchronous chat: waiting for a job, whose job it is, one turn at a time."""

import asyncio
import time

import httpx
import pytest

from app.domain.agents import runtime as runtimes
from app.domain.chat import turn
from app.domain.chat.start_turn import Question, start_turn
from app.domain.events.service import emit_dead
from app.kit import work
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.chat.job_helpers import (
    AT_ONCE,
    SOON_SECONDS,
    ListeningClients,
    accept_job,
    get_job,
    job_path,
    list_events,
    list_messages,
    read_row,
    run_job,
    run_job_now,
    run_to_end,
    while_running,
)
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker
from tests.world import Client, World
from workers.main import JOBS, ON_DEAD
from workers.runner import Runner


@pytest.mark.parametrize("wait", ["31", "-1", "x", "1.5", ""])
async def test_a_wait_out_of_bounds_is_refused(talk: Talker, wait: str) -> None:
    job = await accept_job(talk)
    answer = await talk.client.get(job_path(talk, job), params={"wait": wait})
    assert list(refused(answer, 422, "validation_error")["details"]) == ["wait"]


@pytest.mark.parametrize("wait", [0, 30])
async def test_a_job_that_is_over_is_not_waited_for(
    talk: Talker, services: Services, wait: int
) -> None:
    job = await run_to_end(talk, services)
    started = time.monotonic()
    assert (await get_job(talk, job, wait=wait))["status"] == "completed"
    assert time.monotonic() - started < SOON_SECONDS


async def test_without_wait_the_answer_is_what_is_known_now(talk: Talker) -> None:
    job = await accept_job(talk)
    started = time.monotonic()
    assert (await get_job(talk, job))["status"] == "pending"
    assert time.monotonic() - started < SOON_SECONDS


async def test_waiting_ends_when_its_seconds_are_over(talk: Talker) -> None:
    job = await accept_job(talk)
    started = time.monotonic()
    assert (await get_job(talk, job, wait=1))["status"] == "pending"
    assert 0.9 <= time.monotonic() - started < 2


@pytest.mark.parametrize(("status", "outcome"), [(200, "completed"), (400, "failed")])
async def test_waiting_in_another_process_ends_as_soon_as_the_job_does(
    talk: Talker, services: Services, server: Server, status: int, outcome: str
) -> None:
    job, ears = await accept_job(talk), await ListeningClients.counted(services)
    talk.script(Reply(status=status))
    headers = {"authorization": f"Bearer {talk.client.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=40) as remote:
        waiting = asyncio.create_task(remote.get(job_path(talk, job), params={"wait": 30}))
        await ears.are_open(1)
        assert not waiting.done()
        await run_job(services, job)
        ended = time.monotonic()
        answer = await waiting
        assert time.monotonic() - ended < SOON_SECONDS
    assert answer.json()["status"] == outcome


async def test_everybody_who_waits_for_a_job_is_told_at_once(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that nobody finds out by looking at the row now and then.
    monkeypatch.setattr(work, "_SLICE_SECONDS", 20.0)
    job, ears = await accept_job(talk), await ListeningClients.counted(services)
    waiting = [asyncio.create_task(get_job(talk, job, wait=30)) for _ in range(3)]
    await ears.are_open(3)
    await run_job(services, job)
    _, late = await asyncio.wait(waiting, timeout=SOON_SECONDS)
    for task in late:
        task.cancel()
    await asyncio.wait(waiting)
    assert not late


async def test_a_job_that_waits_for_its_next_attempt_is_still_waited_for(
    talk: Talker, services: Services
) -> None:
    away = Reply(status=503, headers=AT_ONCE)
    talk.script(away, away, away, Reply())
    job, ears = await accept_job(talk), await ListeningClients.counted(services)
    waiting = asyncio.create_task(get_job(talk, job, wait=30))
    await run_job(services, job)
    await ears.are_open(1)
    assert not waiting.done()
    await run_job_now(services, job)
    assert (await waiting)["status"] == "completed"


async def test_who_waits_holds_no_database_connection(talk: Talker, services: Services) -> None:
    """Forty wait, the pool has twenty; others get through meanwhile."""
    job, ears = await accept_job(talk), await ListeningClients.counted(services)
    waiting = [asyncio.create_task(get_job(talk, job, wait=30)) for _ in range(40)]
    await ears.are_open(40)
    async with asyncio.timeout(5):
        assert (await talk.client.get(talk.path)).status_code == 200
    await run_job(services, job)
    views = await asyncio.gather(*waiting)
    assert {view["status"] for view in views} == {"completed"}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_another_users_job_is_not_found(
    talk: Talker, world: World, role: str, method: str
) -> None:
    job = await accept_job(talk)
    other = await world.user(role, talk.client.tenant_id)
    refused(await other(method, job_path(talk, job)), 404, "job_not_found")
    assert (await get_job(talk, job))["status"] == "pending"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("role", ["agent_developer", "tenant_admin", "super_admin"])
async def test_who_may_see_conversations_sees_and_cancels_other_peoples_jobs(
    talk: Talker, world: World, role: str, method: str
) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    job = await accept_job(talk, who=user)
    other = await world.user(role, None if role == "super_admin" else talk.client.tenant_id)
    assert (await other(method, job_path(talk, job))).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_ones_own_job_needs_no_permission(talk: Talker, world: World, method: str) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    job = await accept_job(talk, who=user)
    assert (await user(method, job_path(talk, job))).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_job_is_found_only_where_it_belongs(
    talk: Talker, admin: Client, anonymous: Client, method: str
) -> None:
    job = await accept_job(talk)
    other = await talk.agent()
    refused(await admin(method, job_path(talk, job)), 404, "job_not_found")
    refused(await talk.client(method, job_path(other, job)), 404, "job_not_found")
    unknown = job_path(talk, {"job_id": "job_none"})
    refused(await talk.client(method, unknown), 404, "job_not_found")
    refused(await anonymous(method, job_path(talk, job)), 401, "unauthorized")
    assert (await get_job(talk, job))["status"] == "pending"


async def test_a_conversation_is_busy_from_accepting_until_the_end(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk, "One")
    again = {"message": "Two", "conversation_id": job["conversation_id"]}
    for way in ("chat", "chat/stream", "chat/async"):
        answer = await talk.client.post(f"{talk.path}/{way}", again)
        refused(answer, 409, "conversation_busy")
    async with while_running(talk, services, job):
        refused(await talk.client.post(f"{talk.path}/chat", again), 409, "conversation_busy")
    assert (await talk.client.post(f"{talk.path}/chat/async", again)).status_code == 202
    assert [content for _, content in await list_messages(talk, job)] == [
        "One",
        "Hello there",
        "Two",
    ]


async def test_of_two_jobs_at_once_one_is_accepted(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    answers = await asyncio.gather(
        *(talk.client.post(f"{talk.path}/chat/async", body) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409]
    assert len(await list_messages(talk, first)) == 3


async def test_a_job_that_waits_for_its_next_attempt_keeps_its_conversation(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=503, headers=AT_ONCE))
    job = await run_to_end(talk, services)
    body = {"message": "Me", "conversation_id": job["conversation_id"]}
    refused(await talk.client.post(f"{talk.path}/chat", body), 409, "conversation_busy")


async def test_a_refused_job_leaves_nothing_behind(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    body = {"message": "Two", "conversation_id": job["conversation_id"]}
    await talk.client.post(f"{talk.path}/chat/async", body)
    row = await read_row(
        services,
        "SELECT (SELECT count(*) FROM chat_jobs WHERE agent_id = $1) AS jobs,"
        " (SELECT count(*) FROM work WHERE tenant_id = $2) AS work",
        talk.agent_id,
        talk.client.tenant_id,
    )
    assert tuple(row) == (1, 1)
    assert len(await list_messages(talk, job)) == 1


async def test_a_job_in_a_known_conversation_is_on_disk_before_it_is_acknowledged(
    talk: Talker, services: Services
) -> None:
    """Its transaction waits for the disk when it commits, as every accepted work's does."""
    first = await talk.say("Hello")
    tenant_id = talk.client.tenant_id
    async with services.db.tx(tenant_id) as tx:
        # As an operator's Postgres has it; that of the tests waits for no disk at all.
        await (await tx.raw()).execute("SET LOCAL synchronous_commit = on")
        runtime = await runtimes.load_runtime(tx, services.keyring, talk.agent_id)
        question = Question(
            speaker=turn.Speaker(talk.client.user_id),
            source="async",
            text="More?",
            conversation_id=first["conversation_id"],
        )
        await start_turn(tx, runtime, question, job_id="job_test")
        raw = await tx.raw()
        assert await raw.fetchval("SELECT current_setting('synchronous_commit')") == "on"
        await tx.rollback()


async def test_what_a_job_used_is_counted_although_its_agent_was_deleted_meanwhile(
    talk: Talker, services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold, usage=(900, 90)))
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Hi"})
    find = "SELECT work_id FROM chat_jobs WHERE id = $1"
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        work_id = await (await tx.raw()).fetchval(find, answer.json()["job_id"])
    running = asyncio.create_task(
        Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    )
    async with asyncio.timeout(10):
        while not talk.asked:  # noqa: ASYNC110  # the scripted model notes it
            await asyncio.sleep(0.01)
    assert (await talk.client.delete(talk.path)).status_code == 204
    hold.set()
    await running
    used = "SELECT sum(prompt_tokens + completion_tokens) FROM usage WHERE agent_id = $1"
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        assert await (await tx.raw()).fetchval(used, talk.agent_id) == 990


async def test_a_job_whose_agent_is_deleted_ends_with_an_event(talk: Talker) -> None:
    """Whoever waits for it by its event must not wait forever."""
    job = await accept_job(talk)
    assert (await talk.client.delete(talk.path)).status_code == 204
    [event] = await list_events(talk, "agent.chat.completed")
    assert (event["job_id"], event["status"]) == (job["job_id"], "cancelled")


async def test_a_long_question_reaches_the_model_whole(talk: Talker, services: Services) -> None:
    job = await accept_job(talk, "a" * 150_000)
    await run_job(services, job)
    assert len(talk.asked[-1]["messages"][-1]["content"]) == 150_000
