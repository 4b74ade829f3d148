"""Turns of one agent that start or end at the same time share their statements."""

import asyncio
from typing import Any

import asyncpg
import pytest

from app.domain.conversations.chat import persistence, turn_queries
from app.services import Services
from db.session import ALL_TENANTS, Tx
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import (
    get_conversation,
    list_messages,
    start_conversation,
)
from tests.conversations.chat.database import execute, fetch_rows
from tests.conversations.chat.log_helpers import get_stats
from tests.model_server import Reply
from tests.scripted_agents import Talker

LOCK = "SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE"


async def _start_conversations(talk: Talker, count: int) -> list[str]:
    return [await start_conversation(talk, "Start") for _ in range(count)]


def _send_messages(talk: Talker, ids: list[str], message: str = "Hi") -> list[asyncio.Task[Any]]:
    """Starts a turn in each conversation."""
    path = f"{talk.path}/chat"
    bodies = [{"message": message, "conversation_id": conversation_id} for conversation_id in ids]
    return [asyncio.create_task(talk.client.post(path, body)) for body in bodies]


async def _start_paused_turns(
    talk: Talker, ids: list[str], message: str = "Hi"
) -> tuple[list[asyncio.Task[Any]], asyncio.Event]:
    """Starts turns whose models wait until the returned event is set."""
    hold, requests_before = asyncio.Event(), len(talk.asked)
    talk.script(Reply(texts=["Late"], hold=hold))
    turns = _send_messages(talk, ids, message)
    await until(lambda: len(talk.asked) == requests_before + len(ids))
    return turns, hold


async def _wait_for_waiting_turns(services: Services, count: int) -> None:
    """Waits until so many turns wait for the batch that runs."""
    await until(lambda: sum(map(len, services.batches._groups.values())) == count)


def _delay_first_call(
    monkeypatch: pytest.MonkeyPatch, services: Services, module: Any, name: str, waiting: int
) -> list[int]:
    """Delays the first call until so many turns wait for it; returns the size of each batch."""
    function, sizes = getattr(module, name), list[int]()

    async def delay(*args: Any, **more: Any) -> Any:
        sizes.append(len(next(item for item in args if isinstance(item, list))))
        if len(sizes) == 1:
            await _wait_for_waiting_turns(services, waiting)
        return await function(*args, **more)

    monkeypatch.setattr(module, name, delay)
    return sizes


async def test_concurrent_turns_of_an_agent_are_stored_separately(talk: Talker) -> None:
    ids = [await start_conversation(talk, f"Start {number}") for number in range(12)]
    rounds = 3
    for round_number in range(rounds):
        replies = await asyncio.gather(
            *(
                talk.say(f"{round_number} in {number}", conversation_id=conversation_id)
                for number, conversation_id in enumerate(ids)
            )
        )
        assert [reply["conversation_id"] for reply in replies] == ids
    for number, conversation_id in enumerate(ids):
        messages = await list_messages(talk, conversation_id)
        questions = [item["content"] for item in messages if item["role"] == "user"]
        assert questions == [
            f"Start {number}",
            *(f"{round_number} in {number}" for round_number in range(rounds)),
        ]
        conversation = await get_conversation(talk, conversation_id)
        assert conversation["message_count"] == 2 * (rounds + 1)
    stats = await get_stats(talk)
    assert stats["total_messages"] == 12 * 2 * (rounds + 1)
    assert stats["total_conversations"] == 12


async def test_one_of_two_concurrent_turns_of_a_conversation_is_refused(talk: Talker) -> None:
    ids = await _start_conversations(talk, 4)
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    turns = _send_messages(talk, [*ids, *ids, "cnv_unknown"])
    await until(lambda: sum(turn.done() for turn in turns) == len(ids) + 1)
    hold.set()
    answers = await asyncio.gather(*turns)
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [404] + [409] * 4
    for number in range(4):
        pair = {answers[number].status_code, answers[number + 4].status_code}
        assert pair == {200, 409}


async def test_a_turn_that_cannot_be_stored_does_not_affect_others(
    talk: Talker, services: Services
) -> None:
    """The conversation of one turn is deleted before all of them end."""
    ids = await _start_conversations(talk, 6)
    turns, hold = await _start_paused_turns(talk, ids)
    await execute(services, "DELETE FROM conversations WHERE id = $1", ids[2])
    hold.set()
    answers = await asyncio.gather(*turns)
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 200, 200]
    rows = await fetch_rows(
        services,
        "SELECT conversation_id, count(*) AS n FROM usage WHERE agent_id = $1 "
        "GROUP BY conversation_id",
        talk.agent_id,
    )
    # The tokens of the turn that was not stored are counted as well.
    assert {row["conversation_id"]: row["n"] for row in rows} == dict.fromkeys(ids, 2)


async def test_a_statement_that_fails_for_one_turn_is_repeated_for_the_others(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await _start_conversations(talk, 6)
    turns, hold = await _start_paused_turns(talk, ids[:4])
    failing_turn = _send_messages(talk, [ids[4]], "poison")
    last_turn = _send_messages(talk, [ids[5]])
    requests = 2 * len(ids)
    await until(lambda: len(talk.asked) == requests)
    write = persistence._write

    async def fail(tx: Tx, tenant_id: str, turns: list[Any], **more: Any) -> set[str]:
        if any("poison" in turn.entries for turn in turns):
            raise asyncpg.ProgramLimitExceededError("made up")
        return await write(tx, tenant_id, turns, **more)

    monkeypatch.setattr(persistence, "_write", fail)
    sizes = _delay_first_call(monkeypatch, services, persistence, "_write", waiting=5)
    hold.set()
    answers = await asyncio.gather(*turns, *failing_turn, *last_turn)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 500, 200]
    assert max(sizes) > 1
    assert not services.batches._groups


async def test_a_turn_that_lost_its_conversation_is_not_stored_with_the_next_one(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease expired, and both turns end at the same time."""
    lost_id, other_id = await _start_conversations(talk, 2)
    turns, hold = await _start_paused_turns(talk, [other_id])
    turns += _send_messages(talk, [lost_id], "first")
    await until(lambda: len(talk.asked) == 4)
    expire = "UPDATE conversations SET turn_until = now() - interval '1 second' WHERE id = $1"
    await execute(services, expire, lost_id)
    turns += _send_messages(talk, [lost_id], "second")
    await until(lambda: len(talk.asked) == 5)
    sizes = _delay_first_call(monkeypatch, services, persistence, "_write", waiting=2)
    hold.set()
    answers = await asyncio.gather(*turns)
    assert [answer.status_code for answer in answers] == [200, 404, 200]
    assert sizes[0] == 1
    questions = await fetch_rows(
        services,
        "SELECT content FROM conversation_entries WHERE conversation_id = $1 AND type = 'message' "
        "AND role = 'user' ORDER BY seq",
        lost_id,
    )
    assert [row["content"] for row in questions] == ["Start", "second"]
    events = "SELECT 1 FROM event_log WHERE data->>'conversation_id' = $1 AND data->>'content' = $2"
    assert not await fetch_rows(services, events, lost_id, "first")


async def test_a_batch_that_loses_its_connection_leaves_no_conversation_busy(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost after the statement that marks the conversations as busy."""
    ids = await _start_conversations(talk, 5)
    resume, sizes = turn_queries.resume, list[int]()

    async def lose_connection(tx: Tx, *args: Any, **more: Any) -> list[Any]:
        sizes.append(len(args[2]))
        if len(sizes) == 1:
            await _wait_for_waiting_turns(services, 4)
        rows = await resume(tx, *args, **more)
        if len(args[2]) > 1:
            raw = await tx.raw()
            async with services.db.tx(ALL_TENANTS, autocommit=True) as other:
                terminate = "SELECT pg_terminate_backend($1)"
                await (await other.raw()).execute(terminate, raw.get_server_pid())
            await raw.fetchval("SELECT 1")
        return rows

    monkeypatch.setattr(turn_queries, "resume", lose_connection)
    answers = await asyncio.gather(*_send_messages(talk, ids))
    assert sizes[:2] == [1, 4]
    assert {answer.status_code for answer in answers[1:]} <= {500, 503}
    monkeypatch.setattr(turn_queries, "resume", resume)
    answers = await asyncio.gather(*_send_messages(talk, ids))
    assert [answer.status_code for answer in answers] == [200] * 5


async def test_a_locked_conversation_does_not_delay_others(
    talk: Talker, services: Services
) -> None:
    locked_id, *other_ids = await _start_conversations(talk, 4)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(LOCK, locked_id)
        [locked_turn] = _send_messages(talk, [locked_id])
        async with asyncio.timeout(10):
            for _ in range(3):
                answers = await asyncio.gather(*_send_messages(talk, other_ids))
                assert [answer.status_code for answer in answers] == [200] * 3
        assert not locked_turn.done()
    assert (await locked_turn).status_code == 200


async def test_a_locked_conversation_delays_only_its_own_reply(
    talk: Talker, services: Services
) -> None:
    ids = await _start_conversations(talk, 3)
    (locked_turn, *other_turns), hold = await _start_paused_turns(talk, ids)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(LOCK, ids[0])
        hold.set()
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*other_turns)
        assert [answer.status_code for answer in answers] == [200] * 2
        assert not locked_turn.done()
    assert (await locked_turn).status_code == 200


async def test_replies_of_a_lost_connection_are_not_reported_as_deleted(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost after the replies are written."""
    ids = await _start_conversations(talk, 4)
    turns, hold = await _start_paused_turns(talk, ids)
    write = persistence._write

    async def lose_connection(tx: Tx, tenant_id: str, turns: list[Any], **more: Any) -> set[str]:
        stored = await write(tx, tenant_id, turns, **more)
        if len(turns) > 1:
            raise asyncpg.ConnectionDoesNotExistError("closed in the middle of operation")
        return stored

    monkeypatch.setattr(persistence, "_write", lose_connection)
    sizes = _delay_first_call(monkeypatch, services, persistence, "_write", waiting=3)
    hold.set()
    answers = await asyncio.gather(*turns)
    assert max(sizes) > 1
    assert {answer.status_code for answer in answers} == {200, 503}
