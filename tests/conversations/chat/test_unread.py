"""What each user has read of the conversations: unread conversations, marks, and read-all."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import start_conversation
from tests.conversations.chat.database import fetch_rows, fetch_value
from tests.conversations.chat.summary_helpers import PATH, list_ids, list_summaries, list_unread
from tests.identity.service_keys.keys import create_program
from tests.scripted_agents import Talker
from tests.world import Client, World


async def _read(caller: Client, conversation_id: str) -> None:
    answer = await caller.post(f"{PATH}/{conversation_id}/read")
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"conversation_id": conversation_id, "unread": False}


async def _unread(caller: Client, conversation_id: str) -> None:
    answer = await caller.delete(f"{PATH}/{conversation_id}/read")
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"conversation_id": conversation_id, "unread": True}


async def _read_all(caller: Client, until: str) -> str:
    answer = await caller.post(f"{PATH}/read-all", {"until": until})
    assert answer.status_code == 200, answer.text
    read_until: str = answer.json()["read_until"]
    return read_until


async def test_nothing_before_the_first_list_is_unread(talk: Talker, world: World) -> None:
    old = await start_conversation(talk)
    assert await list_unread(talk.client) == []
    new = await start_conversation(talk)
    assert await list_unread(talk.client) == [new]
    assert await list_ids(talk.client, unread=False) == [old]
    assert [item["unread"] for item in await list_summaries(talk.client)] == [True, False]
    # Each user has a beginning of their own.
    colleague = await world.user("agent_developer", talk.client.tenant_id)
    assert await list_unread(colleague) == []


async def test_a_later_message_makes_a_conversation_unread_again(talk: Talker) -> None:
    await list_ids(talk.client)
    first, second = await start_conversation(talk), await start_conversation(talk)
    await _read(talk.client, first)
    assert await list_unread(talk.client) == [second]
    await talk.say("Again", conversation_id=first)
    assert await list_unread(talk.client) == [first, second]
    await _read(talk.client, first)
    await _read(talk.client, first)
    assert await list_unread(talk.client) == [second]


async def test_reading_is_the_users_own(talk: Talker, world: World) -> None:
    colleague = await world.user("agent_developer", talk.client.tenant_id)
    program = await create_program(talk.client, "agent_developer")
    callers = (talk.client, colleague, program)
    for caller in callers:
        await list_ids(caller)
    conversation_id = await start_conversation(talk)
    for number, caller in enumerate(callers):
        unread = [len(await list_unread(caller)) for caller in callers]
        assert unread == [int(later >= number) for later in range(3)]
        await _read(caller, conversation_id)


async def test_a_conversation_can_be_marked_as_unread(talk: Talker) -> None:
    old, read = await start_conversation(talk), await start_conversation(talk)
    await list_ids(talk.client)
    for conversation_id in (old, read):
        await _read(talk.client, conversation_id)
    await _unread(talk.client, old)
    assert await list_unread(talk.client) == [old]
    await _read(talk.client, old)
    assert await list_unread(talk.client) == []


async def test_read_all_reads_what_the_user_has_seen(talk: Talker, services: Services) -> None:
    await list_ids(talk.client)
    first, second, third = [await start_conversation(talk, str(number)) for number in range(3)]
    await _read(talk.client, third)
    await _unread(talk.client, first)
    times = {item["id"]: item["last_message_at"] for item in await list_summaries(talk.client)}
    assert await _read_all(talk.client, times[first]) == times[first]
    assert await list_unread(talk.client) == [second]
    # It never goes back.
    await _read_all(talk.client, "2020-01-01T00:00:00Z")
    assert await list_unread(talk.client) == [second]
    await _read_all(talk.client, times[third])
    assert await list_unread(talk.client) == []
    count = "SELECT count(*) FROM conversation_reads WHERE user_id = $1"
    assert await fetch_value(services, count, talk.client.user_id) == 0


async def test_nobody_has_read_the_future(talk: Talker) -> None:
    read_until = await _read_all(talk.client, "2999-01-01T00:00:00Z")
    now = datetime.now(datetime.fromisoformat(read_until).tzinfo)
    assert datetime.fromisoformat(read_until) <= now + timedelta(seconds=5)
    new = await start_conversation(talk)
    assert await list_unread(talk.client) == [new]


async def test_wrong_bodies_are_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    bodies: list[Any] = [{}, {"until": None}, {"until": "2026-01-01T00:00:00"}, {"until": 1}, []]
    for body in bodies:
        with subtests.test(body=body):
            answer = await talk.client.post(f"{PATH}/read-all", body)
            refused(answer, 422, "validation_error")


async def test_only_readers_of_a_conversation_mark_it(
    talk: Talker, world: World, admin: Client, services: Services, subtests: pytest.Subtests
) -> None:
    conversation_id = await start_conversation(talk)
    stranger = await world.user("agent_user", talk.client.tenant_id)
    for caller in (stranger, admin):
        for method in ("POST", "DELETE"):
            with subtests.test(caller=caller.user_id, method=method):
                answer = await caller(method, f"{PATH}/{conversation_id}/read")
                refused(answer, 404, "conversation_not_found")
    rows = "SELECT 1 FROM conversation_reads WHERE conversation_id = $1"
    assert await fetch_rows(services, rows, conversation_id) == []


async def test_what_a_user_has_read_is_deleted_with_the_user(
    talk: Talker, world: World, services: Services
) -> None:
    colleague = await world.user("agent_developer", talk.client.tenant_id)
    await list_ids(colleague)
    await _read(colleague, await start_conversation(talk))
    await fetch_rows(services, "DELETE FROM users WHERE id = $1", colleague.user_id)
    for table in ("conversation_reads", "conversation_readers"):
        rows = f"SELECT 1 FROM {table} WHERE user_id = $1"
        assert await fetch_rows(services, rows, colleague.user_id) == []
