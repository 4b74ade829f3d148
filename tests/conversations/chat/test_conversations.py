"""Conversations and their messages: lists, and access to them."""

from datetime import datetime
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.agents.definition import api as agents
from app.domain.conversations.chat.errors import ConversationNotFound
from app.domain.conversations.chat.start_turn import Question, start_turn
from app.domain.conversations.chat.turn import Speaker
from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    conversation_path,
    get_conversation,
    list_conversations,
    list_ids,
    list_messages,
    start_conversation,
)
from tests.conversations.chat.database import execute
from tests.conversations.chat.delegation_scripts import CALL_KEYS
from tests.model_server import ModelServer, Reply
from tests.platform.events import query_plans
from tests.scripted_agents import Talker, talker
from tests.world import Client, World

CONVERSATION_KEYS = {
    "id",
    "agent_id",
    "user_id",
    "visitor",
    "source",
    "title",
    "status",
    "message_count",
    "created_at",
    "last_message_at",
    "ended_at",
}


async def test_a_conversation_has_every_field(talk: Talker) -> None:
    conversation_id = await start_conversation(talk, "  When does\n\nthe shop   open? ")
    page = await list_conversations(talk)
    assert page["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    [item] = page["data"]
    assert set(item) == CONVERSATION_KEYS
    assert item["id"] == conversation_id
    assert item["agent_id"] == talk.agent_id
    assert item["user_id"] == talk.client.user_id
    assert item["source"] == "console"
    assert item["title"] == "When does the shop open?"
    assert item["status"] == "active"
    assert item["message_count"] == 2
    assert item["ended_at"] is None
    assert datetime.fromisoformat(item["created_at"]) <= datetime.fromisoformat(
        item["last_message_at"]
    )
    assert await get_conversation(talk, conversation_id) == item


async def test_a_title_is_the_beginning_of_the_first_message(talk: Talker) -> None:
    conversation_id = await start_conversation(talk, "ä" * 200)
    await talk.say("Another", conversation_id=conversation_id)
    conversation = await get_conversation(talk, conversation_id)
    assert conversation["title"] == "ä" * 80
    assert conversation["message_count"] == 4


async def test_pages_follow_each_other_without_overlap(talk: Talker, services: Services) -> None:
    conversation_ids = [await start_conversation(talk, str(number)) for number in range(5)]
    # With equal times, conversations are sorted by id.
    await execute(
        services,
        "UPDATE conversations SET last_message_at = now(), created_at = now() WHERE agent_id = $1",
        talk.agent_id,
    )
    for sort in ("last_message_at", "-last_message_at", "created_at", "message_count"):
        pages = [await list_ids(talk, page=page, per_page=2, sort=sort) for page in (1, 2, 3, 4)]
        assert [len(page) for page in pages] == [2, 2, 1, 0]
        assert sorted(item for page in pages for item in page) == sorted(conversation_ids)
    page = await list_conversations(talk, page=2, per_page=2)
    assert page["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}


async def test_conversations_are_sorted_newest_first_by_default(talk: Talker) -> None:
    first, second, third = [
        await start_conversation(talk, word) for word in ("one", "two", "three")
    ]
    await talk.say("Again", conversation_id=first)
    assert await list_ids(talk) == [first, third, second]
    assert await list_ids(talk, sort="last_message_at") == [second, third, first]
    assert await list_ids(talk, sort="created_at") == [first, second, third]
    assert await list_ids(talk, sort="-created_at") == [third, second, first]
    assert (await list_ids(talk, sort="-message_count"))[0] == first
    assert (await list_ids(talk, sort="message_count"))[-1] == first


async def test_a_wrong_parameter_is_named(talk: Talker, subtests: pytest.Subtests) -> None:
    for params, field in (
        ({"sort": "title"}, "sort"),
        ({"sort": "-"}, "sort"),
        ({"sort": "--created_at"}, "sort"),
        ({"sort": "x" * 65}, "sort"),
        ({"status": "deleted"}, "status"),
        ({"search": "x" * 201}, "search"),
        ({"page": 0}, "page"),
        ({"page": "x"}, "page"),
        ({"per_page": 0}, "per_page"),
        ({"per_page": 101}, "per_page"),
    ):
        with subtests.test(params=params, field=field):
            answer = await talk.client.get(f"{talk.path}/conversations", params=params)
            assert list(refused(answer, 422, "validation_error")["details"]) == [field]


async def test_a_list_is_filtered_by_status(talk: Talker) -> None:
    ended, active = await start_conversation(talk), await start_conversation(talk)
    await talk.client.post(f"{conversation_path(ended)}/end")
    assert await list_ids(talk, status="ended") == [ended]
    assert await list_ids(talk, status="active") == [active]
    assert len(await list_ids(talk)) == 2


async def test_search_matches_titles_literally(talk: Talker, subtests: pytest.Subtests) -> None:
    titles = ["The shop", "50% off", "snake_case", "back\\slash", "über äpfel"]
    for title in titles:
        await start_conversation(talk, title)
    for search, expected in (
        ("SHOP", ["The shop"]),
        ("50%", ["50% off"]),
        ("%", ["50% off"]),
        ("_", ["snake_case"]),
        ("\\", ["back\\slash"]),
        ("Ä", ["über äpfel"]),
        ("nothing", []),
        ("", titles),
    ):
        with subtests.test(search=search, expected=expected):
            page = await list_conversations(talk, search=search, sort="created_at")
            assert [item["title"] for item in page["data"]] == expected
            assert page["pagination"]["total"] == len(expected)


async def test_a_list_has_only_the_agents_own_conversations(talk: Talker) -> None:
    other = await talk.agent()
    first_id, second_id = await start_conversation(talk), await start_conversation(other)
    assert await list_ids(talk) == [first_id]
    assert await list_ids(other) == [second_id]


async def test_conversations_of_an_unknown_or_foreign_agent_are_not_found(
    talk: Talker, admin: Client
) -> None:
    for path in (talk.path, "/api/v1/agents/agt_none"):
        refused(await admin.get(f"{path}/conversations"), 404, "agent_not_found")


async def test_users_see_their_own_conversations_and_readers_see_all(
    models: ModelServer, world: World, subtests: pytest.Subtests
) -> None:
    for role, visible in (
        ("agent_user", "own"),
        ("viewer", "none"),
        ("agent_developer", "all"),
        ("tenant_admin", "all"),
        ("super_admin", "all"),
    ):
        with subtests.test(role=role, visible=visible):
            talk = await talker(world, models)
            other_id = await start_conversation(talk)
            caller = await world.user(
                role, None if role == "super_admin" else talk.client.tenant_id
            )
            own = [] if role == "viewer" else [await start_conversation(talk, caller=caller)]
            expected = {"own": own, "none": [], "all": [*own, other_id]}[visible]
            assert await list_ids(talk, caller) == expected
            for path in (conversation_path(other_id), f"{conversation_path(other_id)}/messages"):
                answer = await caller.get(path)
                if visible == "all":
                    assert answer.status_code == 200
                else:
                    refused(answer, 404, "conversation_not_found")
            for conversation_id in own:
                assert (await caller.get(conversation_path(conversation_id))).status_code == 200
                assert (
                    await caller.get(f"{conversation_path(conversation_id)}/messages")
                ).status_code == 200


async def test_another_tenants_conversation_is_not_found(
    talk: Talker, admin: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    conversation_id = await start_conversation(talk)
    for method, tail in (("GET", ""), ("GET", "/messages"), ("POST", "/end"), ("DELETE", "")):
        with subtests.test(method=method, tail=tail):
            path, missing = conversation_path(conversation_id), conversation_path("cnv_none")
            refused(await admin(method, path + tail), 404, "conversation_not_found")
            refused(await admin(method, missing + tail), 404, "conversation_not_found")
            refused(await anonymous(method, path + tail), 401, "unauthorized")
            assert (await get_conversation(talk, conversation_id))["status"] == "active"


async def test_a_user_who_cannot_read_a_conversation_cannot_change_it(
    talk: Talker, world: World, subtests: pytest.Subtests
) -> None:
    path = conversation_path(conversation_id := await start_conversation(talk))
    for role in ("agent_user", "viewer"):
        for method, tail in (("POST", "/end"), ("DELETE", "")):
            with subtests.test(role=role, method=method, tail=tail):
                caller = await world.user(role, talk.client.tenant_id)
                refused(await caller(method, path + tail), 404, "conversation_not_found")
                assert (await get_conversation(talk, conversation_id))["status"] == "active"


async def test_roles_that_write_conversations_end_and_delete_those_of_others(
    models: ModelServer, world: World, subtests: pytest.Subtests
) -> None:
    for role in ("agent_developer", "tenant_admin", "super_admin"):
        with subtests.test(role=role):
            talk = await talker(world, models)
            conversation_id = await start_conversation(talk)
            caller = await world.user(
                role, None if role == "super_admin" else talk.client.tenant_id
            )
            assert (await caller.post(f"{conversation_path(conversation_id)}/end")).json()[
                "status"
            ] == "ended"
            assert (await caller.delete(conversation_path(conversation_id))).status_code == 204
            refused(
                await talk.client.get(conversation_path(conversation_id)),
                404,
                "conversation_not_found",
            )


async def test_users_end_and_delete_their_own_conversations(talk: Talker, world: World) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    conversation_id = await start_conversation(talk, caller=user)
    assert (await user.post(f"{conversation_path(conversation_id)}/end")).json()[
        "status"
    ] == "ended"
    assert (await user.delete(conversation_path(conversation_id))).status_code == 204
    assert await list_ids(talk, user) == []


async def test_a_reader_who_changes_a_conversation_learns_the_missing_permission(
    models: ModelServer, world: World, super_admin: Client, subtests: pytest.Subtests
) -> None:
    for method, tail in (("POST", "/end"), ("DELETE", "")):
        with subtests.test(method=method, tail=tail):
            talk = await talker(world, models)
            conversation_id = await start_conversation(talk)
            reader = await world.user("agent_user", talk.client.tenant_id)
            path, before = (
                "/roles/agent_user/permissions",
                sorted(AREAS.default_grants["agent_user"]),
            )
            changed = await super_admin.put(path, {"permissions": [*before, "conversations:read"]})
            assert changed.status_code == 200, changed.text
            try:
                assert (await reader.get(conversation_path(conversation_id))).status_code == 200
                answer = await reader(method, conversation_path(conversation_id) + tail)
            finally:
                await super_admin.put(path, {"permissions": before})
            error = refused(answer, 403, "forbidden")
            assert error["details"] == {
                "required": "conversations:write",
                "your_role": "agent_user",
            }


async def test_messages_come_oldest_first(talk: Talker) -> None:
    talk.script(Reply(texts=["a"]), Reply(texts=["b"]), Reply(texts=["c"]))
    conversation_id = await start_conversation(talk, "1")
    await talk.say("2", conversation_id=conversation_id)
    await talk.say("3", conversation_id=conversation_id)
    answer = (await talk.client.get(f"{conversation_path(conversation_id)}/messages")).json()
    assert answer["pagination"] == {"page": 1, "per_page": 20, "total": 6, "total_pages": 1}
    assert [item["content"] for item in answer["data"]] == ["1", "a", "2", "b", "3", "c"]
    assert [item["role"] for item in answer["data"]] == ["user", "assistant"] * 3
    times = [item["created_at"] for item in answer["data"]]
    assert times == sorted(times)
    first = answer["data"][0]
    assert set(first) == {
        "id",
        "role",
        "content",
        "status",
        "tool_calls",
        "sources",
        "feedback",
        "created_at",
        "error",
        "attachments",
    }
    assert (first["status"], first["tool_calls"], first["sources"]) == ("complete", [], [])


async def test_messages_come_in_pages(talk: Talker) -> None:
    conversation_id = await start_conversation(talk, "1")
    for word in ("2", "3"):
        await talk.say(word, conversation_id=conversation_id)
    ids = []
    for page, size in ((1, 4), (2, 2), (3, 0)):
        params: dict[str, Any] = {"page": page, "per_page": 4}
        answer = await talk.client.get(
            f"{conversation_path(conversation_id)}/messages", params=params
        )
        assert len(answer.json()["data"]) == size
        assert answer.json()["pagination"]["total_pages"] == 2
        ids += [item["id"] for item in answer.json()["data"]]
    assert len(set(ids)) == 6


async def test_a_wrong_page_of_messages_is_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    for params in ({"page": 0}, {"per_page": 101}, {"per_page": 0}):
        with subtests.test(params=params):
            conversation_id = await start_conversation(talk)
            answer = await talk.client.get(
                f"{conversation_path(conversation_id)}/messages", params=params
            )
            assert list(refused(answer, 422, "validation_error")["details"]) == list(params)


async def test_a_reply_has_only_the_calls_of_its_own_turn(talk: Talker) -> None:
    await talk.with_helper()
    one, two = [("delegate_to_helper", {"task": word}) for word in ("one", "two")]
    talk.script(
        Reply(texts=[], calls=[one]),
        Reply(texts=["First"]),
        Reply(texts=[], calls=[two, two]),
        Reply(texts=["Second"]),
        Reply(texts=["Third"]),
    )
    first = await talk.say("1")
    conversation = {"conversation_id": first["conversation_id"]}
    second = await talk.say("2", **conversation)
    await talk.say("3", **conversation)
    messages = await list_messages(talk, first["conversation_id"])
    calls = [item["tool_calls"] for item in messages]
    assert calls == [[], first["tool_calls"], [], second["tool_calls"], [], []]
    assert set(calls[1][0]) == CALL_KEYS


_ADD_MESSAGES = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                  logged, correlation_id)
SELECT tenant_id, id || number, agent_id, id, 'message', 'user', 'Hi', true, ''
FROM conversations, generate_series(1, 50) AS number WHERE id = $1
"""


async def test_the_owner_of_a_conversation_is_compared_once(
    talk: Talker, world: World, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    conversation_id = await start_conversation(talk, caller=user)
    await execute(services, _ADD_MESSAGES, conversation_id)
    with query_plans.record_statements(monkeypatch, "conversation_entries") as statements:
        answer = await user.get(f"{conversation_path(conversation_id)}/messages")
    assert answer.json()["pagination"]["total"] == 52
    [statement] = statements
    plan = await query_plans.explain(services, statement)
    # For the count, the messages and their calls of tools.
    assert plan.rows_read("conversations") <= 3


async def test_a_user_who_is_deleted_at_this_moment_gets_no_conversation(
    talk: Talker, services: Services
) -> None:
    """It would outlive the user."""
    tenant_id = talk.client.tenant_id
    async with services.db.tx(tenant_id) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, talk.agent_id)
    question = Question(speaker=Speaker("usr_deleted"), source="console", text="Hi")
    async with services.db.tx(tenant_id) as tx:
        with pytest.raises(ConversationNotFound):
            await start_turn(tx, runtime, question)
    assert await list_ids(talk) == []
