"""Asynchronous chat: accepting and answering."""

import asyncio
from datetime import datetime

from app.services import Services
from tests.asking import refused
from tests.chat.job_helpers import (
    accept_job,
    get_job,
    list_events,
    list_messages,
    read_row,
    run_job,
    run_to_end,
    while_running,
)
from tests.model_server import Reply
from tests.talk import Talker
from tests.world import Client, World


async def test_a_chat_is_accepted_before_the_model_is_asked(talk: Talker) -> None:
    job = await accept_job(talk)
    assert set(job) == {"job_id", "status", "conversation_id"}
    assert job["job_id"].startswith("job_")
    assert job["status"] == "pending"
    assert job["conversation_id"].startswith("cnv_")
    assert talk.asked == []


async def test_a_pending_job_shows_neither_reply_nor_error(talk: Talker) -> None:
    job = await accept_job(talk)
    view = await get_job(talk, job)
    created_at = view.pop("created_at")
    assert created_at.endswith("Z")
    assert view == job


async def test_the_question_is_kept_as_soon_as_it_is_accepted(talk: Talker) -> None:
    job = await accept_job(talk, "When  does\nthe shop open?")
    assert await list_messages(talk, job) == [("user", "When  does\nthe shop open?")]
    shown = await talk.client.get(f"/api/v1/conversations/{job['conversation_id']}")
    view = shown.json()
    assert (view["source"], view["message_count"]) == ("async", 1)
    assert view["title"] == "When does the shop open?"
    assert [data["role"] for data in await list_events(talk, "agent.chat.message")] == ["user"]
    assert [data["source"] for data in await list_events(talk, "agent.chat.started")] == ["async"]


async def test_a_viewer_may_not_ask_later_either(talk: Talker, world: World) -> None:
    viewer = await world.user("viewer", talk.client.tenant_id)
    answer = await viewer.post(f"{talk.path}/chat/async", {"message": "Hi"})
    assert refused(answer, 403, "forbidden")["details"]["required"] == "agents:chat"


async def test_an_archived_agent_accepts_nothing(talk: Talker, services: Services) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Hi"})
    refused(answer, 409, "agent_archived")
    counted = "SELECT count(*) AS n FROM chat_jobs WHERE agent_id = $1"
    assert (await read_row(services, counted, talk.agent_id))["n"] == 0


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
    assert (await read_row(services, counted, talk.agent_id))["n"] == 1


async def test_the_ledger_holds_ids_and_no_words(talk: Talker, services: Services) -> None:
    job = await accept_job(talk, "My secret", context={"pin": "1234"})
    row = await read_row(
        services, "SELECT w::text AS w FROM work w WHERE ref_id = $1", job["job_id"]
    )
    assert job["job_id"] in row["w"]
    assert "secret" not in row["w"]
    assert "1234" not in row["w"]


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
    job = await run_to_end(talk, services)
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
    job = await run_to_end(talk, services)
    path = f"/api/v1/conversations/{job['conversation_id']}"
    kept = (await talk.client.get(f"{path}/messages")).json()["data"]
    assert [item["content"] for item in kept] == ["Hi", "Hello there"]
    assert kept[1]["id"] == job["reply"]["message"]["id"]
    assert [item["status"] for item in kept] == ["complete", "complete"]
    assert (await talk.client.get(path)).json()["message_count"] == 2


async def test_the_model_sees_history_and_context(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    again = {"conversation_id": first["conversation_id"]}
    await run_to_end(talk, services, "Two", context={"plan": "gold"}, **again)
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
    job = await accept_job(talk)
    async with while_running(talk, services, job):
        view = await get_job(talk, job)
        assert view["status"] == "running"
        assert "reply" not in view
        assert "finished_at" not in view
    assert (await get_job(talk, job))["status"] == "completed"


async def test_a_job_taken_twice_is_answered_once(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    await asyncio.gather(*(run_job(services, job) for _ in range(5)))
    await run_job(services, job)
    assert len(talk.asked) == 1
    assert len(await list_messages(talk, job)) == 2


async def test_the_end_of_a_job_is_an_event(talk: Talker, services: Services) -> None:
    job = await run_to_end(talk, services)
    assert await list_events(talk, "agent.chat.completed") == [
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
    await run_job(services, answer.json())
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
    job = await run_to_end(talk, services, "My secret")
    assert job["reply"]["message"]["content"] == "Hello there"
    assert [data["message"] for data in await list_events(talk, "agent.chat.completed")] == [None]
    told = await list_events(talk, "agent.chat.message")
    assert [data["content"] for data in told] == [None, None]


async def test_one_turn_is_used_once(talk: Talker, services: Services) -> None:
    job = await run_to_end(talk, services)
    row = await read_row(
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
    job = await accept_job(talk, who=super_admin)
    await run_job(services, job)
    assert (await get_job(talk, job))["status"] == "completed"
