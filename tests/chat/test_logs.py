"""An agent's log."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.models import prices
from app.services import Services
from tests.asking import refused
from tests.chat.log_helpers import get_stats, run_sql, talk_with_sub_agent
from tests.model_server import Reply
from tests.talk import Talker
from tests.world import Client, World
from workers.sweep import clean_up


async def list_log(talk: Talker, **params: Any) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"{talk.path}/logs", params={"per_page": 100, **params})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def test_a_turn_is_logged_newest_first(talk: Talker) -> None:
    helper = await talk_with_sub_agent(talk)
    reply = await talk.say("When?")
    entries = await list_log(talk)
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
    await talk_with_sub_agent(talk)
    await talk.say("When?")
    entries = await list_log(talk, type=kind)
    assert [entry["type"] for entry in entries] == [kind] * count


async def test_the_log_is_narrowed_to_a_conversation(talk: Talker) -> None:
    first, second = await talk.say("One"), await talk.say("Two")
    for reply in (first, second):
        entries = await list_log(talk, conversation_id=reply["conversation_id"])
        assert len(entries) == 3
        assert {entry["conversation_id"] for entry in entries} == {reply["conversation_id"]}
    assert await list_log(talk, conversation_id="cnv_none") == []
    both = await list_log(talk, conversation_id=first["conversation_id"], type="message")
    assert [entry["content"] for entry in both] == ["Hello there", "One"]


async def test_the_log_is_narrowed_to_a_time(talk: Talker, services: Services) -> None:
    for days, word in ((3, "old"), (2, "middle"), (1, "new")):
        reply = await talk.say(word)
        await run_sql(
            services,
            "UPDATE conversation_entries SET created_at = $2 WHERE conversation_id = $1",
            reply["conversation_id"],
            datetime(2026, 1, 10, 12, tzinfo=UTC) - timedelta(days=days),
        )

    async def words(**params: str) -> list[str]:
        found = await list_log(talk, type="message", **params)
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
    everything = [entry["id"] for entry in await list_log(talk)]
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
    assert "Theirs" not in str(await list_log(talk))
    assert "Mine" not in str(await list_log(other))


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
    await talk_with_sub_agent(talk)
    reply = await talk.say("When?")
    kinds = {entry["type"] for entry in await list_log(talk)}
    assert kinds == {"message", "tool_call", "token_usage"} - {kind}
    assert await list_log(talk, type=kind) == []
    # The conversation is whole, and so are the figures.
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    kept = (await talk.client.get(path)).json()["data"]
    assert [item["content"] for item in kept] == ["When?", "It opens at 9."]
    assert len(kept[1]["tool_calls"]) == 1
    assert (await get_stats(talk))["total_tokens_used"] == 125


async def test_a_changed_setting_holds_for_what_is_said_from_then_on(talk: Talker) -> None:
    await talk.say("Before")
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    await talk.say("Meanwhile")
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": True})
    await talk.say("After")
    entries = await list_log(talk, type="message")
    said = [entry["content"] for entry in entries if entry["role"] == "user"]
    assert said == ["After", "Before"]


async def test_the_question_of_an_asynchronous_chat_obeys_the_settings(talk: Talker) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "My secret"})
    assert answer.status_code == 202
    assert await list_log(talk) == []


async def test_what_is_older_than_its_agent_keeps_is_forgotten(
    talk: Talker, services: Services
) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"retention_days": 10})
    old, young = await talk.say("Old"), await talk.say("Young")
    for reply, days in ((old, 11), (young, 9)):
        await run_sql(
            services,
            "UPDATE conversation_entries SET created_at = now() - $2 * interval '1 day'"
            " WHERE conversation_id = $1",
            reply["conversation_id"],
            days,
        )
        await run_sql(
            services,
            "UPDATE conversations SET last_message_at = now() - $2 * interval '1 day'"
            " WHERE id = $1",
            reply["conversation_id"],
            days,
        )
    await clean_up(services)
    assert {entry["conversation_id"] for entry in await list_log(talk)} == {
        young["conversation_id"]
    }
    gone = await talk.client.get(f"/api/v1/conversations/{old['conversation_id']}")
    refused(gone, 404, "conversation_not_found")
    # What was used is still known.
    assert (await get_stats(talk))["total_messages"] == 4


async def test_what_a_turn_cost_is_logged(talk: Talker) -> None:
    known = await talk.agent(primary_model="scripted/gpt-4o")
    known.models.script("gpt-4o", Reply(usage=(1000, 100)))
    await known.say("Hi")
    [entry] = await list_log(known, type="token_usage")
    price = prices.find(await prices.table(), "gpt-4o")
    assert price is not None
    expected = 1000 * price.input_cost_per_token + 100 * price.output_cost_per_token
    assert entry["data"]["cost_usd"] == pytest.approx(expected)
    assert expected > 0
    assert entry["data"]["response_time_ms"] >= 0


async def test_a_model_of_unknown_price_costs_nothing(talk: Talker) -> None:
    await talk.say("Hi")
    [entry] = await list_log(talk, type="token_usage")
    assert entry["data"]["cost_usd"] == 0
