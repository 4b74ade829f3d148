"""An agent's log and its figures."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.models import prices
from app.domain.usage import service as usage
from app.kit import clock
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.model_server import Reply
from tests.talk import Talker
from tests.world import Client, World
from workers.sweep import clean_up

PERIODS = ("24h", "7d", "30d", "all_time")


async def _sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def _row(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(sql, *args)


async def _log(talk: Talker, **params: Any) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"{talk.path}/logs", params={"per_page": 100, **params})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _stats(talk: Talker, period: str = "all_time") -> dict[str, Any]:
    answer = await talk.client.get(f"{talk.path}/stats", params={"period": period})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _with_helper(talk: Talker) -> Talker:
    """The next turn hands a task over."""
    helper = await talk.with_helper()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(
        Reply(texts=[], calls=[call], usage=(5, 1)),
        Reply(texts=["It opens at 9."], usage=(7, 2)),
    )
    return helper


# The log


async def test_a_turn_is_logged_newest_first(talk: Talker) -> None:
    helper = await _with_helper(talk)
    reply = await talk.say("When?")
    entries = await _log(talk)
    assert [(entry["type"], entry["role"]) for entry in entries] == [
        ("token_usage", None),
        ("token_usage", None),
        ("message", "assistant"),
        ("tool_call", "tool"),
        ("message", "user"),
    ]
    for entry in entries:
        assert set(entry) == {
            "id",
            "conversation_id",
            "type",
            "role",
            "content",
            "data",
            "created_at",
        }
        assert entry["conversation_id"] == reply["conversation_id"]
        assert entry["created_at"].endswith("Z")
    *used, answer, call, question = entries
    assert (question["content"], answer["content"]) == ("When?", "It opens at 9.")
    assert answer["id"] == reply["message"]["id"]
    assert {key: call["data"][key] for key in reply["tool_calls"][0]} == reply["tool_calls"][0]
    by_model = {entry["data"]["model"]: entry["data"] for entry in used}
    own = by_model[f"scripted/{talk.model}"]
    assert (own["prompt_tokens"], own["completion_tokens"]) == (12, 3)
    other = by_model[f"scripted/{helper.model}"]
    assert (other["prompt_tokens"], other["completion_tokens"]) == (100, 10)
    assert own["message_id"] == other["message_id"] == reply["message"]["id"]


async def test_an_agent_that_said_nothing_has_an_empty_log(talk: Talker) -> None:
    answer = (await talk.client.get(f"{talk.path}/logs")).json()
    assert answer == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


@pytest.mark.parametrize(
    ("kind", "count"), [("message", 2), ("tool_call", 1), ("token_usage", 2), ("training", 0)]
)
async def test_the_log_is_narrowed_to_a_type(talk: Talker, kind: str, count: int) -> None:
    await _with_helper(talk)
    await talk.say("When?")
    entries = await _log(talk, type=kind)
    assert [entry["type"] for entry in entries] == [kind] * count


async def test_the_log_is_narrowed_to_a_conversation(talk: Talker) -> None:
    first, second = await talk.say("One"), await talk.say("Two")
    for reply in (first, second):
        entries = await _log(talk, conversation_id=reply["conversation_id"])
        assert len(entries) == 3
        assert {entry["conversation_id"] for entry in entries} == {reply["conversation_id"]}
    assert await _log(talk, conversation_id="cnv_none") == []
    both = await _log(talk, conversation_id=first["conversation_id"], type="message")
    assert [entry["content"] for entry in both] == ["Hello there", "One"]


async def test_the_log_is_narrowed_to_a_time(talk: Talker, services: Services) -> None:
    for days, word in ((3, "old"), (2, "middle"), (1, "new")):
        reply = await talk.say(word)
        await _sql(
            services,
            "UPDATE conversation_entries SET created_at = $2 WHERE conversation_id = $1",
            reply["conversation_id"],
            datetime(2026, 1, 10, 12, tzinfo=UTC) - timedelta(days=days),
        )

    async def words(**params: str) -> list[str]:
        found = await _log(talk, type="message", **params)
        return [entry["content"] for entry in found if entry["role"] == "user"]

    assert await words() == ["new", "middle", "old"]
    assert await words(**{"from": "2026-01-08T12:00:00Z"}) == ["new", "middle"]
    assert await words(**{"from": "2026-01-08T12:00:00.000001Z"}) == ["new"]
    assert await words(to="2026-01-08T12:00:00Z") == ["middle", "old"]
    assert await words(to="2026-01-08T11:59:59Z") == ["old"]
    bounds = {"from": "2026-01-08", "to": "2026-01-09"}
    assert await words(**bounds) == ["middle"]
    # Another zone means another moment.
    assert await words(to="2026-01-08T12:00:00+02:00") == ["old"]
    assert await words(**{"from": "2026-01-09", "to": "2026-01-08"}) == []


async def test_pages_of_the_log_follow_each_other(talk: Talker) -> None:
    for word in ("One", "Two", "Three"):
        await talk.say(word)
    everything = [entry["id"] for entry in await _log(talk)]
    assert len(set(everything)) == 9
    seen = []
    for page, size in ((1, 4), (2, 4), (3, 1), (4, 0)):
        params: dict[str, Any] = {"page": page, "per_page": 4}
        answer = (await talk.client.get(f"{talk.path}/logs", params=params)).json()
        assert len(answer["data"]) == size
        assert answer["pagination"] == {"page": page, "per_page": 4, "total": 9, "total_pages": 3}
        seen += [entry["id"] for entry in answer["data"]]
    assert seen == everything


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"type": "secret"}, "type"),
        ({"type": ""}, "type"),
        ({"conversation_id": "x" * 65}, "conversation_id"),
        ({"from": "yesterday"}, "from"),
        ({"from": ""}, "from"),
        ({"to": "2026-13-01"}, "to"),
        ({"to": "0001-01-01T00:00:00+14:00"}, "to"),
        ({"page": 0}, "page"),
        ({"page": -1}, "page"),
        ({"per_page": 101}, "per_page"),
        ({"per_page": 0}, "per_page"),
    ],
)
async def test_a_wrong_parameter_of_the_log_is_named(
    talk: Talker, params: dict[str, Any], field: str
) -> None:
    answer = await talk.client.get(f"{talk.path}/logs", params=params)
    assert list(refused(answer, 422, "validation_error")["details"]) == [field]


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_the_log_is_for_those_who_may_read_conversations(
    talk: Talker, world: World, role: str
) -> None:
    who = await world.user(role, talk.client.tenant_id)
    error = refused(await who.get(f"{talk.path}/logs"), 403, "forbidden")
    assert error["details"] == {"required": "conversations:read", "your_role": role}


async def test_developers_and_super_admin_read_the_log(
    talk: Talker, world: World, super_admin: Client
) -> None:
    await talk.say("Hi")
    developer = await world.user("agent_developer", talk.client.tenant_id)
    for who in (developer, super_admin):
        assert len((await who.get(f"{talk.path}/logs")).json()["data"]) == 3


async def test_the_log_and_figures_of_a_foreign_or_unknown_agent_are_not_found(
    talk: Talker, admin: Client, anonymous: Client
) -> None:
    await talk.say("Hi")
    for tail in ("logs", "stats"):
        refused(await admin.get(f"{talk.path}/{tail}"), 404, "agent_not_found")
        refused(await admin.get(f"/api/v1/agents/agt_none/{tail}"), 404, "agent_not_found")
        refused(await anonymous.get(f"{talk.path}/{tail}"), 401, "unauthorized")


async def test_the_log_holds_this_agents_entries_only(talk: Talker) -> None:
    other = await talk.agent()
    await talk.say("Mine")
    await other.say("Theirs")
    assert "Theirs" not in str(await _log(talk))
    assert "Mine" not in str(await _log(other))


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("log_messages", "message"),
        ("log_tool_calls", "tool_call"),
        ("log_token_usage", "token_usage"),
    ],
)
async def test_what_may_not_be_logged_is_not_in_the_log(
    talk: Talker, setting: str, kind: str
) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {setting: False})
    await _with_helper(talk)
    reply = await talk.say("When?")
    kinds = {entry["type"] for entry in await _log(talk)}
    assert kinds == {"message", "tool_call", "token_usage"} - {kind}
    assert await _log(talk, type=kind) == []
    # The conversation is whole, and so are the figures.
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    kept = (await talk.client.get(path)).json()["data"]
    assert [item["content"] for item in kept] == ["When?", "It opens at 9."]
    assert len(kept[1]["tool_calls"]) == 1
    assert (await _stats(talk))["total_tokens_used"] == 125


async def test_a_changed_setting_holds_for_what_is_said_from_then_on(talk: Talker) -> None:
    await talk.say("Before")
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    await talk.say("Meanwhile")
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": True})
    await talk.say("After")
    entries = await _log(talk, type="message")
    said = [entry["content"] for entry in entries if entry["role"] == "user"]
    assert said == ["After", "Before"]


async def test_the_question_of_an_asynchronous_chat_obeys_the_settings(talk: Talker) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "My secret"})
    assert answer.status_code == 202
    assert await _log(talk) == []


async def test_what_is_older_than_its_agent_keeps_is_forgotten(
    talk: Talker, services: Services
) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"retention_days": 10})
    old, young = await talk.say("Old"), await talk.say("Young")
    for reply, days in ((old, 11), (young, 9)):
        await _sql(
            services,
            "UPDATE conversation_entries SET created_at = now() - $2 * interval '1 day'"
            " WHERE conversation_id = $1",
            reply["conversation_id"],
            days,
        )
        await _sql(
            services,
            "UPDATE conversations SET last_message_at = now() - $2 * interval '1 day'"
            " WHERE id = $1",
            reply["conversation_id"],
            days,
        )
    await clean_up(services)
    assert {entry["conversation_id"] for entry in await _log(talk)} == {young["conversation_id"]}
    gone = await talk.client.get(f"/api/v1/conversations/{old['conversation_id']}")
    refused(gone, 404, "conversation_not_found")
    # What was used is still known.
    assert (await _stats(talk))["total_messages"] == 4


async def test_what_a_turn_cost_is_logged(talk: Talker) -> None:
    known = await talk.agent(primary_model="scripted/gpt-4o")
    known.models.script("gpt-4o", Reply(usage=(1000, 100)))
    await known.say("Hi")
    [entry] = await _log(known, type="token_usage")
    price = prices.find(await prices.table(), "gpt-4o")
    assert price is not None
    expected = 1000 * price.input_cost_per_token + 100 * price.output_cost_per_token
    assert entry["data"]["cost_usd"] == pytest.approx(expected)
    assert expected > 0
    assert entry["data"]["response_time_ms"] >= 0


async def test_a_model_of_unknown_price_costs_nothing(talk: Talker) -> None:
    await talk.say("Hi")
    [entry] = await _log(talk, type="token_usage")
    assert entry["data"]["cost_usd"] == 0


# Figures


async def test_the_figures_of_a_new_agent_are_zero(talk: Talker) -> None:
    assert await _stats(talk) == {
        "agent_id": talk.agent_id,
        "total_conversations": 0,
        "total_messages": 0,
        "total_tokens_used": 0,
        "avg_response_time_ms": 0.0,
        "period": "all_time",
    }


async def test_the_figures_add_up(talk: Talker, services: Services) -> None:
    talk.script(Reply(usage=(10, 1)), Reply(usage=(20, 2)), Reply(usage=(30, 3)))
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    await talk.say("Three")
    for milliseconds, tokens in ((100, 10), (200, 20), (450, 30)):
        await _sql(
            services,
            "UPDATE usage SET response_time_ms = $3 WHERE agent_id = $1 AND prompt_tokens = $2",
            talk.agent_id,
            tokens,
            milliseconds,
        )
    assert await _stats(talk) == {
        "agent_id": talk.agent_id,
        "total_conversations": 2,
        "total_messages": 6,
        "total_tokens_used": 66,
        "avg_response_time_ms": 250.0,
        "period": "all_time",
    }


async def test_the_response_time_is_how_long_the_reply_took(talk: Talker) -> None:
    talk.script(Reply(first_delay=0.3))
    await talk.say("Hi")
    assert 300 <= (await _stats(talk))["avg_response_time_ms"] < 3000


async def test_a_turn_with_helpers_is_one_turn_with_all_its_tokens(talk: Talker) -> None:
    helper = await _with_helper(talk)
    await talk.say("When?")
    stats = await _stats(talk)
    assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)
    assert stats["total_tokens_used"] == 125
    assert (await _stats(helper))["total_tokens_used"] == 0


async def test_without_a_period_the_figures_are_of_all_time(talk: Talker) -> None:
    await talk.say("Hi")
    answer = await talk.client.get(f"{talk.path}/stats")
    assert answer.json() == await _stats(talk, "all_time")


@pytest.mark.parametrize("period", ["1h", "", "ALL_TIME", "365d"])
async def test_an_unknown_period_is_refused(talk: Talker, period: str) -> None:
    answer = await talk.client.get(f"{talk.path}/stats", params={"period": period})
    assert list(refused(answer, 422, "validation_error")["details"]) == ["period"]


@pytest.mark.parametrize("role", ["viewer", "agent_user", "agent_developer"])
async def test_everybody_who_sees_the_agent_sees_its_figures(
    talk: Talker, world: World, role: str
) -> None:
    await talk.say("Hi")
    who = await world.user(role, talk.client.tenant_id)
    assert (await who.get(f"{talk.path}/stats")).json()["total_messages"] == 2


async def test_super_admin_sees_any_agents_figures(talk: Talker, super_admin: Client) -> None:
    await talk.say("Hi")
    assert (await super_admin.get(f"{talk.path}/stats")).json() == await _stats(talk)


async def _spread(talk: Talker, services: Services) -> None:
    """A turn today, in this week, in this month and long ago: 1, 10, 100 and 1000 tokens."""
    for tokens, days in ((1, 0.5), (10, 5), (100, 20), (1000, 60)):
        talk.script(Reply(usage=(tokens, 0)))
        await talk.say("Hi")
        await _sql(
            services,
            "UPDATE usage SET created_at = now() - $3 * interval '1 day'"
            " WHERE agent_id = $1 AND prompt_tokens = $2",
            talk.agent_id,
            tokens,
            days,
        )


async def test_a_period_reaches_back_as_far_as_it_says(talk: Talker, services: Services) -> None:
    await _spread(talk, services)
    tokens = {period: (await _stats(talk, period))["total_tokens_used"] for period in PERIODS}
    assert tokens == {"24h": 1, "7d": 11, "30d": 111, "all_time": 1111}
    assert (await _stats(talk, "7d"))["period"] == "7d"


async def test_the_figures_are_the_same_before_and_after_they_are_added_up(
    talk: Talker, services: Services
) -> None:
    await _spread(talk, services)
    before = [await _stats(talk, period) for period in PERIODS]
    await usage.roll_up(services)
    assert [await _stats(talk, period) for period in PERIODS] == before
    row = await _row(
        services,
        "SELECT count(*) AS n FROM usage WHERE agent_id = $1 AND NOT rolled",
        talk.agent_id,
    )
    assert row["n"] == 0
    await usage.roll_up(services)
    assert [await _stats(talk, period) for period in PERIODS] == before
    # What comes afterwards is added to it.
    talk.script(Reply(usage=(5, 5)))
    await talk.say("More")
    assert (await _stats(talk))["total_tokens_used"] == 1121
    await usage.roll_up(services)
    assert (await _stats(talk))["total_tokens_used"] == 1121


@pytest.mark.parametrize(("period", "days"), [("24h", 1), ("7d", 7), ("30d", 30)])
async def test_what_was_just_before_a_period_does_not_enter_it_by_being_added_up(
    talk: Talker, services: Services, period: str, days: int
) -> None:
    await talk.say("Hi")
    begins = clock.now() - timedelta(days=days)
    # In the same hour as the period's beginning, but before it.
    just_before = begins.replace(minute=0, second=0, microsecond=0)
    assert just_before < begins
    await _sql(
        services, "UPDATE usage SET created_at = $2 WHERE agent_id = $1", talk.agent_id, just_before
    )
    assert (await _stats(talk, period))["total_messages"] == 0
    await usage.roll_up(services)
    assert (await _stats(talk, period))["total_messages"] == 0


async def test_two_workers_who_add_up_at_once_count_everything_once(
    talk: Talker, services: Services
) -> None:
    await asyncio.gather(*(talk.say("Hi") for _ in range(20)))
    before = await _stats(talk)
    await asyncio.gather(*(usage.roll_up(services) for _ in range(8)))
    await usage.roll_up(services)
    assert await _stats(talk) == before
    hours = await _row(
        services,
        "SELECT sum(turns)::int AS turns, sum(messages)::int AS messages,"
        " sum(conversations)::int AS conversations,"
        " sum(prompt_tokens + completion_tokens)::int AS tokens"
        " FROM usage_hours WHERE agent_id = $1",
        talk.agent_id,
    )
    assert tuple(hours) == (20, 40, 20, 360)


async def test_figures_asked_for_while_they_are_added_up_never_waver(
    talk: Talker, services: Services
) -> None:
    await asyncio.gather(*(talk.say("Hi") for _ in range(10)))
    seen: set[int] = set()

    async def watch() -> None:
        while True:
            seen.add((await _stats(talk))["total_messages"])

    for _ in range(10):
        await _sql(services, "DELETE FROM usage_hours WHERE agent_id = $1", talk.agent_id)
        await _sql(services, "UPDATE usage SET rolled = false WHERE agent_id = $1", talk.agent_id)
        watching = asyncio.create_task(watch())
        await usage.roll_up(services)
        seen.add((await _stats(talk))["total_messages"])
        watching.cancel()
        await asyncio.wait([watching])
    assert seen == {20}


async def test_the_figures_survive_the_conversation(talk: Talker, services: Services) -> None:
    replies = [await talk.say("Hi"), await talk.say("Ho")]
    before = await _stats(talk)
    for number, reply in enumerate(replies):
        path = f"/api/v1/conversations/{reply['conversation_id']}"
        assert (await talk.client.delete(path)).status_code == 204
        if number == 0:
            await usage.roll_up(services)
    assert await _stats(talk) == before
    await usage.roll_up(services)
    assert await _stats(talk) == before


async def test_a_failed_turn_is_not_in_the_figures(talk: Talker) -> None:
    talk.script(Reply(status=400), Reply())
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"})
    assert answer.status_code == 502
    assert (await _stats(talk))["total_messages"] == 0
    await talk.say("Hi")
    stats = await _stats(talk)
    assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)


def test_workers_add_up_by_themselves() -> None:
    assert usage.roll_up in [chore.run for chore in AREAS.chores]
