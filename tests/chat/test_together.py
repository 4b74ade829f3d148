"""Turns of one agent that begin or end at the same time share their statements."""

import asyncio
from typing import Any

import asyncpg
import pytest

from app.domain.chat import keep
from app.parts import Parts
from db.session import ALL_TENANTS, Tx
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
    talk: Talker, parts: Parts
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
    async with parts.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM conversations WHERE id = $1", ids[2])
    hold.set()
    answers = await asyncio.gather(*asked)
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 200, 200]
    async with parts.db.tx(ALL_TENANTS, read_only=True) as tx:
        kept = await (await tx.raw()).fetch(
            "SELECT conversation_id, count(*) AS n FROM usage WHERE agent_id = $1 "
            "GROUP BY conversation_id",
            talk.agent_id,
        )
    # What the lost one used is counted all the same.
    assert {row["conversation_id"]: row["n"] for row in kept} == dict.fromkeys(ids, 2)


async def test_a_statement_that_fails_for_one_turn_is_repeated_for_the_others(
    talk: Talker, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, sizes = keep._write, []

    async def failing(tx: Tx, tenant_id: str, turns: list[Any]) -> set[str]:
        sizes.append(len(turns))
        if any("poison" in entry.get("content", "") for turn in turns for entry in turn.entries):
            raise asyncpg.ProgramLimitExceededError("made up")
        return await write(tx, tenant_id, turns)

    ids = [(await talk.say("Start"))["conversation_id"] for _ in range(6)]
    monkeypatch.setattr(keep, "_write", failing)
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
    assert not parts.batches._lanes
