"""GET /api/v1/agents/:id/stats, and the roll-up of usage."""

import asyncio
from datetime import timedelta

import pytest

from app.areas import AREAS
from app.domain.agents.usage import service as usage
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.agents.usage.rows import get_usage
from tests.assertions import refused
from tests.conversations.chat.database import execute, fetch_row, fetch_value
from tests.conversations.chat.log_helpers import get_stats, script_delegation
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.world import Client, World

PERIODS = ("24h", "7d", "30d", "all_time")


async def test_the_statistics_of_a_new_agent_are_zero(talk: Talker) -> None:
    assert await get_stats(talk) == {
        "agent_id": talk.agent_id,
        "total_conversations": 0,
        "total_messages": 0,
        "total_tokens_used": 0,
        "avg_response_time_ms": 0.0,
        "failed_turns": 0,
        "ratings_up": 0,
        "ratings_down": 0,
        "conversations_by_source": {},
        "period": "all_time",
    }


async def test_statistics_sum_all_turns(talk: Talker, services: Services) -> None:
    talk.script(Reply(usage=(10, 1)), Reply(usage=(20, 2)), Reply(usage=(30, 3)))
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    await talk.say("Three")
    for milliseconds, tokens in ((100, 10), (200, 20), (450, 30)):
        await execute(
            services,
            "UPDATE usage SET response_time_ms = $3 WHERE agent_id = $1 AND prompt_tokens = $2",
            talk.agent_id,
            tokens,
            milliseconds,
        )
    assert await get_stats(talk) == {
        "agent_id": talk.agent_id,
        "total_conversations": 2,
        "total_messages": 6,
        "total_tokens_used": 66,
        "avg_response_time_ms": 250.0,
        "failed_turns": 0,
        "ratings_up": 0,
        "ratings_down": 0,
        "conversations_by_source": {"console": 2},
        "period": "all_time",
    }


async def test_tokens_of_an_agent_are_those_of_the_usage_report(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(usage=(10, 1)))
    await talk.say("One")
    call = usage.ModelCall("embedding", "openai/text-embedding-3-small", 100, 0, 0.1)
    await usage.add_call(services.db, talk.client.tenant_id, talk.agent_id, call)
    stats, report = await get_stats(talk), await get_usage(talk.client, agent_id=talk.agent_id)
    assert stats["total_tokens_used"] == report["by_agent"][0]["total_tokens"] == 111
    assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)
    tokens = {item["model"]: item["total_tokens"] for item in report["by_model"]}
    assert tokens.pop(call.model) == 100
    assert list(tokens.values()) == [11]


async def test_every_period_counts_the_turns_of_today(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    talk.script(Reply(usage=(10, 5)))
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    await talk.say("Three")
    for period in PERIODS:
        with subtests.test(period=period):
            stats = await get_stats(talk, period)
            assert stats.pop("avg_response_time_ms") > 0
            assert stats == {
                "agent_id": talk.agent_id,
                "total_conversations": 2,
                "total_messages": 6,
                "total_tokens_used": 45,
                "failed_turns": 0,
                "ratings_up": 0,
                "ratings_down": 0,
                "conversations_by_source": {"console": 2},
                "period": period,
            }


async def test_the_response_time_is_the_duration_of_the_turn(talk: Talker) -> None:
    talk.script(Reply(first_delay=0.3))
    await talk.say("Hi")
    assert 300 <= (await get_stats(talk))["avg_response_time_ms"] < 30_000


async def test_a_turn_with_sub_agents_is_one_turn_with_all_their_tokens(talk: Talker) -> None:
    helper = await script_delegation(talk)
    await talk.say("When?")
    stats = await get_stats(talk)
    assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)
    assert stats["total_tokens_used"] == 125
    assert (await get_stats(helper))["total_tokens_used"] == 0


async def test_the_default_period_is_all_time(talk: Talker) -> None:
    await talk.say("Hi")
    answer = await talk.client.get(f"{talk.path}/stats")
    assert answer.json() == await get_stats(talk, "all_time")


async def test_an_unknown_period_is_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    for period in ("1h", "1y", "", "ALL_TIME", "365d"):
        with subtests.test(period=period):
            answer = await talk.client.get(f"{talk.path}/stats", params={"period": period})
            assert list(refused(answer, 422, "validation_error")["details"]) == ["period"]


async def test_roles_that_read_usage_read_the_statistics_of_agents(
    talk: Talker, world: World
) -> None:
    await talk.say("Hi")
    for role, status in (("agent_developer", 200), ("agent_user", 403), ("viewer", 403)):
        caller = await world.user(role, talk.client.tenant_id)
        assert (await caller.get(f"{talk.path}/stats")).status_code == status


async def test_super_admin_reads_the_statistics_of_any_agent(
    talk: Talker, super_admin: Client
) -> None:
    await talk.say("Hi")
    assert (await super_admin.get(f"{talk.path}/stats")).json() == await get_stats(talk)


async def _spread_usage(talk: Talker, services: Services) -> None:
    """Stores a turn of today, this week, this month and earlier: 1, 10, 100 and 1000 tokens."""
    for tokens, days in ((1, 0.5), (10, 5), (100, 20), (1000, 60)):
        talk.script(Reply(usage=(tokens, 0)))
        await talk.say("Hi")
        await execute(
            services,
            "UPDATE usage SET created_at = now() - $3 * interval '1 day'"
            " WHERE agent_id = $1 AND prompt_tokens = $2",
            talk.agent_id,
            tokens,
            days,
        )


async def test_a_period_counts_only_its_own_time(talk: Talker, services: Services) -> None:
    await _spread_usage(talk, services)
    tokens = {period: (await get_stats(talk, period))["total_tokens_used"] for period in PERIODS}
    assert tokens == {"24h": 1, "7d": 11, "30d": 111, "all_time": 1111}
    assert (await get_stats(talk, "7d"))["period"] == "7d"


async def test_a_roll_up_does_not_change_the_statistics(talk: Talker, services: Services) -> None:
    await _spread_usage(talk, services)
    before = [await get_stats(talk, period) for period in PERIODS]
    await usage.roll_up(services)
    assert [await get_stats(talk, period) for period in PERIODS] == before
    pending = "SELECT count(*) FROM usage WHERE agent_id = $1 AND NOT rolled"
    assert await fetch_value(services, pending, talk.agent_id) == 0
    await usage.roll_up(services)
    assert [await get_stats(talk, period) for period in PERIODS] == before
    # Later turns are added.
    talk.script(Reply(usage=(5, 5)))
    await talk.say("More")
    assert (await get_stats(talk))["total_tokens_used"] == 1121
    await usage.roll_up(services)
    assert (await get_stats(talk))["total_tokens_used"] == 1121


async def test_a_roll_up_does_not_move_usage_into_a_period(
    talk: Talker, services: Services, subtests: pytest.Subtests
) -> None:
    for period, days in [("24h", 1), ("7d", 7), ("30d", 30)]:
        with subtests.test(period=period):
            other = await talk.agent()
            await other.say("Hi")
            start = clock.now() - timedelta(days=days)
            # In the same hour as the start of the period, but before it.
            just_before = start.replace(minute=0, second=0, microsecond=0)
            assert just_before < start
            await execute(
                services,
                "UPDATE usage SET created_at = $2 WHERE agent_id = $1",
                other.agent_id,
                just_before,
            )
            assert (await get_stats(other, period))["total_messages"] == 0
            await usage.roll_up(services)
            assert (await get_stats(other, period))["total_messages"] == 0


async def test_concurrent_roll_ups_count_every_turn_once(talk: Talker, services: Services) -> None:
    await asyncio.gather(*(talk.say("Hi") for _ in range(20)))
    before = await get_stats(talk)
    await asyncio.gather(*(usage.roll_up(services) for _ in range(8)))
    await usage.roll_up(services)
    assert await get_stats(talk) == before
    hours = await fetch_row(
        services,
        "SELECT sum(turns)::int AS turns, sum(messages)::int AS messages,"
        " sum(conversations)::int AS conversations,"
        " sum(prompt_tokens + completion_tokens)::int AS tokens"
        " FROM usage_hours WHERE agent_id = $1",
        talk.agent_id,
    )
    assert tuple(hours) == (20, 40, 20, 360)


async def test_statistics_do_not_change_during_a_roll_up(talk: Talker, services: Services) -> None:
    await asyncio.gather(*(talk.say("Hi") for _ in range(10)))
    totals: set[int] = set()

    async def watch() -> None:
        while True:
            totals.add((await get_stats(talk))["total_messages"])

    for _ in range(10):
        await execute(services, "DELETE FROM usage_hours WHERE agent_id = $1", talk.agent_id)
        await execute(
            services, "UPDATE usage SET rolled = false WHERE agent_id = $1", talk.agent_id
        )
        watcher = asyncio.create_task(watch())
        await usage.roll_up(services)
        totals.add((await get_stats(talk))["total_messages"])
        watcher.cancel()
        await asyncio.wait([watcher])
    assert totals == {20}


async def test_statistics_outlive_their_conversations(talk: Talker, services: Services) -> None:
    replies = [await talk.say("Hi"), await talk.say("Ho")]
    before = await get_stats(talk)
    for number, reply in enumerate(replies):
        path = f"/api/v1/conversations/{reply['conversation_id']}"
        assert (await talk.client.delete(path)).status_code == 204
        if number == 0:
            await usage.roll_up(services)
    # Where they began is known while they are stored.
    assert before.pop("conversations_by_source") == {"console": 2}
    after = {**before, "conversations_by_source": {}}
    assert await get_stats(talk) == after
    await usage.roll_up(services)
    assert await get_stats(talk) == after


async def test_failed_turns_are_counted_apart_in_every_period(
    talk: Talker, services: Services, subtests: pytest.Subtests
) -> None:
    talk.script(Reply(status=400), Reply())
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"})
    assert answer.status_code == 400
    await talk.say("Hi")
    for is_rolled in (False, True):
        if is_rolled:
            await usage.roll_up(services)
        for period in PERIODS:
            with subtests.test(period=period, is_rolled=is_rolled):
                stats = await get_stats(talk, period)
                assert (stats["failed_turns"], stats["total_messages"]) == (1, 4)


async def test_usage_of_a_tenant_that_was_deleted_does_not_stop_the_others(
    talk: Talker, services: Services
) -> None:
    """A turn that ends while its tenant is deleted leaves such a row."""
    await talk.say("Hi")
    orphan = """
    INSERT INTO usage (tenant_id, agent_id, conversation_id, message_id, source, model,
                       prompt_tokens, completion_tokens, cost_usd, turns, conversations, messages,
                       response_time_ms, correlation_id)
    VALUES ('ten_deleted', 'agt_deleted', 'cnv_1', $1, 'console', 'm', 1, 1, 0, 1, 1, 2, 5, 'cor_1')
    """
    message_id = new_id("msg")
    await execute(services, orphan, message_id)
    await usage.roll_up(services)
    pending = "SELECT count(*) FROM usage WHERE NOT rolled AND (agent_id = $1 OR message_id = $2)"
    assert await fetch_value(services, pending, talk.agent_id, message_id) == 0
    await execute(services, "DELETE FROM usage WHERE message_id = $1", message_id)


def test_the_roll_up_is_a_periodic_task() -> None:
    assert usage.roll_up in [task.run for task in AREAS.periodic_tasks]
