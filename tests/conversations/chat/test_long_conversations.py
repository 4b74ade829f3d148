"""GET …/messages with before, after and limit, and the texts of messages in slices."""

import json
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    conversation_path,
    list_messages,
    start_conversation,
)
from tests.conversations.chat.database import execute
from tests.platform.events import query_plans
from tests.scripted_agents import Talker
from tests.world import Client, World

# After the question and the answer of the first turn. Every second message is an answer with a
# call and the usage of its turn.
_ADD_MESSAGES = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                  data)
SELECT c.tenant_id, e.id || '_' || c.id || '_' || n, c.agent_id, c.id, e.type, e.role,
       'Text ' || n, e.data
FROM conversations c, generate_series(1, $2::int) AS n,
     LATERAL (VALUES (1, 'tcl', 'tool_call', 'tool', jsonb_build_object(
                          'id', 'call_' || n, 'tool', 'Search', 'tool_id', NULL, 'input', n,
                          'output', 'Found', 'status', 'completed', 'execution_time_ms', 1,
                          'message_id', 'msg_' || c.id || '_' || n)),
                     (2, 'msg', 'message', (ARRAY['assistant', 'user'])[n % 2 + 1], '{}'),
                     (3, 'tus', 'token_usage', NULL, '{}')) AS e (place, id, type, role, data)
WHERE c.id = $1 AND (n % 2 = 0 OR e.type = 'message') ORDER BY n, e.place
"""
_ADD_SHORT_CONVERSATIONS = """
INSERT INTO conversations (tenant_id, id, agent_id, user_id, source)
SELECT tenant_id, id || '-' || n, agent_id, user_id, source
FROM conversations, generate_series(1, $2::int) AS n WHERE id = $1
"""
_ADD_SHORT_MESSAGES = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content)
SELECT tenant_id, 'short_' || id || '-' || n, agent_id, id, 'message', 'user', 'Text ' || n
FROM conversations, generate_series(1, 2) AS n WHERE starts_with(id, $1 || '-')
"""
_DELETE_STATISTICS = """
DELETE FROM pg_statistic WHERE starelid = 'conversation_entries'::regclass
"""
_SET_BODIES = """
UPDATE conversation_entries SET data = data || $2::text::jsonb
WHERE conversation_id = $1 AND type = 'tool_call' AND data->>'id' = 'call_2'
"""


async def _get(caller: Client, conversation_id: str, **params: Any) -> dict[str, Any]:
    answer = await caller.get(f"{conversation_path(conversation_id)}/messages", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def _get_text(caller: Client, path: str, **params: Any) -> dict[str, Any]:
    answer = await caller.get(f"{path}/text", params=params)
    assert answer.status_code == 200, answer.text
    text: dict[str, Any] = answer.json()
    return text


def _ids(page: dict[str, Any]) -> list[str]:
    return [message["id"] for message in page["data"]]


@pytest.fixture
async def long_id(talk: Talker, services: Services) -> str:
    conversation_id = await start_conversation(talk)
    await execute(services, _ADD_MESSAGES, conversation_id, 10)
    return conversation_id


async def test_a_conversation_is_read_from_its_end_and_from_its_beginning(
    talk: Talker, long_id: str
) -> None:
    whole = await list_messages(talk, long_id)
    ids = [message["id"] for message in whole]
    assert len(ids) == 12
    page = await _get(talk.client, long_id, limit=5)
    assert page == {"data": whole[7:], "has_more": True}
    page = await _get(talk.client, long_id, limit=5, before=ids[7])
    assert page == {"data": whole[2:7], "has_more": True}
    page = await _get(talk.client, long_id, limit=5, before=ids[2])
    assert page == {"data": whole[:2], "has_more": False}
    assert await _get(talk.client, long_id, before=ids[0]) == {"data": [], "has_more": False}
    page = await _get(talk.client, long_id, limit=5, after=ids[0])
    assert page == {"data": whole[1:6], "has_more": True}
    assert _ids(await _get(talk.client, long_id, after=ids[5])) == ids[6:]
    assert await _get(talk.client, long_id, after=ids[-1]) == {"data": [], "has_more": False}
    assert await _get(talk.client, long_id, limit=12) == {"data": whole, "has_more": False}


async def test_new_messages_follow_the_last_one_that_was_read(talk: Talker, long_id: str) -> None:
    last = _ids(await _get(talk.client, long_id, limit=1))[0]
    reply = await talk.say("Again", conversation_id=long_id)
    later = _ids(await _get(talk.client, long_id, after=last))
    assert len(later) == 2
    assert later[1] == reply["message"]["id"]
    # A message that was replaced meanwhile still has its place.
    again = await talk.say("Once more", conversation_id=long_id, replaces=later[1])
    assert _ids(await _get(talk.client, long_id, after=later[0]))[-1] == again["message"]["id"]


async def test_wrong_places_are_named(
    talk: Talker, long_id: str, admin: Client, subtests: pytest.Subtests
) -> None:
    other = (await talk.say("Hi"))["message"]["id"]
    own = _ids(await _get(talk.client, long_id, limit=1))[0]
    for params, field in (
        ({"before": other}, "before"),
        ({"after": "msg_none"}, "after"),
        ({"before": own, "after": own}, "after"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"before": "x" * 65}, "before"),
    ):
        with subtests.test(params=params):
            path = f"{conversation_path(long_id)}/messages"
            answer = await talk.client.get(path, params=params)
            assert list(refused(answer, 422, "validation_error")["details"]) == [field]
    answer = await admin.get(f"{conversation_path(long_id)}/messages", params={"before": own})
    refused(answer, 404, "conversation_not_found")


async def test_large_bodies_come_in_slices(talk: Talker, services: Services, long_id: str) -> None:
    found = {"rows": ["ä" * 1000] * 150}
    bodies = json.dumps({"input": "q" * 3000, "output": found})
    await execute(services, _SET_BODIES, long_id, bodies)
    whole = (await list_messages(talk, long_id))[3]
    path = f"{conversation_path(long_id)}/messages/{whole['id']}"
    [shown] = [
        m for m in (await _get(talk.client, long_id, limit=12))["data"] if m["id"] == whole["id"]
    ]
    [call] = shown["tool_calls"]
    assert (call["input"], call["input_chars"]) == ("q" * 2000, 3000)
    assert len(call["output"]) == 2000
    text = ""
    offset: int | None = 0
    while offset is not None:
        params = {"part": "output", "call_id": call["id"], "offset": offset, "length": 50_000}
        piece = await _get_text(talk.client, path, **params)
        assert piece["total_chars"] == call["output_chars"]
        assert piece["offset"] == offset
        text, offset = text + piece["text"], piece["next_offset"]
    assert json.loads(text) == found
    assert text.startswith(call["output"])
    assert whole["tool_calls"][0]["output"] == found
    assert "output_chars" not in whole["tool_calls"][0]


async def test_small_bodies_stay_as_they_are(
    talk: Talker, services: Services, long_id: str
) -> None:
    bodies = {"input": {"a": [1, None]}, "output": "x" * 90_000}
    await execute(services, _SET_BODIES, long_id, json.dumps(bodies))
    [call] = (await _get(talk.client, long_id, limit=12))["data"][3]["tool_calls"]
    assert {name: call[name] for name in bodies} == bodies
    assert call.keys().isdisjoint({"input_chars", "output_chars"})


async def test_a_long_answer_comes_in_slices(
    talk: Talker, services: Services, long_id: str
) -> None:
    message_id = _ids(await _get(talk.client, long_id, limit=1))[0]
    content = "wörd " * 30_000
    sql = "UPDATE conversation_entries SET content = $2 WHERE id = $1"
    await execute(services, sql, message_id, content)
    [shown] = (await _get(talk.client, long_id, limit=1))["data"]
    assert (shown["content"], shown["content_chars"]) == (content[:2000], 150_000)
    path = f"{conversation_path(long_id)}/messages/{message_id}"
    assert await _get_text(talk.client, path, offset=149_990) == {
        "text": content[-10:],
        "offset": 149_990,
        "total_chars": 150_000,
        "next_offset": None,
    }
    assert (await _get_text(talk.client, path, offset=200_000))["text"] == ""


async def test_texts_are_for_readers_of_the_conversation(
    talk: Talker, world: World, admin: Client, long_id: str, subtests: pytest.Subtests
) -> None:
    message_id = _ids(await _get(talk.client, long_id, limit=1))[0]
    path = f"{conversation_path(long_id)}/messages/{message_id}/text"
    other = conversation_path(await start_conversation(talk))
    stranger = await world.user("agent_user", talk.client.tenant_id)
    for caller in (stranger, admin):
        with subtests.test(caller=caller.user_id):
            refused(await caller.get(path), 404, "conversation_not_found")
    missing: list[tuple[str, dict[str, str]]] = [
        (f"{other}/messages/{message_id}/text", {}),
        (path, {"part": "input", "call_id": "call_none"}),
    ]
    for wrong, params in missing:
        with subtests.test(path=wrong):
            refused(await talk.client.get(wrong, params=params), 404, "message_not_found")
    invalid: list[tuple[dict[str, Any], str]] = [
        ({"part": "input"}, "call_id"),
        ({"call_id": "call_10"}, "call_id"),
        ({"part": "all"}, "part"),
        ({"offset": -1}, "offset"),
        ({"length": 100_001}, "length"),
    ]
    for values, field in invalid:
        with subtests.test(params=values):
            answer = await talk.client.get(path, params=values)
            assert list(refused(answer, 422, "validation_error")["details"]) == [field]


async def _seed(services: Services, conversation_id: str, statistics: str) -> None:
    """Makes the conversation long, and the statistics of Postgres those of the case."""
    if statistics == "few rows":
        await execute(services, "ANALYZE conversation_entries")
    if statistics == "many short conversations":
        await execute(services, _ADD_SHORT_CONVERSATIONS, conversation_id, 2000)
        await execute(services, _ADD_SHORT_MESSAGES, conversation_id)
        await execute(services, "ANALYZE conversations, conversation_entries")
    await execute(services, _ADD_MESSAGES, conversation_id, 5000)
    if statistics == "one long conversation":
        await execute(services, "ANALYZE conversations, conversation_entries")
    if statistics == "none":
        await execute(services, _DELETE_STATISTICS)


async def test_a_page_of_a_long_conversation_reads_no_other_messages(
    talk: Talker,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    cases = ("few rows", "many short conversations", "one long conversation", "none")
    for statistics in cases:
        conversation_id = await start_conversation(talk)
        await _seed(services, conversation_id, statistics)
        middle = f"msg_{conversation_id}_2500"
        for place in ({}, {"before": middle}, {"after": middle}):
            with (
                subtests.test(statistics=statistics, place=place),
                query_plans.record_statements(monkeypatch, "conversation_entries") as statements,
            ):
                page = await _get(talk.client, conversation_id, limit=20, **place)
                assert len(page["data"]) == 20
                [statement] = statements
                plan = await query_plans.explain(services, statement)
                assert plan.rows_read("conversation_entries") <= 50
                assert plan.scans_without_index("conversation_entries") == []
    await execute(services, "ANALYZE conversations, conversation_entries")
