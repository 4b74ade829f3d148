"""Asynchronous chat: failures, and a worker that lost its job."""

import asyncio
from typing import Any

from app.domain.events.service import emit_dead
from app.services import Services
from tests.asking import refused, until
from tests.chat.job_helpers import (
    AT_ONCE,
    accept_job,
    find_work_id,
    get_job,
    job_path,
    list_events,
    list_messages,
    read_row,
    run_job,
    run_job_now,
    run_sql,
    run_to_end,
    while_running,
)
from tests.model_server import Reply
from tests.talk import Talker
from workers.main import JOBS, ON_DEAD
from workers.runner import Runner


async def test_a_refusal_of_the_model_fails_the_job_at_once(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400, message="not today"), Reply())
    job = await run_to_end(talk, services)
    assert job["status"] == "failed"
    assert "reply" not in job
    assert job["finished_at"]
    assert job["error"]["code"] == "provider_error"
    assert "not today" in job["error"]["message"]
    assert job["error"]["details"]["reason"] == "refused"
    assert len(talk.asked) == 1
    event = (await list_events(talk, "agent.chat.completed"))[0]
    assert (event["status"], event["job_id"]) == ("failed", job["job_id"])
    # The provider's own words are on the job, for its owner.
    assert (event["message"], event["error"]) == (None, "provider_error")


async def test_a_failed_job_leaves_its_question_and_a_free_conversation(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400), Reply())
    job = await run_to_end(talk, services, "Lost")
    assert await list_messages(talk, job) == [("user", "Lost")]
    await talk.say("Again", conversation_id=job["conversation_id"])
    # Two questions in a row are one, because some providers refuse them otherwise.
    told = talk.asked[1]["messages"][1:]
    assert told == [{"role": "user", "content": "Lost\n\nAgain"}]


async def test_a_conversation_whose_first_job_failed_counts_once_it_has_a_reply(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400), Reply())
    job = await run_to_end(talk, services, "Lost")
    await talk.say("Again", conversation_id=job["conversation_id"])
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_conversations"] == 1


async def test_a_passing_failure_is_tried_again_later(talk: Talker, services: Services) -> None:
    away = Reply(status=503, headers=AT_ONCE)
    talk.script(away, away, away, Reply())
    job = await run_to_end(talk, services)
    assert job["status"] in {"pending", "running"}
    assert "error" not in job
    row = await read_row(
        services, "SELECT state, run_at > now() AS later FROM work WHERE ref_id = $1", job["job_id"]
    )
    assert tuple(row) == ("pending", True)
    await run_job_now(services, job)
    view = await get_job(talk, job)
    assert view["status"] == "completed"
    assert await list_messages(talk, job) == [("user", "Hi"), ("assistant", "Hello there")]
    assert len(await list_events(talk, "agent.chat.completed")) == 1
    assert len(talk.asked) == 4


async def test_a_failure_that_does_not_pass_fails_the_job_in_the_end(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=429, message="slow down", headers=AT_ONCE))
    job = await run_to_end(talk, services)
    for _ in range(2):
        await run_job_now(services, job)
        assert "error" not in await get_job(talk, job)
    await run_job_now(services, job)
    view = await get_job(talk, job)
    assert view["status"] == "failed"
    assert view["error"]["code"] == "provider_error"
    assert view["error"]["details"]["reason"] == "rate_limited"
    assert len(await list_events(talk, "agent.chat.completed")) == 1
    talk.script(Reply())
    await talk.say("Free", conversation_id=job["conversation_id"])


async def test_an_agent_archived_meanwhile_fails_the_job(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    await talk.client.put(talk.path, {"status": "archived"})
    await run_job(services, job)
    view = await get_job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "agent_archived")
    assert talk.asked == []


async def test_a_model_without_its_key_meanwhile_fails_the_job(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    listed = await talk.client.get("/api/v1/api-keys")
    await talk.client.delete(f"/api/v1/api-keys/{listed.json()['data'][0]['id']}")
    await run_job(services, job)
    view = await get_job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "model_not_configured")


async def test_an_agent_deleted_meanwhile_takes_its_jobs_along(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    work_id = await find_work_id(services, job)
    assert (await talk.client.delete(talk.path)).status_code == 204
    await Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    assert talk.asked == []
    refused(await talk.client.get(job_path(talk, job)), 404, "job_not_found")
    row = await read_row(services, "SELECT state FROM work WHERE id = $1", work_id)
    assert row["state"] in {"done", "cancelled"}


async def test_an_agent_deleted_while_it_answers_ends_quietly(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    work_id = await find_work_id(services, job)
    async with while_running(talk, services, job):
        assert (await talk.client.delete(talk.path)).status_code == 204
    row = await read_row(services, "SELECT state, last_error FROM work WHERE id = $1", work_id)
    assert row["state"] in {"done", "cancelled"}, row["last_error"]


async def test_a_job_whose_workers_all_died_fails_and_frees_its_conversation(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    await run_sql(
        services, "UPDATE work SET attempt = max_attempts WHERE ref_id = $1", job["job_id"]
    )
    await run_job(services, job)
    view = await get_job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "internal_error")
    assert talk.asked == []
    assert [data["status"] for data in await list_events(talk, "agent.chat.completed")] == [
        "failed"
    ]
    await talk.say("Free", conversation_id=job["conversation_id"])


async def test_a_call_with_a_nul_does_not_fail_a_job(talk: Talker, services: Services) -> None:
    await talk.with_helper()
    call = ("delegate_to_helper", r'{"task": "a\u0000b"}')
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["Done"]))
    assert (await run_to_end(talk, services))["status"] == "completed"


async def test_a_worker_that_lost_its_lease_writes_nothing(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    async with while_running(talk, services, job, Reply(texts=["From the second"])):
        expire = "UPDATE work SET lease_until = now() - interval '1 second' WHERE ref_id = $1"
        await run_sql(services, expire, job["job_id"])
        await run_job(services, job)
        view = await get_job(talk, job)
        assert view["reply"]["message"]["content"] == "From the second"
    assert await get_job(talk, job) == view
    assert await list_messages(talk, job) == [("user", "Hi"), ("assistant", "From the second")]
    assert len(await list_events(talk, "agent.chat.completed")) == 1
    counted = "SELECT count(*) AS n FROM usage WHERE agent_id = $1"
    assert (await read_row(services, counted, talk.agent_id))["n"] == 1


async def resume_after_crash(talk: Talker, helper: Talker, services: Services) -> dict[str, Any]:
    """A job whose worker was lost after its helper had answered; another one finished it."""
    hold = asyncio.Event()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    talk.script(
        Reply(texts=["Asking."], calls=[("delegate_to_helper", {"task": "x"})], usage=(5, 1)),
        Reply(hold=hold),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    job = await accept_job(talk)
    lost = asyncio.create_task(run_job(services, job))
    await until(lambda: len(talk.asked) == 2)
    expire = "UPDATE work SET lease_until = now() - interval '1 second' WHERE ref_id = $1"
    await run_sql(services, expire, job["job_id"])
    await run_job(services, job)
    hold.set()
    await lost
    return await get_job(talk, job)


async def test_what_was_called_and_answered_is_not_called_again(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    job = await resume_after_crash(talk, helper, services)
    assert job["status"] == "completed"
    assert job["reply"]["message"]["content"] == "Asking.\n\nAt 9, I hear."
    calls = [(call["tool"], call["output"]) for call in job["reply"]["tool_calls"]]
    assert calls == [("Helper", "At 9.")]
    assert len(helper.asked) == 1
    # The first round is not asked for again either; both see the same result.
    assert len(talk.asked) == 3
    assert talk.asked[1]["messages"] == talk.asked[2]["messages"]


async def test_a_resumed_job_still_pays_for_what_its_helpers_used(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    job = await resume_after_crash(talk, helper, services)
    assert job["reply"]["usage"] == {
        "prompt_tokens": 112,
        "completion_tokens": 13,
        "total_tokens": 125,
    }
