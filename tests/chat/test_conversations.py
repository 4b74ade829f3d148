"""Conversations: listed, read, ended, deleted, and by whom."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.chat import conversations
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.model_server import ModelServer, Reply
from tests.talk import Talker, talker
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


async def _sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


def _path(conversation_id: str) -> str:
    return f"/api/v1/conversations/{conversation_id}"


async def _begin(talk: Talker, message: str = "Hi", who: Client | None = None) -> str:
    answer = await (who or talk.client).post(f"{talk.path}/chat", {"message": message})
    assert answer.status_code == 200, answer.text
    found: str = answer.json()["conversation_id"]
    return found


async def _list(talk: Talker, who: Client | None = None, **params: Any) -> dict[str, Any]:
    answer = await (who or talk.client).get(f"{talk.path}/conversations", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _ids(talk: Talker, who: Client | None = None, **params: Any) -> list[str]:
    return [item["id"] for item in (await _list(talk, who, **params))["data"]]


async def _get(talk: Talker, conversation_id: str) -> dict[str, Any]:
    answer = await talk.client.get(_path(conversation_id))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _completed(talk: Talker) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"event_type": "agent.chat.completed", "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    found = [entry["data"] for entry in reversed(answer.json()["data"])]
    return [data for data in found if data["agent_id"] == talk.agent_id]


# Listing


async def test_a_conversation_shows_what_it_is(talk: Talker) -> None:
    made = await _begin(talk, "  When does\n\nthe shop   open? ")
    listed = await _list(talk)
    assert listed["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    [item] = listed["data"]
    assert set(item) == KEYS
    assert item["id"] == made
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
    assert await _get(talk, made) == item


async def test_a_title_is_the_beginning_of_the_first_message(talk: Talker) -> None:
    made = await _begin(talk, "ä" * 200)
    await talk.say("Another", conversation_id=made)
    shown = await _get(talk, made)
    assert shown["title"] == "ä" * 80
    assert shown["message_count"] == 4


async def test_pages_follow_each_other_without_overlap(talk: Talker, services: Services) -> None:
    made = [await _begin(talk, str(number)) for number in range(5)]
    # All at the very same moment: ties are broken by id.
    await _sql(
        services,
        "UPDATE conversations SET last_message_at = now(), created_at = now() WHERE agent_id = $1",
        talk.agent_id,
    )
    for sort in ("last_message_at", "-last_message_at", "created_at", "message_count"):
        pages = [await _ids(talk, page=page, per_page=2, sort=sort) for page in (1, 2, 3, 4)]
        assert [len(page) for page in pages] == [2, 2, 1, 0]
        assert sorted(found for page in pages for found in page) == sorted(made)
    listed = await _list(talk, page=2, per_page=2)
    assert listed["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}


async def test_the_latest_comes_first_unless_told_otherwise(talk: Talker) -> None:
    first, second, third = [await _begin(talk, word) for word in ("one", "two", "three")]
    await talk.say("Again", conversation_id=first)
    assert await _ids(talk) == [first, third, second]
    assert await _ids(talk, sort="last_message_at") == [second, third, first]
    assert await _ids(talk, sort="created_at") == [first, second, third]
    assert await _ids(talk, sort="-created_at") == [third, second, first]
    assert (await _ids(talk, sort="-message_count"))[0] == first
    assert (await _ids(talk, sort="message_count"))[-1] == first


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
    ended, active = await _begin(talk), await _begin(talk)
    await talk.client.post(f"{_path(ended)}/end")
    assert await _ids(talk, status="ended") == [ended]
    assert await _ids(talk, status="active") == [active]
    assert len(await _ids(talk)) == 2


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
        await _begin(talk, title)
    listed = await _list(talk, search=search, sort="created_at")
    assert [item["title"] for item in listed["data"]] == found
    assert listed["pagination"]["total"] == len(found)


async def test_a_list_holds_this_agents_conversations_only(talk: Talker) -> None:
    other = await talk.agent()
    mine, theirs = await _begin(talk), await _begin(other)
    assert await _ids(talk) == [mine]
    assert await _ids(other) == [theirs]


async def test_an_unknown_or_foreign_agent_has_no_list(talk: Talker, admin: Client) -> None:
    for path in (talk.path, "/api/v1/agents/agt_none"):
        refused(await admin.get(f"{path}/conversations"), 404, "agent_not_found")


# Whose


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
    theirs = await _begin(talk)
    who = await world.user(role, None if role == "super_admin" else talk.client.tenant_id)
    own = [] if role == "viewer" else [await _begin(talk, who=who)]
    expected = {"own": own, "none": [], "all": [*own, theirs]}[sees]
    assert await _ids(talk, who) == expected
    for path in (_path(theirs), f"{_path(theirs)}/messages"):
        answer = await who.get(path)
        if sees == "all":
            assert answer.status_code == 200
        else:
            refused(answer, 404, "conversation_not_found")
    for conversation_id in own:
        assert (await who.get(_path(conversation_id))).status_code == 200
        assert (await who.get(f"{_path(conversation_id)}/messages")).status_code == 200


@pytest.mark.parametrize(
    ("method", "tail"), [("GET", ""), ("GET", "/messages"), ("POST", "/end"), ("DELETE", "")]
)
async def test_another_tenants_conversation_is_not_found(
    talk: Talker, admin: Client, anonymous: Client, method: str, tail: str
) -> None:
    made = await _begin(talk)
    refused(await admin(method, _path(made) + tail), 404, "conversation_not_found")
    refused(await admin(method, _path("cnv_none") + tail), 404, "conversation_not_found")
    refused(await anonymous(method, _path(made) + tail), 401, "unauthorized")
    assert (await _get(talk, made))["status"] == "active"


@pytest.mark.parametrize(("method", "tail"), [("POST", "/end"), ("DELETE", "")])
@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_who_cannot_read_a_conversation_cannot_change_it(
    talk: Talker, world: World, role: str, method: str, tail: str
) -> None:
    made = await _begin(talk)
    who = await world.user(role, talk.client.tenant_id)
    refused(await who(method, _path(made) + tail), 404, "conversation_not_found")
    assert (await _get(talk, made))["status"] == "active"


@pytest.mark.parametrize("role", ["agent_developer", "tenant_admin", "super_admin"])
async def test_who_may_write_conversations_ends_and_deletes_other_peoples(
    talk: Talker, world: World, role: str
) -> None:
    made = await _begin(talk)
    who = await world.user(role, None if role == "super_admin" else talk.client.tenant_id)
    assert (await who.post(f"{_path(made)}/end")).json()["status"] == "ended"
    assert (await who.delete(_path(made))).status_code == 204
    refused(await talk.client.get(_path(made)), 404, "conversation_not_found")


async def test_everybody_ends_and_deletes_their_own(talk: Talker, world: World) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    made = await _begin(talk, who=user)
    assert (await user.post(f"{_path(made)}/end")).json()["status"] == "ended"
    assert (await user.delete(_path(made))).status_code == 204
    assert await _ids(talk, user) == []


@pytest.mark.parametrize(("method", "tail"), [("POST", "/end"), ("DELETE", "")])
async def test_who_may_only_read_a_conversation_is_told_what_is_missing(
    talk: Talker, world: World, super_admin: Client, method: str, tail: str
) -> None:
    made = await _begin(talk)
    reader = await world.user("agent_user", talk.client.tenant_id)
    path, before = "/roles/agent_user/permissions", sorted(AREAS.default_grants["agent_user"])
    changed = await super_admin.put(path, {"permissions": [*before, "conversations:read"]})
    assert changed.status_code == 200, changed.text
    try:
        assert (await reader.get(_path(made))).status_code == 200
        answer = await reader(method, _path(made) + tail)
    finally:
        await super_admin.put(path, {"permissions": before})
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": "conversations:write", "your_role": "agent_user"}


# Messages


async def test_messages_come_oldest_first(talk: Talker) -> None:
    talk.script(Reply(texts=["a"]), Reply(texts=["b"]), Reply(texts=["c"]))
    made = await _begin(talk, "1")
    await talk.say("2", conversation_id=made)
    await talk.say("3", conversation_id=made)
    answer = (await talk.client.get(f"{_path(made)}/messages")).json()
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
    made = await _begin(talk, "1")
    for word in ("2", "3"):
        await talk.say(word, conversation_id=made)
    seen = []
    for page, size in ((1, 4), (2, 2), (3, 0)):
        params: dict[str, Any] = {"page": page, "per_page": 4}
        answer = await talk.client.get(f"{_path(made)}/messages", params=params)
        assert len(answer.json()["data"]) == size
        assert answer.json()["pagination"]["total_pages"] == 2
        seen += [item["id"] for item in answer.json()["data"]]
    assert len(set(seen)) == 6


@pytest.mark.parametrize("params", [{"page": 0}, {"per_page": 101}, {"per_page": 0}])
async def test_a_wrong_page_of_messages_is_refused(talk: Talker, params: dict[str, Any]) -> None:
    made = await _begin(talk)
    answer = await talk.client.get(f"{_path(made)}/messages", params=params)
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
    kept = (await talk.client.get(f"{_path(again['conversation_id'])}/messages")).json()["data"]
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


# Ending


async def test_ending_is_told_once_however_often_it_is_asked_for(talk: Talker) -> None:
    made = await _begin(talk)
    answers = await asyncio.gather(*(talk.client.post(f"{_path(made)}/end") for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
    shown = await _get(talk, made)
    assert shown["status"] == "ended"
    assert shown["ended_at"]
    assert (await talk.client.post(f"{_path(made)}/end")).json() == shown
    assert await _completed(talk) == [
        {
            "agent_id": talk.agent_id,
            "conversation_id": made,
            "reason": "ended",
            "job_id": None,
            "status": None,
            "message": None,
            "error": None,
        }
    ]


async def test_writing_in_an_ended_conversation_opens_it_again(talk: Talker) -> None:
    made = await _begin(talk)
    await talk.client.post(f"{_path(made)}/end")
    await talk.say("One more thing", conversation_id=made)
    shown = await _get(talk, made)
    assert (shown["status"], shown["ended_at"]) == ("active", None)
    await talk.client.post(f"{_path(made)}/end")
    assert [data["reason"] for data in await _completed(talk)] == ["ended", "ended"]


async def test_an_ended_conversation_counts_as_active_no_more(talk: Talker) -> None:
    made = await _begin(talk)
    await _begin(talk)
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 2
    await talk.client.post(f"{_path(made)}/end")
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 1


@pytest.mark.parametrize(
    ("change", "online"), [({}, True), ({"status": "draft"}, True), ({"status": "archived"}, False)]
)
async def test_an_agent_is_online_unless_it_is_archived(
    talk: Talker, change: dict[str, str], *, online: bool
) -> None:
    await talk.client.put(talk.path, change)
    assert (await talk.client.get(f"{talk.path}/status")).json() == {
        "agent_id": talk.agent_id,
        "status": change.get("status", "published"),
        "is_online": online,
        "active_conversations": 0,
        "training": {"status": "idle", "documents_total": 0, "documents_done": 0},
    }


async def test_an_agent_without_a_way_to_its_model_is_not_online(talk: Talker) -> None:
    other = await talk.agent(primary_model="nobody/has-a-key")
    assert (await talk.client.get(f"{other.path}/status")).json()["is_online"] is False


# Idle ones


async def _age(services: Services, conversation_id: str, minutes: int) -> None:
    await _sql(
        services,
        "UPDATE conversations SET last_message_at = now() - $2 * interval '1 minute' WHERE id = $1",
        conversation_id,
        minutes,
    )


async def test_half_an_hour_of_silence_ends_a_conversation(
    talk: Talker, services: Services
) -> None:
    idle, fresh = await _begin(talk), await _begin(talk)
    await _age(services, idle, 31)
    await _age(services, fresh, 29)
    await conversations.end_idle(services)
    assert (await _get(talk, idle))["status"] == "ended"
    assert (await _get(talk, fresh))["status"] == "active"
    [event] = await _completed(talk)
    assert (event["conversation_id"], event["reason"]) == (idle, "idle")
    assert (event["job_id"], event["status"], event["message"]) == (None, None, None)


async def test_silence_is_told_once_even_by_two_workers_at_once(
    talk: Talker, services: Services
) -> None:
    made = [await _begin(talk) for _ in range(5)]
    for conversation_id in made:
        await _age(services, conversation_id, 60)
    await asyncio.gather(*(conversations.end_idle(services) for _ in range(4)))
    await conversations.end_idle(services)
    told = [data["conversation_id"] for data in await _completed(talk)]
    assert sorted(told) == sorted(made)


async def test_an_idle_conversation_that_is_being_answered_does_not_end(
    talk: Talker, services: Services
) -> None:
    body = {"message": "Take your time"}
    job = (await talk.client.post(f"{talk.path}/chat/async", body)).json()
    await _age(services, job["conversation_id"], 600)
    await conversations.end_idle(services)
    assert (await _get(talk, job["conversation_id"]))["status"] == "active"
    assert await _completed(talk) == []


async def test_writing_after_an_idle_end_opens_the_conversation_again(
    talk: Talker, services: Services
) -> None:
    made = await _begin(talk)
    await _age(services, made, 31)
    await conversations.end_idle(services)
    await talk.say("I am back", conversation_id=made)
    assert (await _get(talk, made))["status"] == "active"
    await conversations.end_idle(services)
    assert (await _get(talk, made))["status"] == "active"


async def test_the_idle_are_ended_across_tenants(
    talk: Talker, world: World, models: ModelServer, services: Services
) -> None:
    other = await talker(world, models)
    for one in (talk, other):
        await _age(services, await _begin(one), 31)
    await conversations.end_idle(services)
    for one in (talk, other):
        assert [data["reason"] for data in await _completed(one)] == ["idle"]


def test_workers_look_for_the_idle_by_themselves() -> None:
    assert conversations.end_idle in [chore.run for chore in AREAS.chores]
    assert conversations.IDLE_SECONDS == 1800


# Deleting


async def test_a_deleted_conversation_takes_its_messages_and_its_log_along(talk: Talker) -> None:
    made, other = await _begin(talk, "Forget me"), await _begin(talk, "Keep me")
    answer = await talk.client.delete(_path(made))
    assert answer.status_code == 204
    assert answer.content == b""
    for path in (_path(made), f"{_path(made)}/messages"):
        refused(await talk.client.get(path), 404, "conversation_not_found")
    refused(await talk.client.delete(_path(made)), 404, "conversation_not_found")
    body = {"message": "Still there?", "conversation_id": made}
    refused(await talk.client.post(f"{talk.path}/chat", body), 404, "conversation_not_found")
    assert await _ids(talk) == [other]
    log = (await talk.client.get(f"{talk.path}/logs", params={"per_page": 100})).json()["data"]
    assert {entry["conversation_id"] for entry in log} == {other}


async def test_a_conversation_that_is_being_answered_cannot_be_deleted(talk: Talker) -> None:
    made, hold = await _begin(talk), asyncio.Event()
    talk.script(Reply(hold=hold))
    before = len(talk.asked)
    answering = asyncio.create_task(talk.say("Slowly", conversation_id=made))
    try:
        async with asyncio.timeout(10):
            while len(talk.asked) == before:  # noqa: ASYNC110  # the model is a server of its own
                await asyncio.sleep(0.005)
        refused(await talk.client.delete(_path(made)), 409, "conversation_busy")
    finally:
        hold.set()
        await answering
    assert (await talk.client.delete(_path(made))).status_code == 204


async def test_a_conversation_with_a_pending_job_cannot_be_deleted_until_it_is_cancelled(
    talk: Talker,
) -> None:
    job = (await talk.client.post(f"{talk.path}/chat/async", {"message": "Later"})).json()
    path = _path(job["conversation_id"])
    refused(await talk.client.delete(path), 409, "conversation_busy")
    await talk.client.delete(f"{talk.path}/chat/jobs/{job['job_id']}")
    assert (await talk.client.delete(path)).status_code == 204


async def test_a_deleted_agent_takes_its_conversations_along(talk: Talker) -> None:
    made = await _begin(talk)
    assert (await talk.client.delete(talk.path)).status_code == 204
    refused(await talk.client.get(_path(made)), 404, "conversation_not_found")


async def test_what_was_said_in_a_deleted_conversation_leaves_the_event_log(talk: Talker) -> None:
    gone = (await talk.say("My secret is 12345"))["conversation_id"]
    kept = (await talk.say("Hello"))["conversation_id"]
    assert (await talk.client.delete(_path(gone))).status_code == 204
    params: dict[str, Any] = {"event_type": "agent.chat.message", "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    assert "12345" not in answer.text
    assert {entry["data"]["conversation_id"] for entry in answer.json()["data"]} == {kept}
