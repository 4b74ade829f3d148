"""Asynchronous chat: waiting for a job, access to jobs, one turn at a time."""

import asyncio
import time

import pytest

from app.domain.agents.definition import runtime as runtimes
from app.domain.conversations.chat import turn
from app.domain.conversations.chat.start_turn import Question, start_turn
from app.jobs import work
from app.services import Services
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import list_event_data
from tests.conversations.chat.database import fetch_row, fetch_value
from tests.conversations.chat.job_helpers import (
    RETRY_AT_ONCE,
    SOON_SECONDS,
    RedisWaiters,
    accept_job,
    get_job,
    job_path,
    list_job_messages,
    pause_job,
    run_job,
    run_new_job,
    run_next_attempt,
)
from tests.http_clients import open_client
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.server import Server
from tests.world import Client, World


async def test_a_wait_out_of_bounds_is_refused(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for wait in ("31", "-1", "x", "1.5", ""):
        with subtests.test(wait=wait):
            talk = await talker(world, models)
            job = await accept_job(talk)
            answer = await talk.client.get(job_path(talk, job), params={"wait": wait})
            assert list(refused(answer, 422, "validation_error")["details"]) == ["wait"]


async def test_waiting_for_a_finished_job_returns_at_once(
    world: World, models: ModelServer, services: Services, subtests: pytest.Subtests
) -> None:
    for wait in (0, 30):
        with subtests.test(wait=wait):
            talk = await talker(world, models)
            job = await run_new_job(talk, services)
            started = time.monotonic()
            assert (await get_job(talk, job, wait=wait))["status"] == "completed"
            assert time.monotonic() - started < SOON_SECONDS


async def test_without_wait_the_current_state_is_returned(talk: Talker) -> None:
    job = await accept_job(talk)
    started = time.monotonic()
    assert (await get_job(talk, job))["status"] == "pending"
    assert time.monotonic() - started < SOON_SECONDS


async def test_waiting_ends_after_the_requested_seconds(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The wait does not last until the next look at the row.
    monkeypatch.setattr(work, "_SLICE_SECONDS", 20.0)
    job = await accept_job(talk)
    started = time.monotonic()
    assert (await get_job(talk, job, wait=1))["status"] == "pending"
    assert 0.9 <= time.monotonic() - started < 10


async def test_waiting_in_another_process_ends_as_soon_as_the_job_does(
    world: World, models: ModelServer, services: Services, server: Server, subtests: pytest.Subtests
) -> None:
    for status, outcome in ((200, "completed"), (400, "failed")):
        with subtests.test(status=status, outcome=outcome):
            talk = await talker(world, models)
            job, waiters = await accept_job(talk), await RedisWaiters.create(services)
            talk.script(Reply(status=status))
            headers = {"authorization": f"Bearer {talk.client.token}"}
            async with open_client(base_url=server.url, headers=headers, timeout=40) as remote:
                request = asyncio.create_task(remote.get(job_path(talk, job), params={"wait": 30}))
                await waiters.wait_for(1)
                assert not request.done()
                await run_job(services, job)
                ended_at = time.monotonic()
                answer = await request
                assert time.monotonic() - ended_at < SOON_SECONDS
            assert answer.json()["status"] == outcome


async def test_all_waiting_requests_return_when_the_job_ends(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No request learns of the end by reading the row.
    monkeypatch.setattr(work, "_SLICE_SECONDS", 20.0)
    job, waiters = await accept_job(talk), await RedisWaiters.create(services)
    requests = [asyncio.create_task(get_job(talk, job, wait=30)) for _ in range(3)]
    await waiters.wait_for(3)
    await run_job(services, job)
    async with asyncio.timeout(10):
        views = await asyncio.gather(*requests)
    assert {view["status"] for view in views} == {"completed"}


async def test_waiting_continues_until_a_retried_job_ends(talk: Talker, services: Services) -> None:
    unavailable = Reply(status=503, headers=RETRY_AT_ONCE)
    talk.script(unavailable, unavailable, unavailable, Reply())
    job, waiters = await accept_job(talk), await RedisWaiters.create(services)
    request = asyncio.create_task(get_job(talk, job, wait=30))
    await run_job(services, job)
    await waiters.wait_for(1)
    assert not request.done()
    await run_next_attempt(services, job)
    assert (await request)["status"] == "completed"


async def test_waiting_holds_no_database_connection(talk: Talker, services: Services) -> None:
    """Forty requests wait, the pool has twenty connections; another request succeeds."""
    job, waiters = await accept_job(talk), await RedisWaiters.create(services)
    requests = [asyncio.create_task(get_job(talk, job, wait=30)) for _ in range(40)]
    await waiters.wait_for(40)
    async with asyncio.timeout(5):
        assert (await talk.client.get(talk.path)).status_code == 200
    await run_job(services, job)
    views = await asyncio.gather(*requests)
    assert {view["status"] for view in views} == {"completed"}


async def test_another_users_job_is_not_found(
    models: ModelServer, world: World, subtests: pytest.Subtests
) -> None:
    for role in ("agent_user", "viewer"):
        for method in ("GET", "DELETE"):
            with subtests.test(role=role, method=method):
                talk = await talker(world, models)
                job = await accept_job(talk)
                other = await world.user(role, talk.client.tenant_id)
                refused(await other(method, job_path(talk, job)), 404, "job_not_found")
                assert (await get_job(talk, job))["status"] == "pending"


async def test_roles_that_write_conversations_see_and_cancel_jobs_of_others(
    models: ModelServer, world: World, subtests: pytest.Subtests
) -> None:
    for role in ("agent_developer", "tenant_admin", "super_admin"):
        for method in ("GET", "DELETE"):
            with subtests.test(role=role, method=method):
                talk = await talker(world, models)
                user = await world.user("agent_user", talk.client.tenant_id)
                job = await accept_job(talk, caller=user)
                other = await world.user(
                    role, None if role == "super_admin" else talk.client.tenant_id
                )
                assert (await other(method, job_path(talk, job))).status_code == 200


async def test_users_see_and_cancel_their_own_jobs_without_a_permission(
    models: ModelServer, world: World, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "DELETE"):
        with subtests.test(method=method):
            talk = await talker(world, models)
            user = await world.user("agent_user", talk.client.tenant_id)
            job = await accept_job(talk, caller=user)
            assert (await user(method, job_path(talk, job))).status_code == 200


async def test_a_job_is_found_only_under_its_agent_and_tenant(
    world: World, models: ModelServer, admin: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "DELETE"):
        with subtests.test(method=method):
            talk = await talker(world, models)
            job = await accept_job(talk)
            other = await talk.agent()
            refused(await admin(method, job_path(talk, job)), 404, "job_not_found")
            refused(await talk.client(method, job_path(other, job)), 404, "job_not_found")
            unknown = job_path(talk, {"job_id": "job_none"})
            refused(await talk.client(method, unknown), 404, "job_not_found")
            refused(await anonymous(method, job_path(talk, job)), 401, "unauthorized")
            assert (await get_job(talk, job))["status"] == "pending"


async def test_a_conversation_is_busy_until_its_job_ends(talk: Talker, services: Services) -> None:
    job = await accept_job(talk, "One")
    body = {"message": "Two", "conversation_id": job["conversation_id"]}
    for route in ("chat", "chat/stream", "chat/async"):
        answer = await talk.client.post(f"{talk.path}/{route}", body)
        refused(answer, 409, "conversation_busy")
    async with pause_job(talk, services, job):
        refused(await talk.client.post(f"{talk.path}/chat", body), 409, "conversation_busy")
    assert (await talk.client.post(f"{talk.path}/chat/async", body)).status_code == 202
    assert [content for _, content in await list_job_messages(talk, job)] == [
        "One",
        "Hello there",
        "Two",
    ]


async def test_one_of_concurrent_jobs_of_a_conversation_is_accepted(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    answers = await asyncio.gather(
        *(talk.client.post(f"{talk.path}/chat/async", body) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409]
    assert len(await list_job_messages(talk, first)) == 3


async def test_a_conversation_stays_busy_between_attempts(talk: Talker, services: Services) -> None:
    talk.script(Reply(status=503, headers=RETRY_AT_ONCE))
    job = await run_new_job(talk, services)
    body = {"message": "Me", "conversation_id": job["conversation_id"]}
    refused(await talk.client.post(f"{talk.path}/chat", body), 409, "conversation_busy")


async def test_a_refused_job_writes_no_rows(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    body = {"message": "Two", "conversation_id": job["conversation_id"]}
    await talk.client.post(f"{talk.path}/chat/async", body)
    row = await fetch_row(
        services,
        "SELECT (SELECT count(*) FROM chat_jobs WHERE agent_id = $1) AS jobs,"
        " (SELECT count(*) FROM work WHERE tenant_id = $2) AS work",
        talk.agent_id,
        talk.client.tenant_id,
    )
    assert tuple(row) == (1, 1)
    assert len(await list_job_messages(talk, job)) == 1


async def test_a_job_in_a_known_conversation_is_on_disk_before_it_is_acknowledged(
    talk: Talker, services: Services
) -> None:
    """The transaction of accepted work waits for the disk when it commits."""
    first = await talk.say("Hello")
    tenant_id = talk.client.tenant_id
    async with services.db.tx(tenant_id) as tx:
        # The default of Postgres, which the tests turn off.
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


async def test_the_tokens_of_a_job_are_counted_although_its_agent_is_deleted(
    talk: Talker, services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold, usage=(900, 90)))
    run = asyncio.create_task(run_job(services, await accept_job(talk)))
    await until(lambda: talk.asked)
    assert (await talk.client.delete(talk.path)).status_code == 204
    hold.set()
    await run
    sql = "SELECT sum(prompt_tokens + completion_tokens) FROM usage WHERE agent_id = $1"
    assert await fetch_value(services, sql, talk.agent_id) == 990


async def test_a_job_whose_agent_is_deleted_ends_with_an_event(talk: Talker) -> None:
    """A subscriber that waits for the event does not wait forever."""
    job = await accept_job(talk)
    assert (await talk.client.delete(talk.path)).status_code == 204
    [event] = await list_event_data(talk, "agent.chat.completed")
    assert (event["job_id"], event["status"]) == (job["job_id"], "cancelled")


async def test_a_long_question_reaches_the_model_whole(talk: Talker, services: Services) -> None:
    job = await accept_job(talk, "a" * 150_000)
    await run_job(services, job)
    assert len(talk.asked[-1]["messages"][-1]["content"]) == 150_000
