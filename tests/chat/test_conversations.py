"""Conversations: listing them and their messages, and who may read them."""

from datetime import datetime
from typing import Any

import pytest

from app.areas import AREAS
from app.services import Services
from tests.asking import refused
from tests.chat.conversation_helpers import (
    begin_conversation,
    conversation_path,
    get_conversation,
    list_conversations,
    list_ids,
    run_sql,
)
from tests.model_server import Reply
from tests.talk import Talker
from tests.world import Client, World

KEYS = {
    "id",
    "agent_id",
    "user_id",
    "source",
    "title",
    "status",
    "message_count",
    "created_at",
    "last_message_at",
    "ended_at",
}


async def test_a_conversation_shows_what_it_is(talk: Talker) -> None:
    conversation_id = await begin_conversation(talk, "  When does\n\nthe shop   open? ")
    listed = await list_conversations(talk)
    assert listed["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    [item] = listed["data"]
    assert set(item) == KEYS
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
    conversation_id = await begin_conversation(talk, "ä" * 200)
    await talk.say("Another", conversation_id=conversation_id)
    shown = await get_conversation(talk, conversation_id)
    assert shown["title"] == "ä" * 80
    assert shown["message_count"] == 4


async def test_pages_follow_each_other_without_overlap(talk: Talker, services: Services) -> None:
    conversation_ids = [await begin_conversation(talk, str(number)) for number in range(5)]
    # All at the very same moment: ties are broken by id.
    await run_sql(
        services,
        "UPDATE conversations SET last_message_at = now(), created_at = now() WHERE agent_id = $1",
        talk.agent_id,
    )
    for sort in ("last_message_at", "-last_message_at", "created_at", "message_count"):
        pages = [await list_ids(talk, page=page, per_page=2, sort=sort) for page in (1, 2, 3, 4)]
        assert [len(page) for page in pages] == [2, 2, 1, 0]
        assert sorted(found for page in pages for found in page) == sorted(conversation_ids)
    listed = await list_conversations(talk, page=2, per_page=2)
    assert listed["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}


async def test_the_latest_comes_first_unless_told_otherwise(talk: Talker) -> None:
    first, second, third = [
        await begin_conversation(talk, word) for word in ("one", "two", "three")
    ]
    await talk.say("Again", conversation_id=first)
    assert await list_ids(talk) == [first, third, second]
    assert await list_ids(talk, sort="last_message_at") == [second, third, first]
    assert await list_ids(talk, sort="created_at") == [first, second, third]
    assert await list_ids(talk, sort="-created_at") == [third, second, first]
    assert (await list_ids(talk, sort="-message_count"))[0] == first
    assert (await list_ids(talk, sort="message_count"))[-1] == first


@pytest.mark.parametrize(
    ("params", "field"),
    [
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
    ],
)
async def test_a_wrong_parameter_is_named(talk: Talker, params: dict[str, Any], field: str) -> None:
    answer = await talk.client.get(f"{talk.path}/conversations", params=params)
    assert list(refused(answer, 422, "validation_error")["details"]) == [field]


async def test_a_list_is_narrowed_to_a_status(talk: Talker) -> None:
    ended, active = await begin_conversation(talk), await begin_conversation(talk)
    await talk.client.post(f"{conversation_path(ended)}/end")
    assert await list_ids(talk, status="ended") == [ended]
    assert await list_ids(talk, status="active") == [active]
    assert len(await list_ids(talk)) == 2


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("SHOP", ["The shop"]),
        ("50%", ["50% off"]),
        ("%", ["50% off"]),
        ("_", ["snake_case"]),
        ("\\", ["back\\slash"]),
        ("Ä", ["über äpfel"]),
        ("nothing", []),
        ("", ["The shop", "50% off", "snake_case", "back\\slash", "über äpfel"]),
    ],
)
async def test_search_looks_in_titles_as_they_are(
    talk: Talker, search: str, found: list[str]
) -> None:
    for title in ("The shop", "50% off", "snake_case", "back\\slash", "über äpfel"):
        await begin_conversation(talk, title)
    listed = await list_conversations(talk, search=search, sort="created_at")
    assert [item["title"] for item in listed["data"]] == found
    assert listed["pagination"]["total"] == len(found)


async def test_a_list_holds_this_agents_conversations_only(talk: Talker) -> None:
    other = await talk.agent()
    mine, theirs = await begin_conversation(talk), await begin_conversation(other)
    assert await list_ids(talk) == [mine]
    assert await list_ids(other) == [theirs]


async def test_an_unknown_or_foreign_agent_has_no_list(talk: Talker, admin: Client) -> None:
    for path in (talk.path, "/api/v1/agents/agt_none"):
        refused(await admin.get(f"{path}/conversations"), 404, "agent_not_found")


@pytest.mark.parametrize(
    ("role", "sees"),
    [
        ("agent_user", "own"),
        ("viewer", "none"),
        ("agent_developer", "all"),
        ("tenant_admin", "all"),
        ("super_admin", "all"),
    ],
)
async def test_everybody_sees_their_own_and_readers_see_all(
    talk: Talker, world: World, role: str, sees: str
) -> None:
    theirs = await begin_conversation(talk)
    who = await world.user(role, None if role == "super_admin" else talk.client.tenant_id)
    own = [] if role == "viewer" else [await begin_conversation(talk, who=who)]
    expected = {"own": own, "none": [], "all": [*own, theirs]}[sees]
    assert await list_ids(talk, who) == expected
    for path in (conversation_path(theirs), f"{conversation_path(theirs)}/messages"):
        answer = await who.get(path)
        if sees == "all":
            assert answer.status_code == 200
        else:
            refused(answer, 404, "conversation_not_found")
    for conversation_id in own:
        assert (await who.get(conversation_path(conversation_id))).status_code == 200
        assert (await who.get(f"{conversation_path(conversation_id)}/messages")).status_code == 200


@pytest.mark.parametrize(
    ("method", "tail"), [("GET", ""), ("GET", "/messages"), ("POST", "/end"), ("DELETE", "")]
)
async def test_another_tenants_conversation_is_not_found(
    talk: Talker, admin: Client, anonymous: Client, method: str, tail: str
) -> None:
    conversation_id = await begin_conversation(talk)
    refused(
        await admin(method, conversation_path(conversation_id) + tail),
        404,
        "conversation_not_found",
    )
    refused(
        await admin(method, conversation_path("cnv_none") + tail), 404, "conversation_not_found"
    )
    refused(await anonymous(method, conversation_path(conversation_id) + tail), 401, "unauthorized")
    assert (await get_conversation(talk, conversation_id))["status"] == "active"


@pytest.mark.parametrize(("method", "tail"), [("POST", "/end"), ("DELETE", "")])
@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_who_cannot_read_a_conversation_cannot_change_it(
    talk: Talker, world: World, role: str, method: str, tail: str
) -> None:
    conversation_id = await begin_conversation(talk)
    who = await world.user(role, talk.client.tenant_id)
    refused(
        await who(method, conversation_path(conversation_id) + tail), 404, "conversation_not_found"
    )
    assert (await get_conversation(talk, conversation_id))["status"] == "active"


@pytest.mark.parametrize("role", ["agent_developer", "tenant_admin", "super_admin"])
async def test_who_may_write_conversations_ends_and_deletes_other_peoples(
    talk: Talker, world: World, role: str
) -> None:
    conversation_id = await begin_conversation(talk)
    who = await world.user(role, None if role == "super_admin" else talk.client.tenant_id)
    assert (await who.post(f"{conversation_path(conversation_id)}/end")).json()["status"] == "ended"
    assert (await who.delete(conversation_path(conversation_id))).status_code == 204
    refused(
        await talk.client.get(conversation_path(conversation_id)), 404, "conversation_not_found"
    )


async def test_everybody_ends_and_deletes_their_own(talk: Talker, world: World) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    conversation_id = await begin_conversation(talk, who=user)
    assert (await user.post(f"{conversation_path(conversation_id)}/end")).json()[
        "status"
    ] == "ended"
    assert (await user.delete(conversation_path(conversation_id))).status_code == 204
    assert await list_ids(talk, user) == []


@pytest.mark.parametrize(("method", "tail"), [("POST", "/end"), ("DELETE", "")])
async def test_who_may_only_read_a_conversation_is_told_what_is_missing(
    talk: Talker, world: World, super_admin: Client, method: str, tail: str
) -> None:
    conversation_id = await begin_conversation(talk)
    reader = await world.user("agent_user", talk.client.tenant_id)
    path, before = "/roles/agent_user/permissions", sorted(AREAS.default_grants["agent_user"])
    changed = await super_admin.put(path, {"permissions": [*before, "conversations:read"]})
    assert changed.status_code == 200, changed.text
    try:
        assert (await reader.get(conversation_path(conversation_id))).status_code == 200
        answer = await reader(method, conversation_path(conversation_id) + tail)
    finally:
        await super_admin.put(path, {"permissions": before})
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": "conversations:write", "your_role": "agent_user"}


async def test_messages_come_oldest_first(talk: Talker) -> None:
    talk.script(Reply(texts=["a"]), Reply(texts=["b"]), Reply(texts=["c"]))
    conversation_id = await begin_conversation(talk, "1")
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
        "created_at",
    }
    assert (first["status"], first["tool_calls"], first["sources"]) == ("complete", [], [])


async def test_messages_come_in_pages(talk: Talker) -> None:
    conversation_id = await begin_conversation(talk, "1")
    for word in ("2", "3"):
        await talk.say(word, conversation_id=conversation_id)
    seen = []
    for page, size in ((1, 4), (2, 2), (3, 0)):
        params: dict[str, Any] = {"page": page, "per_page": 4}
        answer = await talk.client.get(
            f"{conversation_path(conversation_id)}/messages", params=params
        )
        assert len(answer.json()["data"]) == size
        assert answer.json()["pagination"]["total_pages"] == 2
        seen += [item["id"] for item in answer.json()["data"]]
    assert len(set(seen)) == 6


@pytest.mark.parametrize("params", [{"page": 0}, {"per_page": 101}, {"per_page": 0}])
async def test_a_wrong_page_of_messages_is_refused(talk: Talker, params: dict[str, Any]) -> None:
    conversation_id = await begin_conversation(talk)
    answer = await talk.client.get(f"{conversation_path(conversation_id)}/messages", params=params)
    assert list(refused(answer, 422, "validation_error")["details"]) == list(params)


async def test_a_reply_shows_the_calls_that_led_to_it_and_no_others(talk: Talker) -> None:
    helper = await talk.agent("Helper")
    await talk.client.post(f"{talk.path}/sub-agents/attach", {"agent_id": helper.agent_id})
    one, two = [("delegate_to_helper", {"task": word}) for word in ("one", "two")]
    talk.script(
        Reply(texts=[], calls=[one]),
        Reply(texts=["First"]),
        Reply(texts=[], calls=[two, two]),
        Reply(texts=["Second"]),
        Reply(texts=["Third"]),
    )
    first = await talk.say("1")
    again = {"conversation_id": first["conversation_id"]}
    second = await talk.say("2", **again)
    await talk.say("3", **again)
    kept = (
        await talk.client.get(f"{conversation_path(again['conversation_id'])}/messages")
    ).json()["data"]
    calls = [item["tool_calls"] for item in kept]
    assert calls == [[], first["tool_calls"], [], second["tool_calls"], [], []]
    assert set(calls[1][0]) == {
        "id",
        "tool",
        "tool_id",
        "input",
        "output",
        "status",
        "execution_time_ms",
        "parent_id",
    }
