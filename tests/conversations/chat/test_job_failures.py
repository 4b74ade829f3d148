"""Asynchronous chat: failures, and a worker that lost its job."""

import asyncio
from typing import Any

from app.services import Services
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import list_event_data
from tests.conversations.chat.database import execute, fetch_row, fetch_value
from tests.conversations.chat.job_helpers import (
    EXPIRE_LEASE,
    RETRY_AT_ONCE,
    accept_job,
    create_runner,
    find_work_id,
    get_job,
    job_path,
    list_job_messages,
    pause_job,
    run_job,
    run_new_job,
    run_next_attempt,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def test_a_refusal_of_the_model_fails_the_job_at_once(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400, message="not today"), Reply())
    job = await run_new_job(talk, services)
    assert job["status"] == "failed"
    assert "reply" not in job
    assert job["finished_at"]
    assert job["error"]["code"] == "provider_rejected"
    assert "not today" in job["error"]["message"]
    assert job["error"]["details"]["reason"] == "refused"
    assert len(talk.asked) == 1
    event = (await list_event_data(talk, "agent.chat.completed"))[0]
    assert (event["status"], event["job_id"]) == ("failed", job["job_id"])
    # The provider's message is in the job, for its owner.
    assert (event["message"], event["error"]) == (None, "provider_rejected")


async def test_a_failed_job_leaves_its_turn_and_a_free_conversation(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400), Reply())
    job = await run_new_job(talk, services, "Lost")
    assert await list_job_messages(talk, job) == [("user", "Lost"), ("assistant", "")]
    await talk.say("Again", conversation_id=job["conversation_id"])
    # Consecutive questions are joined, because some providers refuse them.
    messages = talk.asked[1]["messages"][1:]
    assert messages == [{"role": "user", "content": "Lost\n\nAgain"}]


async def test_a_conversation_whose_first_job_failed_counts_once(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400), Reply())
    job = await run_new_job(talk, services, "Lost")
    await talk.say("Again", conversation_id=job["conversation_id"])
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_conversations"] == 1


async def test_a_transient_failure_is_retried_later(talk: Talker, services: Services) -> None:
    unavailable = Reply(status=503, headers=RETRY_AT_ONCE)
    talk.script(unavailable, unavailable, unavailable, Reply())
    job = await run_new_job(talk, services)
    assert job["status"] in {"pending", "running"}
    assert "error" not in job
    row = await fetch_row(
        services, "SELECT state, run_at > now() AS later FROM work WHERE ref_id = $1", job["job_id"]
    )
    assert tuple(row) == ("pending", True)
    await run_next_attempt(services, job)
    view = await get_job(talk, job)
    assert view["status"] == "completed"
    assert await list_job_messages(talk, job) == [("user", "Hi"), ("assistant", "Hello there")]
    assert len(await list_event_data(talk, "agent.chat.completed")) == 1
    assert len(talk.asked) == 4


async def test_a_job_fails_after_its_last_attempt(talk: Talker, services: Services) -> None:
    talk.script(Reply(status=429, message="slow down", headers=RETRY_AT_ONCE))
    job = await run_new_job(talk, services)
    for _ in range(2):
        await run_next_attempt(services, job)
        assert "error" not in await get_job(talk, job)
    await run_next_attempt(services, job)
    view = await get_job(talk, job)
    assert view["status"] == "failed"
    assert view["error"]["code"] == "rate_limited"
    assert view["error"]["details"]["reason"] == "rate_limited"
    assert len(await list_event_data(talk, "agent.chat.completed")) == 1
    talk.script(Reply())
    await talk.say("Free", conversation_id=job["conversation_id"])


async def test_archiving_the_agent_fails_a_pending_job(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    await talk.client.put(talk.path, {"status": "archived"})
    await run_job(services, job)
    view = await get_job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "agent_archived")
    assert talk.asked == []


async def test_deleting_the_provider_key_fails_a_pending_job(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    keys = await talk.client.get("/api/v1/api-keys")
    await talk.client.delete(f"/api/v1/api-keys/{keys.json()['data'][0]['id']}")
    await run_job(services, job)
    view = await get_job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "model_not_configured")


async def test_deleting_an_agent_deletes_its_pending_jobs(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    work_id = await find_work_id(services, job)
    assert (await talk.client.delete(talk.path)).status_code == 204
    await create_runner(services).run(work_id)
    assert talk.asked == []
    refused(await talk.client.get(job_path(talk, job)), 404, "job_not_found")
    row = await fetch_row(services, "SELECT state FROM work WHERE id = $1", work_id)
    assert row["state"] in {"done", "cancelled"}


async def test_deleting_an_agent_ends_its_running_job_without_an_error(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    work_id = await find_work_id(services, job)
    async with pause_job(talk, services, job):
        assert (await talk.client.delete(talk.path)).status_code == 204
    row = await fetch_row(services, "SELECT state, last_error FROM work WHERE id = $1", work_id)
    assert row["state"] in {"done", "cancelled"}, row["last_error"]


async def test_a_job_whose_workers_all_died_fails_and_frees_its_conversation(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    await execute(
        services, "UPDATE work SET attempt = max_attempts WHERE ref_id = $1", job["job_id"]
    )
    await run_job(services, job)
    view = await get_job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "internal_error")
    assert talk.asked == []
    assert [data["status"] for data in await list_event_data(talk, "agent.chat.completed")] == [
        "failed"
    ]
    await talk.say("Free", conversation_id=job["conversation_id"])


async def test_a_call_with_a_nul_does_not_fail_a_job(talk: Talker, services: Services) -> None:
    await talk.with_helper()
    call = ("delegate_to_helper", r'{"task": "a\u0000b"}')
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["Done"]))
    assert (await run_new_job(talk, services))["status"] == "completed"


async def test_a_worker_that_lost_its_lease_writes_nothing(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    async with pause_job(talk, services, job, Reply(texts=["From the second"])):
        await execute(services, EXPIRE_LEASE, job["job_id"])
        await run_job(services, job)
        view = await get_job(talk, job)
        assert view["reply"]["message"]["content"] == "From the second"
    assert await get_job(talk, job) == view
    assert await list_job_messages(talk, job) == [("user", "Hi"), ("assistant", "From the second")]
    assert len(await list_event_data(talk, "agent.chat.completed")) == 1
    sql = "SELECT count(*) FROM usage WHERE agent_id = $1"
    assert await fetch_value(services, sql, talk.agent_id) == 1


async def _resume_job(talk: Talker, helper: Talker, services: Services) -> dict[str, Any]:
    """Runs a job whose worker loses its lease after the sub-agent answered; another one ends it."""
    hold = asyncio.Event()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    talk.script(
        Reply(texts=["Asking."], calls=[("delegate_to_helper", {"task": "x"})], usage=(5, 1)),
        Reply(hold=hold),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    job = await accept_job(talk)
    first_run = asyncio.create_task(run_job(services, job))
    await until(lambda: len(talk.asked) == 2)
    await execute(services, EXPIRE_LEASE, job["job_id"])
    await run_job(services, job)
    hold.set()
    await first_run
    return await get_job(talk, job)


async def test_a_resumed_job_does_not_repeat_answered_calls(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    job = await _resume_job(talk, helper, services)
    assert job["status"] == "completed"
    assert job["reply"]["message"]["content"] == "Asking.\n\nAt 9, I hear."
    calls = [(call["tool"], call["output"]) for call in job["reply"]["tool_calls"]]
    assert calls == [("Helper", "At 9.")]
    assert len(helper.asked) == 1
    # The first round is not requested again; both workers send the same messages.
    assert len(talk.asked) == 3
    assert talk.asked[1]["messages"] == talk.asked[2]["messages"]


async def test_a_resumed_job_counts_the_tokens_of_its_sub_agents(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    job = await _resume_job(talk, helper, services)
    assert job["reply"]["usage"] == {
        "prompt_tokens": 112,
        "completion_tokens": 13,
        "total_tokens": 125,
    }
