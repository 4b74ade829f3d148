"""Turns of one agent that begin or end at the same time share their statements."""

import asyncio
from typing import Any

import asyncpg
import pytest

from app.domain.chat import persistence, turn_queries
from app.services import Services
from db.session import ALL_TENANTS, Tx
from tests.asking import until
from tests.model_server import Reply
from tests.talk import Talker


async def test_turns_that_begin_and_end_together_are_kept_apart(talk: Talker) -> None:
    """What each says stays its own."""
    started = [await talk.say(f"Start {number}") for number in range(12)]
    ids = [reply["conversation_id"] for reply in started]
    rounds = 3
    for again in range(rounds):
        replies = await asyncio.gather(
            *(
                talk.say(f"{again} in {number}", conversation_id=conversation_id)
                for number, conversation_id in enumerate(ids)
            )
        )
        assert [reply["conversation_id"] for reply in replies] == ids
    for number, conversation_id in enumerate(ids):
        answer = await talk.client.get(f"/api/v1/conversations/{conversation_id}/messages")
        said = [item["content"] for item in answer.json()["data"] if item["role"] == "user"]
        assert said == [f"Start {number}", *(f"{again} in {number}" for again in range(rounds))]
        known = (await talk.client.get(f"/api/v1/conversations/{conversation_id}")).json()
        assert known["message_count"] == 2 * (rounds + 1)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_messages"] == 12 * 2 * (rounds + 1)
    assert stats["total_conversations"] == 12


async def test_of_two_turns_at_once_in_one_conversation_one_is_refused_whoever_goes_along(
    talk: Talker,
) -> None:
    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(4)]
    path = f"{talk.path}/chat"
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    asked = [
        asyncio.create_task(talk.client.post(path, {"message": "Hi", "conversation_id": one}))
        for one in [*ids, *ids, "cnv_unknown"]
    ]
    async with asyncio.timeout(10):
        while sum(task.done() for task in asked) < len(ids) + 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    hold.set()
    answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [404] + [409] * 4
    for one in range(4):
        pair = {answers[one].status_code, answers[one + 4].status_code}
        assert pair == {200, 409}


async def test_a_turn_that_cannot_be_kept_takes_no_other_with_it(
    talk: Talker, services: Services
) -> None:
    """Its conversation was deleted meanwhile; those that end at the same moment are kept."""
    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(6)]
    hold = asyncio.Event()
    talk.script(Reply(texts=["Late"], hold=hold))
    before = len(talk.asked)
    path = f"{talk.path}/chat"
    asked = [
        asyncio.create_task(talk.client.post(path, {"message": "Hi", "conversation_id": one}))
        for one in ids
    ]
    async with asyncio.timeout(10):
        while len(talk.asked) < before + len(ids):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM conversations WHERE id = $1", ids[2])
    hold.set()
    answers = await asyncio.gather(*asked)
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 200, 200]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        kept = await (await tx.raw()).fetch(
            "SELECT conversation_id, count(*) AS n FROM usage WHERE agent_id = $1 "
            "GROUP BY conversation_id",
            talk.agent_id,
        )
    # What the lost one used is counted all the same.
    assert {row["conversation_id"]: row["n"] for row in kept} == dict.fromkeys(ids, 2)


async def test_a_statement_that_fails_for_one_turn_is_repeated_for_the_others(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, sizes = persistence._write, []

    async def failing(tx: Tx, tenant_id: str, turns: list[Any], **more: Any) -> set[str]:
        sizes.append(len(turns))
        if any("poison" in turn.entries for turn in turns):
            raise asyncpg.ProgramLimitExceededError("made up")
        return await write(tx, tenant_id, turns, **more)

    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(6)]
    monkeypatch.setattr(persistence, "_write", failing)
    hold = asyncio.Event()
    talk.script(Reply(texts=["Late"], hold=hold))
    before = len(talk.asked)
    asked = [
        asyncio.create_task(
            talk.client.post(
                f"{talk.path}/chat",
                {"message": "poison" if one == ids[4] else "Hi", "conversation_id": one},
            )
        )
        for one in ids
    ]
    async with asyncio.timeout(10):
        while len(talk.asked) < before + len(ids):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    hold.set()
    answers = await asyncio.gather(*asked)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 500, 200]
    assert max(sizes) > 1
    assert not services.batches._groups


async def _sql(services: Services, sql: str, *args: object) -> list[Any]:
    async with services.db.tx(ALL_TENANTS) as tx:
        return list(await (await tx.raw()).fetch(sql, *args))


def _asking(talk: Talker, ids: list[str], message: str = "Hi") -> list[asyncio.Task[Any]]:
    path = f"{talk.path}/chat"
    return [
        asyncio.create_task(talk.client.post(path, {"message": message, "conversation_id": one}))
        for one in ids
    ]


def _slow_first(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """The first call takes a moment, so that the next ones come together; gives their sizes."""
    real, sizes = getattr(module, name), list[int]()

    async def slow(*args: Any, **more: Any) -> Any:
        sizes.append(len(next(item for item in args if isinstance(item, list))))
        if len(sizes) == 1:
            await asyncio.sleep(0.2)
        return await real(*args, **more)

    monkeypatch.setattr(module, name, slow)
    return sizes


async def test_a_turn_that_lost_its_conversation_is_not_kept_by_the_next_one(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease ran out while the database was away, and both end at the same moment."""
    [one, other] = [(await talk.say("Start"))["conversation_id"] for _ in range(2)]
    hold = asyncio.Event()
    talk.script(Reply(texts=["Late"], hold=hold))
    before = len(talk.asked)
    asked = [*_asking(talk, [other]), *_asking(talk, [one], "first")]
    await until(lambda: len(talk.asked) == before + 2)
    expire = "UPDATE conversations SET turn_until = now() - interval '1 second' WHERE id = $1"
    await _sql(services, expire, one)
    asked += _asking(talk, [one], "second")
    await until(lambda: len(talk.asked) == before + 3)
    sizes = _slow_first(monkeypatch, persistence, "_write")
    hold.set()
    answers = await asyncio.gather(*asked)
    assert [answer.status_code for answer in answers] == [200, 404, 200]
    assert sizes[0] == 1
    said = await _sql(
        services,
        "SELECT content FROM conversation_entries WHERE conversation_id = $1 AND type = 'message' "
        "AND role = 'user' ORDER BY seq",
        one,
    )
    assert [row["content"] for row in said] == ["Start", "second"]
    told = "SELECT 1 FROM event_log WHERE data->>'conversation_id' = $1 AND data->>'content' = $2"
    assert not await _sql(services, told, one, "first")


async def test_a_batch_that_fails_half_way_leaves_no_conversation_busy(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were taken already when the connection died."""
    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(5)]
    take, cut = turn_queries.resume, list[int]()

    async def dying(tx: Tx, *args: Any, **more: Any) -> list[Any]:
        if not cut:
            cut.append(0)
            await asyncio.sleep(0.2)
            return await take(tx, *args, **more)
        found = await take(tx, *args, **more)
        if len(args[2]) > 1:
            cut.append(len(args[2]))
            raw = await tx.raw()
            async with services.db.tx(ALL_TENANTS, autocommit=True) as other:
                end = "SELECT pg_terminate_backend($1)"
                await (await other.raw()).execute(end, raw.get_server_pid())
            await raw.fetchval("SELECT 1")
        return found

    monkeypatch.setattr(turn_queries, "resume", dying)
    answers = await asyncio.gather(*_asking(talk, ids))
    assert cut[1:] == [4]
    assert {answer.status_code for answer in answers[1:]} <= {500, 503}
    monkeypatch.setattr(turn_queries, "resume", take)
    again = await asyncio.gather(*_asking(talk, ids))
    assert [answer.status_code for answer in again] == [200] * 5


async def test_a_locked_conversation_holds_up_nobody_elses(
    talk: Talker, services: Services
) -> None:
    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(4)]
    async with services.db.tx(ALL_TENANTS) as tx:
        lock = "SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE"
        await (await tx.raw()).execute(lock, ids[0])
        [locked] = _asking(talk, ids[:1])
        async with asyncio.timeout(5):
            for _ in range(3):
                others = await asyncio.gather(*_asking(talk, ids[1:]))
                assert [answer.status_code for answer in others] == [200] * 3
        assert not locked.done()
    assert (await locked).status_code == 200


async def test_a_reply_waits_for_its_own_locked_conversation_alone(
    talk: Talker, services: Services
) -> None:
    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(3)]
    hold = asyncio.Event()
    talk.script(Reply(texts=["Late"], hold=hold))
    before = len(talk.asked)
    locked, *others = _asking(talk, ids)
    await until(lambda: len(talk.asked) == before + 3)
    async with services.db.tx(ALL_TENANTS) as tx:
        lock = "SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE"
        await (await tx.raw()).execute(lock, ids[0])
        hold.set()
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*others)
        assert [answer.status_code for answer in answers] == [200] * 2
        assert not locked.done()
    assert (await locked).status_code == 200


async def test_replies_whose_connection_died_after_they_were_kept_are_not_called_deleted(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(4)]
    hold = asyncio.Event()
    talk.script(Reply(texts=["Late"], hold=hold))
    before = len(talk.asked)
    asked = _asking(talk, ids)
    await until(lambda: len(talk.asked) == before + 4)
    write = persistence._write

    async def cut(tx: Tx, tenant_id: str, turns: list[Any], **more: Any) -> set[str]:
        found = await write(tx, tenant_id, turns, **more)
        if len(turns) > 1:
            raise asyncpg.ConnectionDoesNotExistError("closed in the middle of operation")
        return found

    monkeypatch.setattr(persistence, "_write", cut)
    sizes = _slow_first(monkeypatch, persistence, "_write")
    hold.set()
    answers = await asyncio.gather(*asked)
    assert max(sizes) > 1
    assert {answer.status_code for answer in answers} == {200, 503}
