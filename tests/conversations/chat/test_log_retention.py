"""Deletion of conversations that are older than the agent's retention."""

import asyncio

import msgspec
import pytest

from app.areas import AREAS
from app.security.plans import PLANS
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import list_event_data, list_messages
from tests.conversations.chat.database import execute, fetch_value
from tests.conversations.chat.delegation_scripts import script_delegation
from tests.conversations.chat.job_helpers import accept_job, get_job, run_job, run_new_job
from tests.conversations.chat.log_helpers import list_log_entries, set_log_settings
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import PROVIDER, Talker, talker
from tests.world import World


async def _delete_expired(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)


async def _make_older(services: Services, agent_id: str, days: float) -> None:
    """Moves the times of the agent's conversations, jobs and events into the past."""
    for table, column, condition in (
        ("conversation_entries", "created_at", "agent_id = $1"),
        ("conversations", "last_message_at", "agent_id = $1"),
        ("conversations", "created_at", "agent_id = $1"),
        ("chat_jobs", "created_at", "agent_id = $1"),
        ("chat_jobs", "finished_at", "agent_id = $1"),
        ("event_log", "created_at", "data->>'agent_id' = $1"),
    ):
        await execute(
            services,
            f"UPDATE {table} SET {column} = {column} - $2 * interval '1 day' WHERE {condition}",
            agent_id,
            days,
        )


async def _count_rows(services: Services, table: str, agent_id: str) -> int:
    sql = f"SELECT count(*) FROM {table} WHERE agent_id = $1"
    return int(await fetch_value(services, sql, agent_id))


async def _expire(talk: Talker, services: Services, days: int, age: float) -> None:
    """Sets the retention, makes the agent's rows `age` days older and deletes what has expired."""
    await set_log_settings(talk, retention_days=days)
    await _make_older(services, talk.agent_id, age)
    await _delete_expired(services)


async def test_conversations_older_than_the_retention_are_deleted(
    world: World, models: ModelServer, services: Services, subtests: pytest.Subtests
) -> None:
    for days, age in ((1, 1.01), (30, 31), (3650, 3651)):
        with subtests.test(days=days, age=age):
            talk = await talker(world, models)
            await script_delegation(talk)
            reply = await talk.say("Hello")
            await _expire(talk, services, days, age)
            assert await list_log_entries(talk) == []
            path = f"/api/v1/conversations/{reply['conversation_id']}"
            assert (await talk.client.get(path)).status_code == 404
            assert await _count_rows(services, "conversations", talk.agent_id) == 0
            assert await _count_rows(services, "conversation_entries", talk.agent_id) == 0
            assert await list_event_data(talk, "agent.chat.message") == []


async def test_conversations_within_the_retention_are_kept(
    world: World, models: ModelServer, services: Services, subtests: pytest.Subtests
) -> None:
    for days, age in ((1, 0.99), (30, 29), (3650, 3649)):
        with subtests.test(days=days, age=age):
            talk = await talker(world, models)
            await script_delegation(talk)
            reply = await talk.say("Hello")
            await _expire(talk, services, days, age)
            assert len(await list_log_entries(talk)) == 5
            assert len(await list_messages(talk, reply["conversation_id"])) == 2
            # The event log has a retention period of its own.
            expected = 2 if age < PLANS["enterprise"].events_days else 0
            assert len(await list_event_data(talk, "agent.chat.message")) == expected


async def test_messages_that_are_not_logged_are_deleted_as_well(
    talk: Talker, services: Services
) -> None:
    await set_log_settings(talk, log_messages=False, retention_days=1)
    await talk.say("Hello")
    await _make_older(services, talk.agent_id, 2)
    await _delete_expired(services)
    assert await _count_rows(services, "conversation_entries", talk.agent_id) == 0


async def test_only_old_messages_of_an_active_conversation_are_deleted(
    talk: Talker, services: Services
) -> None:
    await set_log_settings(talk, retention_days=7)
    talk.script(Reply(texts=["Old."]), Reply(texts=["New."]), Reply(texts=["Newer."]))
    first = await talk.say("Then")
    await _make_older(services, talk.agent_id, 8)
    await talk.say("Now", conversation_id=first["conversation_id"])
    await _delete_expired(services)
    contents = [item["content"] for item in await list_messages(talk, first["conversation_id"])]
    assert contents == ["Now", "New."]
    events = await list_event_data(talk, "agent.chat.message")
    assert [data["content"] for data in events] == ["Now", "New."]
    await talk.say("Later", conversation_id=first["conversation_id"])
    model_contents = [message["content"] for message in talk.asked[-1]["messages"]]
    assert model_contents[1:] == ["Now", "New.", "Later"]


async def test_each_agent_has_its_own_retention(talk: Talker, services: Services) -> None:
    other = await talk.agent("Other")
    await set_log_settings(talk, retention_days=1)
    for agent in (talk, other):
        await agent.say("Hello")
        await _make_older(services, agent.agent_id, 2)
    await _delete_expired(services)
    assert await _count_rows(services, "conversations", talk.agent_id) == 0
    assert await _count_rows(services, "conversations", other.agent_id) == 1
    assert len(await list_log_entries(other)) == 3


async def test_statistics_are_kept_after_messages_are_deleted(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(usage=(10, 5)))
    await talk.say("Hello")
    await _expire(talk, services, days=1, age=2)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert (stats["total_conversations"], stats["total_tokens_used"]) == (1, 15)


async def test_events_of_the_agent_itself_are_not_deleted(talk: Talker, services: Services) -> None:
    body = {"name": "A", "primary_model": f"{PROVIDER}/{talk.model}", "system_prompt": "Help."}
    agent = (await talk.client.post("/api/v1/agents", body)).json()
    created = msgspec.structs.replace(talk, agent_id=agent["id"])
    await _expire(created, services, days=1, age=2)
    assert len(await list_event_data(created, "agent.created")) == 1


async def test_a_conversation_that_is_being_answered_is_not_deleted(
    talk: Talker, services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(), Reply(texts=["Fine."], hold=hold))
    first = await talk.say("Then")
    await set_log_settings(talk, retention_days=1)
    await _make_older(services, talk.agent_id, 2)
    body = {"message": "Now", "conversation_id": first["conversation_id"]}
    turn = asyncio.create_task(talk.client.post(f"{talk.path}/chat", body))
    await until(lambda: len(talk.asked) == 2)
    await _delete_expired(services)
    hold.set()
    answer = await turn
    assert answer.status_code == 200, answer.text
    contents = [item["content"] for item in await list_messages(talk, first["conversation_id"])]
    assert contents == ["Now", "Fine."]


_ADD_WORK = """
INSERT INTO work (id, kind, cause_event_id, state, run_at, lease_until, max_attempts,
                  correlation_id)
SELECT 'wrk_' || substr(id, 5) || $2, 'webhooks.deliver', id, $2, now() + interval '1 day',
       now() + interval '1 day', 7, 'cor'
FROM event_log WHERE data->>'agent_id' = $1 AND type = 'agent.chat.message'
"""


async def test_an_event_is_kept_until_the_work_that_it_caused_is_finished(
    world: World, models: ModelServer, services: Services, subtests: pytest.Subtests
) -> None:
    for state, count in (("pending", 2), ("leased", 2), ("done", 0), ("dead", 0), ("cancelled", 0)):
        with subtests.test(state=state, count=count):
            talk = await talker(world, models)
            await talk.say("Hello")
            await execute(services, _ADD_WORK, talk.agent_id, state)
            await _expire(talk, services, days=1, age=2)
            assert len(await list_event_data(talk, "agent.chat.message")) == count
            await execute(services, "DELETE FROM work WHERE id LIKE '%' || $1", state)
            await _delete_expired(services)
            assert await list_event_data(talk, "agent.chat.message") == []


async def test_a_conversation_is_kept_until_its_job_is_finished(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk, "Hello")
    await execute(
        services,
        "UPDATE conversations SET turn_until = now() - interval '1 day' WHERE id = $1",
        job["conversation_id"],
    )
    await _expire(talk, services, days=1, age=2)
    talk.script(Reply(texts=["Here."]))
    await run_job(services, job)
    assert (await get_job(talk, job))["status"] == "completed"
    assert talk.asked[-1]["messages"][-1]["content"] == "Hello"
    await _make_older(services, talk.agent_id, 2)
    await _delete_expired(services)
    assert await _count_rows(services, "conversations", talk.agent_id) == 0
    assert await _count_rows(services, "conversation_entries", talk.agent_id) == 0


async def test_a_conversation_is_deleted_after_its_entries_and_jobs(
    talk: Talker, services: Services
) -> None:
    """Deleting many conversations would delete far more entries in the same statement."""
    await run_new_job(talk, services, "Hello")
    await set_log_settings(talk, retention_days=1)
    await _make_older(services, talk.agent_id, 2)
    rules = {rule.table: rule for rule in AREAS.retention if not rule.clears}
    for table in ("conversations", "conversation_entries", "conversations", "chat_jobs"):
        await execute(services, rules[table].sql)
        assert await _count_rows(services, "conversations", talk.agent_id) == 1
    await execute(services, rules["conversations"].sql)
    assert await _count_rows(services, "conversations", talk.agent_id) == 0


async def test_the_job_of_an_asynchronous_turn_is_deleted_with_its_conversation(
    talk: Talker, services: Services
) -> None:
    await run_new_job(talk, services, "Hello")
    await _expire(talk, services, days=1, age=2)
    assert await _count_rows(services, "chat_jobs", talk.agent_id) == 0
    assert await list_event_data(talk, "agent.chat.completed") == []


async def test_the_reply_of_an_old_job_is_deleted_with_its_message(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(texts=["Old secret."]), Reply(texts=["New."]))
    job = await run_new_job(talk, services, "Hello")
    await set_log_settings(talk, retention_days=1)
    await _make_older(services, talk.agent_id, 2)
    await talk.say("Now", conversation_id=job["conversation_id"])
    await _delete_expired(services)
    contents = [item["content"] for item in await list_messages(talk, job["conversation_id"])]
    assert contents == ["Now", "New."]
    answer = await talk.client.get(f"{talk.path}/chat/jobs/{job['job_id']}")
    assert "Old secret." not in answer.text


async def test_the_title_of_a_conversation_does_not_contain_deleted_messages(
    talk: Talker, services: Services
) -> None:
    await set_log_settings(talk, retention_days=1)
    first = await talk.say("Old secret")
    await _make_older(services, talk.agent_id, 2)
    await talk.say("Now", conversation_id=first["conversation_id"])
    await _delete_expired(services)
    answer = await talk.client.get(f"/api/v1/conversations/{first['conversation_id']}")
    assert "Old secret" not in answer.text


async def test_messages_of_a_deleted_agent_are_deleted(talk: Talker, services: Services) -> None:
    await talk.say("Hello secret")
    await set_log_settings(talk, retention_days=1)
    await talk.client.delete(talk.path)
    await _make_older(services, talk.agent_id, 4000)
    await _delete_expired(services)
    log = await talk.client.get("/api/v1/event-log", params={"per_page": 100})
    assert "secret" not in log.text
