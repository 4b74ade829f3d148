"""GET /api/v1/agents/:id/logs: filters, pages and access."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.agents.llm import prices
from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import conversation_path, list_messages
from tests.conversations.chat.database import execute
from tests.conversations.chat.log_helpers import (
    ENTRY_KEYS,
    get_stats,
    list_log_entries,
    script_delegation,
    set_log_settings,
)
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import Client, World
from workers.sweep import clean_up


async def test_a_turn_is_logged_newest_first(talk: Talker) -> None:
    helper = await script_delegation(talk)
    reply = await talk.say("When?")
    entries = await list_log_entries(talk)
    assert [(entry["type"], entry["role"]) for entry in entries] == [
        ("token_usage", None),
        ("token_usage", None),
        ("message", "assistant"),
        ("tool_call", "tool"),
        ("message", "user"),
    ]
    for entry in entries:
        assert set(entry) == ENTRY_KEYS
        assert entry["conversation_id"] == reply["conversation_id"]
        assert entry["created_at"].endswith("Z")
    *usage, answer, call, question = entries
    assert (question["content"], answer["content"]) == ("When?", "It opens at 9.")
    assert answer["id"] == reply["message"]["id"]
    assert {key: call["data"][key] for key in reply["tool_calls"][0]} == reply["tool_calls"][0]
    by_model = {entry["data"]["model"]: entry["data"] for entry in usage}
    own = by_model[f"scripted/{talk.model}"]
    assert (own["prompt_tokens"], own["completion_tokens"]) == (12, 3)
    other = by_model[f"scripted/{helper.model}"]
    assert (other["prompt_tokens"], other["completion_tokens"]) == (100, 10)
    assert own["message_id"] == other["message_id"] == reply["message"]["id"]


async def test_an_agent_without_turns_has_an_empty_log(talk: Talker) -> None:
    answer = (await talk.client.get(f"{talk.path}/logs")).json()
    assert answer == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_the_log_is_filtered_by_type(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for kind, count in (("message", 2), ("tool_call", 1), ("token_usage", 2), ("training", 0)):
        with subtests.test(kind=kind, count=count):
            talk = await talker(world, models)
            await script_delegation(talk)
            await talk.say("When?")
            entries = await list_log_entries(talk, type=kind)
            assert [entry["type"] for entry in entries] == [kind] * count


async def test_the_log_is_filtered_by_conversation(talk: Talker) -> None:
    first, second = await talk.say("One"), await talk.say("Two")
    for reply in (first, second):
        entries = await list_log_entries(talk, conversation_id=reply["conversation_id"])
        assert len(entries) == 3
        assert {entry["conversation_id"] for entry in entries} == {reply["conversation_id"]}
    assert await list_log_entries(talk, conversation_id="cnv_none") == []
    both = await list_log_entries(talk, conversation_id=first["conversation_id"], type="message")
    assert [entry["content"] for entry in both] == ["Hello there", "One"]


async def test_the_log_is_filtered_by_time(talk: Talker, services: Services) -> None:
    for days, word in ((3, "old"), (2, "middle"), (1, "new")):
        reply = await talk.say(word)
        await execute(
            services,
            "UPDATE conversation_entries SET created_at = $2 WHERE conversation_id = $1",
            reply["conversation_id"],
            datetime(2026, 1, 10, 12, tzinfo=UTC) - timedelta(days=days),
        )

    async def list_questions(**params: str) -> list[str]:
        entries = await list_log_entries(talk, type="message", **params)
        return [entry["content"] for entry in entries if entry["role"] == "user"]

    assert await list_questions() == ["new", "middle", "old"]
    assert await list_questions(**{"from": "2026-01-08T12:00:00Z"}) == ["new", "middle"]
    assert await list_questions(**{"from": "2026-01-08T12:00:00.000001Z"}) == ["new"]
    assert await list_questions(to="2026-01-08T12:00:00Z") == ["middle", "old"]
    assert await list_questions(to="2026-01-08T11:59:59Z") == ["old"]
    bounds = {"from": "2026-01-08", "to": "2026-01-09"}
    assert await list_questions(**bounds) == ["middle"]
    # The time zone counts.
    assert await list_questions(to="2026-01-08T12:00:00+02:00") == ["old"]
    assert await list_questions(**{"from": "2026-01-09", "to": "2026-01-08"}) == []


async def test_pages_of_the_log_follow_each_other(talk: Talker) -> None:
    for word in ("One", "Two", "Three"):
        await talk.say(word)
    all_ids = [entry["id"] for entry in await list_log_entries(talk)]
    assert len(set(all_ids)) == 9
    ids = []
    for page, size in ((1, 4), (2, 4), (3, 1), (4, 0)):
        params: dict[str, Any] = {"page": page, "per_page": 4}
        answer = (await talk.client.get(f"{talk.path}/logs", params=params)).json()
        assert len(answer["data"]) == size
        assert answer["pagination"] == {"page": page, "per_page": 4, "total": 9, "total_pages": 3}
        ids += [entry["id"] for entry in answer["data"]]
    assert ids == all_ids


_INVALID_PARAMETERS: list[tuple[dict[str, Any], str]] = [
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
]


async def test_a_wrong_parameter_of_the_log_is_named(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for params, field in _INVALID_PARAMETERS:
        with subtests.test(params=params, field=field):
            answer = await talk.client.get(f"{talk.path}/logs", params=params)
            assert list(refused(answer, 422, "validation_error")["details"]) == [field]


async def test_the_log_needs_the_permission_to_read_conversations(
    models: ModelServer, world: World, subtests: pytest.Subtests
) -> None:
    for role in ("agent_user", "viewer"):
        with subtests.test(role=role):
            talk = await talker(world, models)
            caller = await world.user(role, talk.client.tenant_id)
            error = refused(await caller.get(f"{talk.path}/logs"), 403, "forbidden")
            assert error["details"] == {"required": "conversations:read", "your_role": role}


async def test_developers_and_super_admin_read_the_log(
    talk: Talker, world: World, super_admin: Client
) -> None:
    await talk.say("Hi")
    developer = await world.user("agent_developer", talk.client.tenant_id)
    for caller in (developer, super_admin):
        assert len((await caller.get(f"{talk.path}/logs")).json()["data"]) == 3


async def test_the_log_and_statistics_of_a_foreign_or_unknown_agent_are_not_found(
    talk: Talker, admin: Client, anonymous: Client
) -> None:
    await talk.say("Hi")
    for tail in ("logs", "stats"):
        refused(await admin.get(f"{talk.path}/{tail}"), 404, "agent_not_found")
        refused(await admin.get(f"/api/v1/agents/agt_none/{tail}"), 404, "agent_not_found")
        refused(await anonymous.get(f"{talk.path}/{tail}"), 401, "unauthorized")


async def test_the_log_has_only_the_agents_own_entries(talk: Talker) -> None:
    other = await talk.agent()
    await talk.say("Mine")
    await other.say("Theirs")
    assert "Theirs" not in str(await list_log_entries(talk))
    assert "Mine" not in str(await list_log_entries(other))


async def test_a_disabled_entry_type_is_missing_only_from_the_log(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for setting, kind in (
        ("log_messages", "message"),
        ("log_tool_calls", "tool_call"),
        ("log_token_usage", "token_usage"),
    ):
        with subtests.test(setting=setting, kind=kind):
            talk = await talker(world, models)
            await set_log_settings(talk, **{setting: False})
            await script_delegation(talk)
            reply = await talk.say("When?")
            kinds = {entry["type"] for entry in await list_log_entries(talk)}
            assert kinds == {"message", "tool_call", "token_usage"} - {kind}
            assert await list_log_entries(talk, type=kind) == []
            # The conversation and the statistics are complete.
            messages = await list_messages(talk, reply["conversation_id"])
            assert [item["content"] for item in messages] == ["When?", "It opens at 9."]
            assert len(messages[1]["tool_calls"]) == 1
            assert (await get_stats(talk))["total_tokens_used"] == 125


async def test_settings_apply_to_the_question_of_an_asynchronous_chat(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False)
    answer = await talk.client.post(f"{talk.path}/chat/async", {"message": "My secret"})
    assert answer.status_code == 202
    assert await list_log_entries(talk) == []


async def test_the_clean_up_deletes_expired_conversations(talk: Talker, services: Services) -> None:
    await set_log_settings(talk, retention_days=10)
    old, young = await talk.say("Old"), await talk.say("Young")
    for reply, days in ((old, 11), (young, 9)):
        await execute(
            services,
            "UPDATE conversation_entries SET created_at = now() - $2 * interval '1 day'"
            " WHERE conversation_id = $1",
            reply["conversation_id"],
            days,
        )
        await execute(
            services,
            "UPDATE conversations SET last_message_at = now() - $2 * interval '1 day'"
            " WHERE id = $1",
            reply["conversation_id"],
            days,
        )
    await clean_up(services)
    assert {entry["conversation_id"] for entry in await list_log_entries(talk)} == {
        young["conversation_id"]
    }
    answer = await talk.client.get(conversation_path(old["conversation_id"]))
    refused(answer, 404, "conversation_not_found")
    # Usage is not deleted.
    assert (await get_stats(talk))["total_messages"] == 4


async def test_the_cost_of_a_turn_is_logged(talk: Talker) -> None:
    agent = await talk.agent(primary_model="scripted/gpt-4o")
    agent.models.script("gpt-4o", Reply(usage=(1000, 100)))
    await agent.say("Hi")
    [entry] = await list_log_entries(agent, type="token_usage")
    price = prices.find(await prices.table(), "gpt-4o")
    assert price is not None
    expected = 1000 * price.input_cost_per_token + 100 * price.output_cost_per_token
    assert entry["data"]["cost_usd"] == pytest.approx(expected)
    assert expected > 0
    assert entry["data"]["response_time_ms"] >= 0


async def test_a_model_of_unknown_price_costs_nothing(talk: Talker) -> None:
    await talk.say("Hi")
    [entry] = await list_log_entries(talk, type="token_usage")
    assert entry["data"]["cost_usd"] == 0
