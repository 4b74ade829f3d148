"""Asynchronous chat: accepted, run by a worker, waited for, cancelled."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest

from app.domain.agents import runtime as runtimes
from app.domain.chat import turn
from app.domain.chat.start_turn import Question, start_turn
from app.domain.events.service import emit_dead
from app.kit import work
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused, until
from tests.chat.test_stream import SilentModel, on_silent
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker
from tests.world import Client, World
from workers.main import JOBS, ON_DEAD, WorkerProcess
from workers.runner import Runner

SOON_SECONDS = 1.0
AT_ONCE = {"Retry-After": "0"}


async def _sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def _row(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(sql, *args)


async def _accept(talk: Talker, message: str = "Hi", **more: Any) -> dict[str, Any]:
    who = more.pop("who", talk.client)
    answer = await who.post(f"{talk.path}/chat/async", {"message": message, **more})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _path(talk: Talker, job: dict[str, Any]) -> str:
    return f"{talk.path}/chat/jobs/{job['job_id']}"


async def _job(talk: Talker, job: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = await talk.client.get(_path(talk, job), params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _work_id(services: Services, job: dict[str, Any]) -> str:
    row = await _row(services, "SELECT work_id FROM chat_jobs WHERE id = $1", job["job_id"])
    found: str = row["work_id"]
    return found


async def _run(services: Services, job: dict[str, Any]) -> None:
    """One attempt, as a worker makes it."""
    await Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(
        await _work_id(services, job)
    )


async def _run_now(services: Services, job: dict[str, Any]) -> None:
    """The next attempt, without the pause before it."""
    await _sql(services, "UPDATE work SET run_at = now() WHERE ref_id = $1", job["job_id"])
    await _run(services, job)


async def _done(
    talk: Talker, services: Services, message: str = "Hi", **more: Any
) -> dict[str, Any]:
    job = await _accept(talk, message, **more)
    await _run(services, job)
    return await _job(talk, job)


async def _messages(talk: Talker, job: dict[str, Any]) -> list[tuple[str, str]]:
    path = f"/api/v1/conversations/{job['conversation_id']}/messages"
    answer = await talk.client.get(path)
    assert answer.status_code == 200, answer.text
    return [(item["role"], item["content"]) for item in answer.json()["data"]]


async def _events(talk: Talker, kind: str) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"event_type": kind, "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    found = [entry["data"] for entry in reversed(answer.json()["data"])]
    return [data for data in found if data["agent_id"] == talk.agent_id]


@asynccontextmanager
async def _running(
    talk: Talker, services: Services, job: dict[str, Any], *then: Reply
) -> AsyncIterator[None]:
    """While a worker has the job and its model has not answered."""
    before, hold = len(talk.asked), asyncio.Event()
    talk.script(Reply(hold=hold), *(then or (Reply(),)))
    running = asyncio.create_task(_run(services, job))
    try:
        await until(lambda: len(talk.asked) > before)
        yield
    finally:
        hold.set()
        await running


@pytest.fixture
async def worker(services: Services) -> AsyncIterator[None]:
    """A worker in this process, with its queue, its poller and its ear for cancels."""
    process = WorkerProcess(services, ["chat"])
    running = asyncio.create_task(process.run())
    yield
    process.stopped.set()
    await asyncio.wait_for(running, 40)


# Accepting


async def test_a_chat_is_accepted_before_the_model_is_asked(talk: Talker) -> None:
    job = await _accept(talk)
    assert set(job) == {"job_id", "status", "conversation_id"}
    assert job["job_id"].startswith("job_")
    assert job["status"] == "pending"
    assert job["conversation_id"].startswith("cnv_")
    assert talk.asked == []


async def test_a_pending_job_shows_neither_reply_nor_error(talk: Talker) -> None:
    job = await _accept(talk)
    view = await _job(talk, job)
    created_at = view.pop("created_at")
    assert created_at.endswith("Z")
    assert view == job


async def test_the_question_is_kept_as_soon_as_it_is_accepted(talk: Talker) -> None:
    job = await _accept(talk, "When  does\nthe shop open?")
    assert await _messages(talk, job) == [("user", "When  does\nthe shop open?")]
    shown = await talk.client.get(f"/api/v1/conversations/{job['conversation_id']}")
    view = shown.json()
    assert (view["source"], view["message_count"]) == ("async", 1)
    assert view["title"] == "When does the shop open?"
    assert [data["role"] for data in await _events(talk, "agent.chat.message")] == ["user"]
    assert [data["source"] for data in await _events(talk, "agent.chat.started")] == ["async"]


async def test_a_viewer_may_not_ask_later_either(talk: Talker, world: World) -> None:
    viewer = await world.user("viewer", talk.client.tenant_id)
    answer = await viewer.post(f"{talk.path}/chat/async", {"message": "Hi"})
    assert refused(answer, 403, "forbidden")["details"]["required"] == "agents:chat"


async def test_an_archived_agent_accepts_nothing(talk: Talker, services: Services) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Hi"})
    refused(answer, 409, "agent_archived")
    counted = "SELECT count(*) AS n FROM chat_jobs WHERE agent_id = $1"
    assert (await _row(services, counted, talk.agent_id))["n"] == 0


async def test_an_unknown_agent_accepts_nothing(developer: Client) -> None:
    answer = await developer.post("/api/v1/agents/agt_none/chat/async", {"message": "Hi"})
    refused(answer, 404, "agent_not_found")


async def test_the_same_key_is_one_job(talk: Talker, services: Services) -> None:
    headers, path = {"idempotency-key": "a"}, f"{talk.path}/chat/async"
    first = await talk.client.post(path, {"message": "Hi"}, headers=headers)
    second = await talk.client.post(path, {"message": "Hi"}, headers=headers)
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    other = await talk.client.post(path, {"message": "Ho"}, headers=headers)
    refused(other, 422, "idempotency_mismatch")
    counted = "SELECT count(*) AS n FROM chat_jobs WHERE agent_id = $1"
    assert (await _row(services, counted, talk.agent_id))["n"] == 1


async def test_the_ledger_holds_ids_and_no_words(talk: Talker, services: Services) -> None:
    job = await _accept(talk, "My secret", context={"pin": "1234"})
    row = await _row(services, "SELECT w::text AS w FROM work w WHERE ref_id = $1", job["job_id"])
    assert job["job_id"] in row["w"]
    assert "secret" not in row["w"]
    assert "1234" not in row["w"]


# Answering


async def test_a_done_job_has_the_reply_that_chat_would_have_given(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    script = (
        Reply(texts=["Let me ask."], calls=[("delegate_to_helper", {"task": "x"})], usage=(5, 1)),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    talk.script(*script)
    said = await talk.say("Hi")
    talk.script(*script)
    job = await _done(talk, services)
    assert job["status"] == "completed"
    assert "error" not in job
    assert datetime.fromisoformat(job["finished_at"]) >= datetime.fromisoformat(job["created_at"])
    reply = job["reply"]
    assert set(reply) == set(said)
    assert reply["conversation_id"] == job["conversation_id"]
    assert set(reply["message"]) == set(said["message"])
    assert reply["message"]["role"] == "assistant"
    assert reply["message"]["content"] == said["message"]["content"]
    assert reply["usage"] == said["usage"]
    assert reply["sources"] == []
    ours = {"id", "execution_time_ms"}
    assert [
        {key: value for key, value in call.items() if key not in ours}
        for call in reply["tool_calls"]
    ] == [
        {key: value for key, value in call.items() if key not in ours}
        for call in said["tool_calls"]
    ]


async def test_the_reply_is_in_the_conversation(talk: Talker, services: Services) -> None:
    job = await _done(talk, services)
    path = f"/api/v1/conversations/{job['conversation_id']}"
    kept = (await talk.client.get(f"{path}/messages")).json()["data"]
    assert [item["content"] for item in kept] == ["Hi", "Hello there"]
    assert kept[1]["id"] == job["reply"]["message"]["id"]
    assert [item["status"] for item in kept] == ["complete", "complete"]
    assert (await talk.client.get(path)).json()["message_count"] == 2


async def test_the_model_sees_history_and_context(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    again = {"conversation_id": first["conversation_id"]}
    await _done(talk, services, "Two", context={"plan": "gold"}, **again)
    told = talk.asked[1]["messages"]
    assert '{"plan":"gold"}' in told[0]["content"]
    assert [item["content"] for item in told[1:]] == ["One", "Hello there", "Two"]
    await talk.say("Three", **again)
    assert [item["content"] for item in talk.asked[2]["messages"][1:]] == [
        "One",
        "Hello there",
        "Two",
        "Hello there",
        "Three",
    ]


async def test_a_job_is_running_while_the_model_speaks(talk: Talker, services: Services) -> None:
    job = await _accept(talk)
    async with _running(talk, services, job):
        view = await _job(talk, job)
        assert view["status"] == "running"
        assert "reply" not in view
        assert "finished_at" not in view
    assert (await _job(talk, job))["status"] == "completed"


async def test_a_job_taken_twice_is_answered_once(talk: Talker, services: Services) -> None:
    job = await _accept(talk)
    await asyncio.gather(*(_run(services, job) for _ in range(5)))
    await _run(services, job)
    assert len(talk.asked) == 1
    assert len(await _messages(talk, job)) == 2


async def test_the_end_of_a_job_is_an_event(talk: Talker, services: Services) -> None:
    job = await _done(talk, services)
    assert await _events(talk, "agent.chat.completed") == [
        {
            "agent_id": talk.agent_id,
            "conversation_id": job["conversation_id"],
            "reason": "job",
            "job_id": job["job_id"],
            "status": "completed",
            "message": "Hello there",
            "error": None,
        }
    ]


async def test_a_job_shares_the_correlation_of_its_request(
    talk: Talker, services: Services
) -> None:
    correlation_id = f"cor_{talk.agent_id}"
    answer = await talk.client.post(
        f"{talk.path}/chat/async",
        {"message": "Hi"},
        headers={"x-correlation-id": correlation_id},
    )
    await _run(services, answer.json())
    trace = (await talk.client.get(f"/api/v1/event-log/trace/{correlation_id}")).json()
    assert [entry["type"] for entry in trace["data"]] == [
        "agent.chat.started",
        "agent.chat.message",
        "agent.chat.message",
        "agent.chat.completed",
    ]
    assert "chat.turn" in [span["name"] for span in trace["spans"] if span["kind"] == "job"]


async def test_events_hold_no_words_where_messages_may_not_be_logged(
    talk: Talker, services: Services
) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    job = await _done(talk, services, "My secret")
    assert job["reply"]["message"]["content"] == "Hello there"
    assert [data["message"] for data in await _events(talk, "agent.chat.completed")] == [None]
    told = await _events(talk, "agent.chat.message")
    assert [data["content"] for data in told] == [None, None]


async def test_one_turn_is_used_once(talk: Talker, services: Services) -> None:
    job = await _done(talk, services)
    row = await _row(
        services,
        "SELECT count(*) AS n, min(source) AS source, sum(turns) AS turns, sum(messages) AS"
        " messages, sum(conversations) AS conversations, sum(prompt_tokens) AS tokens"
        " FROM usage WHERE message_id = $1",
        job["reply"]["message"]["id"],
    )
    assert tuple(row) == (1, "async", 1, 2, 1, 11)


async def test_super_admin_asks_any_tenants_agent_later(
    talk: Talker, services: Services, super_admin: Client
) -> None:
    job = await _accept(talk, who=super_admin)
    await _run(services, job)
    assert (await _job(talk, job))["status"] == "completed"


# Failing


async def test_a_refusal_of_the_model_fails_the_job_at_once(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400, message="not today"), Reply())
    job = await _done(talk, services)
    assert job["status"] == "failed"
    assert "reply" not in job
    assert job["finished_at"]
    assert job["error"]["code"] == "provider_error"
    assert "not today" in job["error"]["message"]
    assert job["error"]["details"]["reason"] == "refused"
    assert len(talk.asked) == 1
    event = (await _events(talk, "agent.chat.completed"))[0]
    assert (event["status"], event["job_id"]) == ("failed", job["job_id"])
    # The provider's own words are on the job, for its owner.
    assert (event["message"], event["error"]) == (None, "provider_error")


async def test_a_failed_job_leaves_its_question_and_a_free_conversation(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400), Reply())
    job = await _done(talk, services, "Lost")
    assert await _messages(talk, job) == [("user", "Lost")]
    await talk.say("Again", conversation_id=job["conversation_id"])
    # Two questions in a row are one, because some providers refuse them otherwise.
    told = talk.asked[1]["messages"][1:]
    assert told == [{"role": "user", "content": "Lost\n\nAgain"}]


async def test_a_conversation_whose_first_job_failed_counts_once_it_has_a_reply(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400), Reply())
    job = await _done(talk, services, "Lost")
    await talk.say("Again", conversation_id=job["conversation_id"])
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_conversations"] == 1


async def test_a_passing_failure_is_tried_again_later(talk: Talker, services: Services) -> None:
    away = Reply(status=503, headers=AT_ONCE)
    talk.script(away, away, away, Reply())
    job = await _done(talk, services)
    assert job["status"] in {"pending", "running"}
    assert "error" not in job
    row = await _row(
        services, "SELECT state, run_at > now() AS later FROM work WHERE ref_id = $1", job["job_id"]
    )
    assert tuple(row) == ("pending", True)
    await _run_now(services, job)
    view = await _job(talk, job)
    assert view["status"] == "completed"
    assert await _messages(talk, job) == [("user", "Hi"), ("assistant", "Hello there")]
    assert len(await _events(talk, "agent.chat.completed")) == 1
    assert len(talk.asked) == 4


async def test_a_failure_that_does_not_pass_fails_the_job_in_the_end(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=429, message="slow down", headers=AT_ONCE))
    job = await _done(talk, services)
    for _ in range(2):
        await _run_now(services, job)
        assert "error" not in await _job(talk, job)
    await _run_now(services, job)
    view = await _job(talk, job)
    assert view["status"] == "failed"
    assert view["error"]["code"] == "provider_error"
    assert view["error"]["details"]["reason"] == "rate_limited"
    assert len(await _events(talk, "agent.chat.completed")) == 1
    talk.script(Reply())
    await talk.say("Free", conversation_id=job["conversation_id"])


async def test_an_agent_archived_meanwhile_fails_the_job(talk: Talker, services: Services) -> None:
    job = await _accept(talk)
    await talk.client.put(talk.path, {"status": "archived"})
    await _run(services, job)
    view = await _job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "agent_archived")
    assert talk.asked == []


async def test_a_model_without_its_key_meanwhile_fails_the_job(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    listed = await talk.client.get("/api/v1/api-keys")
    await talk.client.delete(f"/api/v1/api-keys/{listed.json()['data'][0]['id']}")
    await _run(services, job)
    view = await _job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "model_not_configured")


async def test_an_agent_deleted_meanwhile_takes_its_jobs_along(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    work_id = await _work_id(services, job)
    assert (await talk.client.delete(talk.path)).status_code == 204
    await Runner(services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)
    assert talk.asked == []
    refused(await talk.client.get(_path(talk, job)), 404, "job_not_found")
    row = await _row(services, "SELECT state FROM work WHERE id = $1", work_id)
    assert row["state"] in {"done", "cancelled"}


async def test_an_agent_deleted_while_it_answers_ends_quietly(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    work_id = await _work_id(services, job)
    async with _running(talk, services, job):
        assert (await talk.client.delete(talk.path)).status_code == 204
    row = await _row(services, "SELECT state, last_error FROM work WHERE id = $1", work_id)
    assert row["state"] in {"done", "cancelled"}, row["last_error"]


async def test_a_job_whose_workers_all_died_fails_and_frees_its_conversation(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    await _sql(services, "UPDATE work SET attempt = max_attempts WHERE ref_id = $1", job["job_id"])
    await _run(services, job)
    view = await _job(talk, job)
    assert (view["status"], view["error"]["code"]) == ("failed", "internal_error")
    assert talk.asked == []
    assert [data["status"] for data in await _events(talk, "agent.chat.completed")] == ["failed"]
    await talk.say("Free", conversation_id=job["conversation_id"])


async def test_a_call_with_a_nul_does_not_fail_a_job(talk: Talker, services: Services) -> None:
    await talk.with_helper()
    call = ("delegate_to_helper", r'{"task": "a\u0000b"}')
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["Done"]))
    assert (await _done(talk, services))["status"] == "completed"


# A worker that lost its job


async def test_a_worker_that_lost_its_lease_writes_nothing(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    async with _running(talk, services, job, Reply(texts=["From the second"])):
        expire = "UPDATE work SET lease_until = now() - interval '1 second' WHERE ref_id = $1"
        await _sql(services, expire, job["job_id"])
        await _run(services, job)
        view = await _job(talk, job)
        assert view["reply"]["message"]["content"] == "From the second"
    assert await _job(talk, job) == view
    assert await _messages(talk, job) == [("user", "Hi"), ("assistant", "From the second")]
    assert len(await _events(talk, "agent.chat.completed")) == 1
    counted = "SELECT count(*) AS n FROM usage WHERE agent_id = $1"
    assert (await _row(services, counted, talk.agent_id))["n"] == 1


async def _resumed(talk: Talker, helper: Talker, services: Services) -> dict[str, Any]:
    """A job whose worker was lost after its helper had answered; another one finished it."""
    hold = asyncio.Event()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    talk.script(
        Reply(texts=["Asking."], calls=[("delegate_to_helper", {"task": "x"})], usage=(5, 1)),
        Reply(hold=hold),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    job = await _accept(talk)
    lost = asyncio.create_task(_run(services, job))
    await until(lambda: len(talk.asked) == 2)
    expire = "UPDATE work SET lease_until = now() - interval '1 second' WHERE ref_id = $1"
    await _sql(services, expire, job["job_id"])
    await _run(services, job)
    hold.set()
    await lost
    return await _job(talk, job)


async def test_what_was_called_and_answered_is_not_called_again(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    job = await _resumed(talk, helper, services)
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
    job = await _resumed(talk, helper, services)
    assert job["reply"]["usage"] == {
        "prompt_tokens": 112,
        "completion_tokens": 13,
        "total_tokens": 125,
    }


# Waiting


class _Ears:
    """How many wait on Redis for the end of some work, more than did before."""

    def __init__(self, services: Services, before: int) -> None:
        self._services = services
        self._before = before

    @classmethod
    async def counted(cls, services: Services) -> "_Ears":
        return cls(services, await cls(services, 0).open())

    async def open(self) -> int:
        info = await self._services.redis.info("clients")
        return int(info["blocked_clients"]) - self._before

    async def are_open(self, number: int) -> None:
        async with asyncio.timeout(10):
            while await self.open() != number:  # noqa: ASYNC110  # Redis counts them
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("wait", ["31", "-1", "x", "1.5", ""])
async def test_a_wait_out_of_bounds_is_refused(talk: Talker, wait: str) -> None:
    job = await _accept(talk)
    answer = await talk.client.get(_path(talk, job), params={"wait": wait})
    assert list(refused(answer, 422, "validation_error")["details"]) == ["wait"]


@pytest.mark.parametrize("wait", [0, 30])
async def test_a_job_that_is_over_is_not_waited_for(
    talk: Talker, services: Services, wait: int
) -> None:
    job = await _done(talk, services)
    started = time.monotonic()
    assert (await _job(talk, job, wait=wait))["status"] == "completed"
    assert time.monotonic() - started < SOON_SECONDS


async def test_without_wait_the_answer_is_what_is_known_now(talk: Talker) -> None:
    job = await _accept(talk)
    started = time.monotonic()
    assert (await _job(talk, job))["status"] == "pending"
    assert time.monotonic() - started < SOON_SECONDS


async def test_waiting_ends_when_its_seconds_are_over(talk: Talker) -> None:
    job = await _accept(talk)
    started = time.monotonic()
    assert (await _job(talk, job, wait=1))["status"] == "pending"
    assert 0.9 <= time.monotonic() - started < 2


@pytest.mark.parametrize(("status", "outcome"), [(200, "completed"), (400, "failed")])
async def test_waiting_in_another_process_ends_as_soon_as_the_job_does(
    talk: Talker, services: Services, server: Server, status: int, outcome: str
) -> None:
    job, ears = await _accept(talk), await _Ears.counted(services)
    talk.script(Reply(status=status))
    headers = {"authorization": f"Bearer {talk.client.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=40) as remote:
        waiting = asyncio.create_task(remote.get(_path(talk, job), params={"wait": 30}))
        await ears.are_open(1)
        assert not waiting.done()
        await _run(services, job)
        ended = time.monotonic()
        answer = await waiting
        assert time.monotonic() - ended < SOON_SECONDS
    assert answer.json()["status"] == outcome


async def test_everybody_who_waits_for_a_job_is_told_at_once(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that nobody finds out by looking at the row now and then.
    monkeypatch.setattr(work, "_SLICE_SECONDS", 20.0)
    job, ears = await _accept(talk), await _Ears.counted(services)
    waiting = [asyncio.create_task(_job(talk, job, wait=30)) for _ in range(3)]
    await ears.are_open(3)
    await _run(services, job)
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
    job, ears = await _accept(talk), await _Ears.counted(services)
    waiting = asyncio.create_task(_job(talk, job, wait=30))
    await _run(services, job)
    await ears.are_open(1)
    assert not waiting.done()
    await _run_now(services, job)
    assert (await waiting)["status"] == "completed"


async def test_who_waits_holds_no_database_connection(talk: Talker, services: Services) -> None:
    """Forty wait, the pool has twenty; others get through meanwhile."""
    job, ears = await _accept(talk), await _Ears.counted(services)
    waiting = [asyncio.create_task(_job(talk, job, wait=30)) for _ in range(40)]
    await ears.are_open(40)
    async with asyncio.timeout(5):
        assert (await talk.client.get(talk.path)).status_code == 200
    await _run(services, job)
    views = await asyncio.gather(*waiting)
    assert {view["status"] for view in views} == {"completed"}


# Cancelling


async def test_a_pending_job_is_cancelled_and_never_runs(talk: Talker, services: Services) -> None:
    job = await _accept(talk, "Never mind")
    answer = await talk.client.delete(_path(talk, job))
    assert answer.status_code == 200
    view = answer.json()
    assert view["status"] == "cancelled"
    assert view["finished_at"]
    assert "reply" not in view
    assert "error" not in view
    assert await _job(talk, job) == view
    await _run(services, job)
    assert talk.asked == []
    # The question stays, and the conversation is free.
    assert await _messages(talk, job) == [("user", "Never mind")]
    await talk.say("Something else", conversation_id=job["conversation_id"])


async def test_a_cancelled_job_is_an_event(talk: Talker) -> None:
    job = await _accept(talk)
    await talk.client.delete(_path(talk, job))
    [event] = await _events(talk, "agent.chat.completed")
    assert (event["reason"], event["status"]) == ("job", "cancelled")
    assert event["job_id"] == job["job_id"]
    assert event["message"] is None


async def test_a_job_is_cancelled_once(talk: Talker) -> None:
    job = await _accept(talk)
    answers = await asyncio.gather(*(talk.client.delete(_path(talk, job)) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused(await talk.client.delete(_path(talk, job)), 409, "job_finished")
    assert len(await _events(talk, "agent.chat.completed")) == 1


@pytest.mark.parametrize("status", [200, 400])
async def test_a_job_that_is_over_cannot_be_cancelled(
    talk: Talker, services: Services, status: int
) -> None:
    talk.script(Reply(status=status))
    job = await _done(talk, services)
    refused(await talk.client.delete(_path(talk, job)), 409, "job_finished")
    assert await _job(talk, job) == job


async def test_a_cancelled_job_gets_no_reply_from_a_worker_that_did_not_hear_of_it(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    async with _running(talk, services, job):
        assert (await talk.client.delete(_path(talk, job))).status_code == 200
    assert (await _job(talk, job))["status"] == "cancelled"
    assert await _messages(talk, job) == [("user", "Hi")]
    assert len(await _events(talk, "agent.chat.completed")) == 1


async def test_a_worker_of_a_cancelled_job_leaves_the_next_turn_alone(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk)
    async with _running(talk, services, job, Reply(texts=["The next"])):
        await talk.client.delete(_path(talk, job))
        await talk.say("Next", conversation_id=job["conversation_id"])
    assert await _messages(talk, job) == [
        ("user", "Hi"),
        ("user", "Next"),
        ("assistant", "The next"),
    ]


async def test_who_waits_is_told_of_a_cancel(talk: Talker, services: Services) -> None:
    job, ears = await _accept(talk), await _Ears.counted(services)
    waiting = asyncio.create_task(_job(talk, job, wait=30))
    await ears.are_open(1)
    await talk.client.delete(_path(talk, job))
    ended = time.monotonic()
    assert (await waiting)["status"] == "cancelled"
    assert time.monotonic() - ended < SOON_SECONDS


async def test_cancelling_a_running_job_hangs_up_on_its_model(
    talk: Talker, silent: SilentModel, worker: None
) -> None:
    mine = await on_silent(talk, silent)
    job = await _accept(mine)
    await until(lambda: silent.open == 1)
    answer = await mine.client.delete(_path(mine, job))
    assert answer.json()["status"] == "cancelled"
    await until(lambda: silent.open == 0, 2)
    refused(await mine.client.delete(_path(mine, job)), 409, "job_finished")
    # Free at once: with a model that speaks, the next turn is answered.
    await mine.client.put(mine.path, {"primary_model": f"scripted/{talk.model}"})
    again = await mine.say("Next", conversation_id=job["conversation_id"])
    assert again["message"]["content"] == "Hello there"
    assert silent.asked == 1


async def test_a_worker_takes_a_job_as_soon_as_it_is_accepted(talk: Talker, worker: None) -> None:
    job = await _accept(talk)
    started = time.monotonic()
    assert (await _job(talk, job, wait=30))["status"] == "completed"
    assert time.monotonic() - started < 2


@pytest.fixture
async def silent() -> AsyncIterator[SilentModel]:
    made = SilentModel()
    await made.start()
    yield made
    await made.close()


# Whose job


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_another_users_job_is_not_found(
    talk: Talker, world: World, role: str, method: str
) -> None:
    job = await _accept(talk)
    other = await world.user(role, talk.client.tenant_id)
    refused(await other(method, _path(talk, job)), 404, "job_not_found")
    assert (await _job(talk, job))["status"] == "pending"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("role", ["agent_developer", "tenant_admin", "super_admin"])
async def test_who_may_see_conversations_sees_and_cancels_other_peoples_jobs(
    talk: Talker, world: World, role: str, method: str
) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    job = await _accept(talk, who=user)
    other = await world.user(role, None if role == "super_admin" else talk.client.tenant_id)
    assert (await other(method, _path(talk, job))).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_ones_own_job_needs_no_permission(talk: Talker, world: World, method: str) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    job = await _accept(talk, who=user)
    assert (await user(method, _path(talk, job))).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_job_is_found_only_where_it_belongs(
    talk: Talker, admin: Client, anonymous: Client, method: str
) -> None:
    job = await _accept(talk)
    other = await talk.agent()
    refused(await admin(method, _path(talk, job)), 404, "job_not_found")
    refused(await talk.client(method, _path(other, job)), 404, "job_not_found")
    unknown = _path(talk, {"job_id": "job_none"})
    refused(await talk.client(method, unknown), 404, "job_not_found")
    refused(await anonymous(method, _path(talk, job)), 401, "unauthorized")
    assert (await _job(talk, job))["status"] == "pending"


# One at a time


async def test_a_conversation_is_busy_from_accepting_until_the_end(
    talk: Talker, services: Services
) -> None:
    job = await _accept(talk, "One")
    again = {"message": "Two", "conversation_id": job["conversation_id"]}
    for way in ("chat", "chat/stream", "chat/async"):
        answer = await talk.client.post(f"{talk.path}/{way}", again)
        refused(answer, 409, "conversation_busy")
    async with _running(talk, services, job):
        refused(await talk.client.post(f"{talk.path}/chat", again), 409, "conversation_busy")
    assert (await talk.client.post(f"{talk.path}/chat/async", again)).status_code == 202
    assert [content for _, content in await _messages(talk, job)] == ["One", "Hello there", "Two"]


async def test_of_two_jobs_at_once_one_is_accepted(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    answers = await asyncio.gather(
        *(talk.client.post(f"{talk.path}/chat/async", body) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409]
    assert len(await _messages(talk, first)) == 3


async def test_a_job_that_waits_for_its_next_attempt_keeps_its_conversation(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=503, headers=AT_ONCE))
    job = await _done(talk, services)
    body = {"message": "Me", "conversation_id": job["conversation_id"]}
    refused(await talk.client.post(f"{talk.path}/chat", body), 409, "conversation_busy")


async def test_a_refused_job_leaves_nothing_behind(talk: Talker, services: Services) -> None:
    job = await _accept(talk)
    body = {"message": "Two", "conversation_id": job["conversation_id"]}
    await talk.client.post(f"{talk.path}/chat/async", body)
    row = await _row(
        services,
        "SELECT (SELECT count(*) FROM chat_jobs WHERE agent_id = $1) AS jobs,"
        " (SELECT count(*) FROM work WHERE tenant_id = $2) AS work",
        talk.agent_id,
        talk.client.tenant_id,
    )
    assert tuple(row) == (1, 1)
    assert len(await _messages(talk, job)) == 1


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
    job = await _accept(talk)
    assert (await talk.client.delete(talk.path)).status_code == 204
    [event] = await _events(talk, "agent.chat.completed")
    assert (event["job_id"], event["status"]) == (job["job_id"], "cancelled")


async def test_a_long_question_reaches_the_model_whole(talk: Talker, services: Services) -> None:
    job = await _accept(talk, "a" * 150_000)
    await _run(services, job)
    assert len(talk.asked[-1]["messages"][-1]["content"]) == 150_000
