"""GET /api/v1/conversations: the conversations with all agents."""

import base64
from typing import Any

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import conversation_path, start_conversation
from tests.conversations.chat.database import execute
from tests.conversations.chat.summary_helpers import (
    PATH,
    get_page,
    list_ids,
    list_pages,
    list_summaries,
    rate,
    set_activity,
)
from tests.conversations.chat.test_conversations import CONVERSATION_KEYS
from tests.identity.service_keys.keys import create_program
from tests.model_server import ModelServer, Reply
from tests.platform.events import query_plans
from tests.scripted_agents import Talker, talker
from tests.world import Client, World


async def test_a_summary_has_every_field(talk: Talker) -> None:
    talk.script(Reply(texts=["At nine. " + "x" * 300]))
    conversation_id = await start_conversation(talk, "When does the shop open?")
    page = await get_page(talk.client)
    assert page["next_cursor"] is None
    [item] = page["data"]
    assert item.keys() == CONVERSATION_KEYS | {
        *("agent_name", "user_name", "last_message", "unread"),
        *("ratings_up", "ratings_down", "failed_answers"),
    }
    shown = (await talk.client.get(conversation_path(conversation_id))).json()
    assert {name: item[name] for name in shown} == shown
    me = (await talk.client.get("/auth/me")).json()
    assert item["agent_name"] == "Talker"
    assert item["user_name"] == f"{me['first_name']} {me['last_name']}".strip() or me["email"]
    text = ("At nine. " + "x" * 300)[:200]
    assert item["last_message"] == {"role": "assistant", "text": text, "status": "complete"}
    assert (item["ratings_up"], item["ratings_down"], item["failed_answers"]) == (0, 0, 0)


async def test_the_list_has_the_conversations_with_all_agents(talk: Talker) -> None:
    other = await talk.agent("Other")
    first, second = await start_conversation(talk), await start_conversation(other)
    await talk.say("Again", conversation_id=first)
    assert await list_ids(talk.client) == [first, second]
    assert [item["agent_name"] for item in await list_summaries(talk.client)] == ["Talker", "Other"]


async def test_pages_have_each_conversation_once(talk: Talker, services: Services) -> None:
    ids = [await start_conversation(talk, str(number)) for number in range(5)]
    # With equal times, conversations are sorted by id.
    await execute(
        services,
        "UPDATE conversations SET last_message_at = now() WHERE agent_id = $1",
        talk.agent_id,
    )
    pages = await list_pages(talk.client, 2)
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [item for page in pages for item in page] == sorted(ids, reverse=True)
    assert await list_pages(talk.client, 5) == [sorted(ids, reverse=True)]


async def test_pages_are_stable_while_conversations_begin_and_go_on(talk: Talker) -> None:
    ids = [await start_conversation(talk, str(number)) for number in range(4)]
    first = await get_page(talk.client, limit=2)
    assert [item["id"] for item in first["data"]] == [ids[3], ids[2]]
    await start_conversation(talk, "New")
    await talk.say("Again", conversation_id=ids[3])
    rest = await get_page(talk.client, limit=2, cursor=first["next_cursor"])
    assert [item["id"] for item in rest["data"]] == [ids[1], ids[0]]
    assert rest["next_cursor"] is None


async def test_a_wrong_parameter_is_named(talk: Talker, subtests: pytest.Subtests) -> None:
    forged = [f"{number}.cnv_1" for number in ("99999999999999999", "9999999999999999", "-1", "x")]
    forged += ["1.", "1.a\0b", "1.a b", "1", "", "1.cnv_1.2", "ä"]
    cursors = [base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in forged]
    cases: list[tuple[dict[str, Any], str]] = [
        *(({"cursor": cursor}, "cursor") for cursor in (*cursors, "%", "a", "ä", "x" * 201)),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"source": "mail"}, "source"),
        ({"status": "deleted"}, "status"),
        ({"rating": "best"}, "rating"),
        ({"failed": "maybe"}, "failed"),
        ({"unread": "maybe"}, "unread"),
        ({"from": "yesterday"}, "from"),
        ({"to": "9999-12-31T23:59:59-23:59"}, "to"),
        ({"search": "x" * 201}, "search"),
        ({"agent_id": "x" * 65}, "agent_id"),
        ({"user_id": "x" * 65}, "user_id"),
        ({"visitor": "x" * 201}, "visitor"),
    ]
    for params, field in cases:
        with subtests.test(params=params):
            answer = await talk.client.get(PATH, params=params)
            assert list(refused(answer, 422, "validation_error")["details"]) == [field]


_VISITOR = '{"id": "customer-7", "name": "Eve", "email": null}'
_SET_VISITOR = """
UPDATE conversations SET source = 'embed', user_id = NULL, visitor = $2::text::jsonb WHERE id = $1
"""
_SET_PREVIEW = "UPDATE conversations SET source = 'preview' WHERE id = $1"


async def test_filters_select_conversations(
    talk: Talker, world: World, services: Services, subtests: pytest.Subtests
) -> None:
    other, colleague = await talk.agent(), await world.user("tenant_admin", talk.client.tenant_id)
    plain, of_other = await start_conversation(talk, "Plain"), await start_conversation(other, "B")
    of_colleague = await start_conversation(talk, "50% _off_ Ä", caller=colleague)
    ended, of_visitor = await start_conversation(talk), await start_conversation(talk, "Visit")
    await talk.client.post(f"{conversation_path(ended)}/end")
    preview = await start_conversation(talk)
    await execute(services, _SET_VISITOR, of_visitor, _VISITOR)
    await execute(services, _SET_PREVIEW, preview)
    order = (plain, of_other, of_colleague, ended, of_visitor)
    times = {key: f"2026-01-0{day}T12:00:00+00:00" for day, key in enumerate(order, start=1)}
    await set_activity(talk, times)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [of_visitor, ended, of_colleague, of_other, plain]),
        ({"agent_id": other.agent_id}, [of_other]),
        ({"agent_id": "agt_none"}, []),
        ({"source": "embed"}, [of_visitor]),
        ({"source": "preview"}, [preview]),
        ({"source": "console", "agent_id": talk.agent_id}, [ended, of_colleague, plain]),
        ({"user_id": colleague.user_id}, [of_colleague]),
        ({"visitor": "customer-7"}, [of_visitor]),
        ({"visitor": "customer"}, []),
        ({"status": "ended"}, [ended]),
        ({"status": "active"}, [of_visitor, of_colleague, of_other, plain]),
        ({"from": "2026-01-03T12:00:00Z", "to": "2026-01-04T12:00:00Z"}, [ended, of_colleague]),
        ({"to": "2026-01-02"}, [plain]),
        *(({"search": text}, [of_colleague]) for text in ("50% _OFF", "ä", "%")),
        ({"failed": True}, []),
        ({"rating": "any"}, []),
    ]
    for params, expected in cases:
        with subtests.test(params=params):
            assert await list_ids(talk.client, **params) == expected
            pages = await list_pages(talk.client, 1, **params)
            assert [item for page in pages for item in page] == expected
    [visit] = await list_summaries(talk.client, visitor="customer-7")
    assert (visit["visitor"]["name"], visit["user_name"]) == ("Eve", None)


async def test_conversations_are_found_by_their_ratings(talk: Talker, world: World) -> None:
    colleague = await world.user("agent_developer", talk.client.tenant_id)
    good, bad, plain = [await talk.say(word) for word in ("Good", "Bad", "Plain")]
    await rate(talk.client, good, "up")
    await rate(colleague, good, "up")
    await rate(talk.client, bad, "up")
    await rate(talk.client, bad, "down")
    await rate(talk.client, plain, "down")
    await rate(talk.client, plain, None)
    ids = {key: reply["conversation_id"] for key, reply in (("good", good), ("bad", bad))}
    assert await list_ids(talk.client, rating="up") == [ids["good"]]
    assert await list_ids(talk.client, rating="down") == [ids["bad"]]
    assert await list_ids(talk.client, rating="any") == [ids["bad"], ids["good"]]
    counts = {
        item["id"]: (item["ratings_up"], item["ratings_down"])
        for item in await list_summaries(talk.client)
    }
    assert counts == {ids["good"]: (2, 0), ids["bad"]: (0, 1), plain["conversation_id"]: (0, 0)}


async def test_ratings_of_a_deleted_user_do_not_count(
    talk: Talker, world: World, services: Services
) -> None:
    colleague = await world.user("agent_developer", talk.client.tenant_id)
    await rate(colleague, await talk.say("Hi"), "down")
    assert len(await list_ids(talk.client, rating="down")) == 1
    await execute(services, "DELETE FROM users WHERE id = $1", colleague.user_id)
    assert await list_ids(talk.client, rating="any") == []


async def test_failed_answers_count_until_they_are_replaced(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400))
    refused(
        await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}), 400, "provider_rejected"
    )
    [item] = await list_summaries(talk.client, failed=True)
    assert item["failed_answers"] == 1
    assert item["last_message"] == {"role": "assistant", "text": "", "status": "failed"}
    messages = (await talk.client.get(f"{conversation_path(item['id'])}/messages")).json()["data"]
    more = {"conversation_id": item["id"], "replaces": messages[-1]["id"]}
    talk.script(Reply(texts=["At nine."]))
    await talk.say("Hi", **more)
    assert await list_ids(talk.client, failed=True) == []
    assert await list_ids(talk.client, failed=False) == [item["id"]]
    # The log still has the failed answer, whose deletion changes nothing.
    await execute(services, "DELETE FROM conversation_entries WHERE status = 'failed'")
    assert (await list_summaries(talk.client))[0]["failed_answers"] == 0


async def test_a_failed_answer_that_expires_no_longer_counts(
    talk: Talker, services: Services
) -> None:
    talk.script(Reply(status=400))
    refused(
        await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}), 400, "provider_rejected"
    )
    sql = "DELETE FROM conversation_entries WHERE agent_id = $1 AND status = 'failed'"
    await execute(services, sql, talk.agent_id)
    assert await list_ids(talk.client, failed=True) == []


async def test_users_see_their_own_and_readers_see_all(
    models: ModelServer, world: World, admin: Client, subtests: pytest.Subtests
) -> None:
    talk = await talker(world, models)
    foreign = await start_conversation(talk)
    for role, sees_all in (("agent_user", False), ("agent_developer", True)):
        with subtests.test(role=role):
            caller = await world.user(role, talk.client.tenant_id)
            own = await start_conversation(talk, caller=caller)
            listed = await list_ids(caller)
            assert own in listed
            assert (foreign in listed) == sees_all
            theirs = await list_ids(caller, user_id=talk.client.user_id)
            assert theirs == ([foreign] if sees_all else [])
    # Another tenant's, by all of its filters.
    for params in ({}, {"agent_id": talk.agent_id}, {"user_id": talk.client.user_id}):
        assert foreign not in await list_ids(admin, **params)


async def test_a_key_for_certain_agents_lists_conversations_with_these(talk: Talker) -> None:
    other = await talk.agent()
    mine, of_other = await start_conversation(talk), await start_conversation(other)
    program = await create_program(talk.client, "tenant_admin", agent_ids=[talk.agent_id])
    assert await list_ids(program) == [mine]
    assert await list_ids(program, agent_id=talk.agent_id) == [mine]
    refused(await program.get(PATH, params={"agent_id": other.agent_id}), 403, "forbidden")
    assert await list_ids(talk.client) == [of_other, mine]


async def test_a_program_is_named_by_its_key(talk: Talker) -> None:
    program = await create_program(talk.client, "agent_user")
    await start_conversation(talk, caller=program)
    [item] = await list_summaries(talk.client)
    keys = (await talk.client.get("/api/v1/service-keys")).json()["data"]
    assert item["user_name"] == keys[0]["name"]


# The statement that a list runs, with many conversations

_FILL = """
INSERT INTO conversations (tenant_id, id, agent_id, user_id, source, title, message_count,
                           last_message_at, failed_answers, ratings_up, visitor)
SELECT $1, $2 || n, $3, CASE WHEN n % 1000 = 0 THEN $4 END,
       CASE WHEN n % 1000 = 1 THEN 'workflow' ELSE 'console' END, 'Title ' || n, 2,
       now() - n * interval '1 second', (n % 1000 = 2)::int, (n % 1000 = 3)::int,
       CASE WHEN n % 1000 = 4 THEN jsonb_build_object('id', 'customer') END
FROM generate_series(1, 5000) AS n
"""


async def test_a_page_reads_few_rows_whatever_the_filter(
    talk: Talker,
    world: World,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    rare = await world.user("agent_developer", talk.client.tenant_id)
    ids = (talk.client.tenant_id, new_id("cnv"), talk.agent_id, rare.user_id)
    await execute(services, _FILL, *ids)
    await execute(services, "ANALYZE conversations")
    second = (await get_page(talk.client, limit=5))["next_cursor"]
    cases: tuple[dict[str, Any], ...] = (
        {},
        {"cursor": second},
        {"agent_id": talk.agent_id},
        {"user_id": rare.user_id},
        {"source": "workflow"},
        {"failed": True},
        {"rating": "up"},
        {"visitor": "customer"},
        {"from": "2026-01-01", "to": "2026-01-02"},
        {"unread": True},
        {"unread": False},
    )
    for params in cases:
        with (
            subtests.test(params=params),
            query_plans.record_statements(monkeypatch, "conversations") as statements,
        ):
            await list_ids(talk.client, limit=5, **params)
            [statement] = statements
            plan = await query_plans.explain(services, statement)
            assert plan.rows_read("conversations") <= 6
            assert plan.rows_read("conversation_entries") == 0
            assert plan.scans_without_index("conversations") == []
