"""Asynchronous chat: accepting and answering."""

import asyncio
from datetime import datetime

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    get_conversation,
    list_event_data,
    list_messages,
)
from tests.conversations.chat.database import fetch_row, fetch_value
from tests.conversations.chat.job_helpers import (
    accept_job,
    get_job,
    list_job_messages,
    pause_job,
    run_job,
    run_new_job,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker
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


async def test_the_question_is_stored_when_it_is_accepted(talk: Talker) -> None:
    job = await accept_job(talk, "When  does\nthe shop open?")
    assert await list_job_messages(talk, job) == [("user", "When  does\nthe shop open?")]
    conversation = await get_conversation(talk, job["conversation_id"])
    assert (conversation["source"], conversation["message_count"]) == ("async", 1)
    assert conversation["title"] == "When does the shop open?"
    assert [data["role"] for data in await list_event_data(talk, "agent.chat.message")] == ["user"]
    assert [data["source"] for data in await list_event_data(talk, "agent.chat.started")] == [
        "async"
    ]


async def test_a_viewer_may_not_start_a_job(talk: Talker, world: World) -> None:
    viewer = await world.user("viewer", talk.client.tenant_id)
    answer = await viewer.post(f"{talk.path}/chat/async", {"message": "Hi"})
    assert refused(answer, 403, "forbidden")["details"]["required"] == "agents:chat"


async def test_an_archived_agent_accepts_no_job(talk: Talker, services: Services) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "Hi"})
    refused(answer, 409, "agent_archived")
    sql = "SELECT count(*) FROM chat_jobs WHERE agent_id = $1"
    assert await fetch_value(services, sql, talk.agent_id) == 0


async def test_an_unknown_agent_accepts_no_job(developer: Client) -> None:
    answer = await developer.post("/api/v1/agents/agt_none/chat/async", {"message": "Hi"})
    refused(answer, 404, "agent_not_found")


async def test_the_same_idempotency_key_creates_one_job(talk: Talker, services: Services) -> None:
    headers, path = {"idempotency-key": "a"}, f"{talk.path}/chat/async"
    first = await talk.client.post(path, {"message": "Hi"}, headers=headers)
    second = await talk.client.post(path, {"message": "Hi"}, headers=headers)
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    other = await talk.client.post(path, {"message": "Ho"}, headers=headers)
    refused(other, 422, "idempotency_mismatch")
    sql = "SELECT count(*) FROM chat_jobs WHERE agent_id = $1"
    assert await fetch_value(services, sql, talk.agent_id) == 1


async def test_the_ledger_does_not_contain_the_message(talk: Talker, services: Services) -> None:
    job = await accept_job(talk, "My secret", context={"pin": "1234"})
    sql = "SELECT work::text FROM work WHERE ref_id = $1"
    row = await fetch_value(services, sql, job["job_id"])
    assert job["job_id"] in row
    assert "secret" not in row
    assert "1234" not in row


async def test_a_completed_job_has_the_same_reply_as_synchronous_chat(
    talk: Talker, services: Services
) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    script = (
        Reply(texts=["Let me ask."], calls=[("delegate_to_helper", {"task": "x"})], usage=(5, 1)),
        Reply(texts=["At 9, I hear."], usage=(7, 2)),
    )
    talk.script(*script)
    expected = await talk.say("Hi")
    talk.script(*script)
    job = await run_new_job(talk, services)
    assert job["status"] == "completed"
    assert "error" not in job
    assert datetime.fromisoformat(job["finished_at"]) >= datetime.fromisoformat(job["created_at"])
    reply = job["reply"]
    assert set(reply) == set(expected)
    assert reply["conversation_id"] == job["conversation_id"]
    assert set(reply["message"]) == set(expected["message"])
    assert reply["message"]["role"] == "assistant"
    assert reply["message"]["content"] == expected["message"]["content"]
    assert reply["usage"] == expected["usage"]
    assert reply["sources"] == []
    assert len(reply["tool_calls"]) == 1
    for call in (*reply["tool_calls"], *expected["tool_calls"]):
        del call["id"], call["execution_time_ms"]
    assert reply["tool_calls"] == expected["tool_calls"]


async def test_the_reply_is_in_the_conversation(talk: Talker, services: Services) -> None:
    job = await run_new_job(talk, services)
    messages = await list_messages(talk, job["conversation_id"])
    assert [item["content"] for item in messages] == ["Hi", "Hello there"]
    assert messages[1]["id"] == job["reply"]["message"]["id"]
    assert [item["status"] for item in messages] == ["complete", "complete"]
    assert (await get_conversation(talk, job["conversation_id"]))["message_count"] == 2


async def test_the_model_sees_history_and_context(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    conversation = {"conversation_id": first["conversation_id"]}
    await run_new_job(talk, services, "Two", context={"plan": "gold"}, **conversation)
    messages = talk.asked[1]["messages"]
    assert '{"plan":"gold"}' in messages[0]["content"]
    assert [item["content"] for item in messages[1:]] == ["One", "Hello there", "Two"]
    await talk.say("Three", **conversation)
    assert [item["content"] for item in talk.asked[2]["messages"][1:]] == [
        "One",
        "Hello there",
        "Two",
        "Hello there",
        "Three",
    ]


async def test_a_job_is_running_while_the_model_answers(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    async with pause_job(talk, services, job):
        view = await get_job(talk, job)
        assert view["status"] == "running"
        assert "reply" not in view
        assert "finished_at" not in view
    assert (await get_job(talk, job))["status"] == "completed"


async def test_a_job_claimed_twice_is_answered_once(talk: Talker, services: Services) -> None:
    job = await accept_job(talk)
    await asyncio.gather(*(run_job(services, job) for _ in range(5)))
    await run_job(services, job)
    assert len(talk.asked) == 1
    assert len(await list_job_messages(talk, job)) == 2


async def test_the_end_of_a_job_emits_an_event(talk: Talker, services: Services) -> None:
    job = await run_new_job(talk, services)
    assert await list_event_data(talk, "agent.chat.completed") == [
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


async def test_events_contain_no_messages_if_messages_are_not_logged(
    talk: Talker, services: Services
) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    job = await run_new_job(talk, services, "My secret")
    assert job["reply"]["message"]["content"] == "Hello there"
    assert [data["message"] for data in await list_event_data(talk, "agent.chat.completed")] == [
        None
    ]
    events = await list_event_data(talk, "agent.chat.message")
    assert [data["content"] for data in events] == [None, None]


async def test_a_turn_is_counted_once(talk: Talker, services: Services) -> None:
    job = await run_new_job(talk, services)
    row = await fetch_row(
        services,
        "SELECT count(*) AS n, min(source) AS source, sum(turns) AS turns, sum(messages) AS"
        " messages, sum(conversations) AS conversations, sum(prompt_tokens) AS tokens"
        " FROM usage WHERE message_id = $1",
        job["reply"]["message"]["id"],
    )
    assert tuple(row) == (1, "async", 1, 2, 1, 11)


async def test_super_admin_starts_a_job_of_any_tenants_agent(
    talk: Talker, services: Services, super_admin: Client
) -> None:
    job = await accept_job(talk, caller=super_admin)
    await run_job(services, job)
    assert (await get_job(talk, job))["status"] == "completed"
