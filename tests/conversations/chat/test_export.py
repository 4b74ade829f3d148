"""GET /api/v1/conversations/export."""

import csv
import io
import json
from typing import Any

import pytest

from app.domain.conversations.chat import export
from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import list_messages, start_conversation
from tests.conversations.chat.database import execute
from tests.conversations.chat.summary_helpers import PATH, list_ids, list_summaries, rate
from tests.identity.service_keys.keys import create_program
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.world import Client, World

_EXPORT = f"{PATH}/export"
_HOSTILE = "=cmd|' /C calc'!A0"


async def _export(caller: Client, **params: Any) -> str:
    answer = await caller.get(_EXPORT, params=params)
    assert answer.status_code == 200, answer.text
    return answer.content.decode()


async def _export_lines(caller: Client, **params: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await _export(caller, **params)).splitlines()]


async def _export_rows(caller: Client, **params: Any) -> list[dict[str, str]]:
    text = await _export(caller, format="csv", **params)
    csv.field_size_limit(10_000_000)
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_a_line_has_a_conversation_with_its_messages(talk: Talker) -> None:
    await talk.with_helper()
    talk.script(
        Reply(texts=[], calls=[("delegate_to_helper", {"task": "hours"})]),
        Reply(texts=["At nine."]),
    )
    reply = await talk.say("When does the shop open?")
    await rate(talk.client, reply, "down")
    answer = await talk.client.get(_EXPORT)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"].endswith("''conversations.jsonl")
    [line] = await _export_lines(talk.client)
    [summary] = await list_summaries(talk.client)
    messages = line.pop("messages")
    assert line == {
        name: value for name, value in summary.items() if name not in {"unread", "last_message"}
    }
    for exported, shown in zip(
        messages, await list_messages(talk, reply["conversation_id"]), strict=True
    ):
        ratings = exported.pop("ratings")
        assert exported == {name: shown[name] for name in exported}
        assert exported.keys() == shown.keys() - {"feedback"}
        assert [rating["rating"] for rating in ratings] == (
            ["down"] if exported["role"] == "assistant" else []
        )
    assert messages[1]["tool_calls"][0]["tool"] == "Helper"


async def test_a_row_has_a_message_and_no_formula(talk: Talker) -> None:
    talk.script(Reply(texts=["Grüße\n=1+1"]))
    conversation_id = await start_conversation(talk, _HOSTILE)
    answer = await talk.client.get(_EXPORT, params={"format": "csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    question, reply = await _export_rows(talk.client)
    assert tuple(question) == export.COLUMNS
    assert question["conversation_id"] == reply["conversation_id"] == conversation_id
    assert (question["role"], reply["role"]) == ("user", "assistant")
    assert question["content"] == question["title"] == f"'{_HOSTILE}"
    assert reply["content"] == "Grüße\n'=1+1"
    assert json.loads(reply["ratings"]) == []


async def test_names_of_visitors_are_no_formulas(talk: Talker, services: Services) -> None:
    await start_conversation(talk)
    visitor = {"id": "=1+1", "name": "@sum(1)", "email": None}
    sql = "UPDATE conversations SET visitor = $2::text::jsonb WHERE agent_id = $1"
    await execute(services, sql, talk.agent_id, json.dumps(visitor))
    row = (await _export_rows(talk.client))[0]
    names = ("visitor_id", "visitor_name", "visitor_email")
    assert [row[name] for name in names] == ["'=1+1", "'@sum(1)", ""]


async def test_an_export_has_what_the_list_shows(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(export, "_CONVERSATIONS", 2)
    other = await talk.agent()
    replies = [await talk.say(f"Question {number}") for number in range(5)]
    await start_conversation(other)
    await rate(talk.client, replies[2], "up")
    empty = replies[0]["conversation_id"]
    await execute(services, "DELETE FROM conversation_entries WHERE conversation_id = $1", empty)
    cases: list[dict[str, Any]] = [
        {},
        {"agent_id": talk.agent_id},
        {"rating": "up"},
        {"search": "question 3"},
        {"search": "none"},
        {"unread": True},
        {"failed": False},
        {"status": "ended"},
    ]
    for params in cases:
        with subtests.test(params=params):
            shown = await list_ids(talk.client, **params)
            assert [line["id"] for line in await _export_lines(talk.client, **params)] == shown
            rows = await _export_rows(talk.client, **params)
            assert list(dict.fromkeys(row["conversation_id"] for row in rows)) == shown


_ADD_MESSAGES = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content)
SELECT tenant_id, 'msg_' || id || n, agent_id, id, 'message', 'user', repeat('x', $2)
FROM conversations, generate_series(1, $3::int) AS n WHERE id = $1 ORDER BY n
"""


async def test_long_conversations_and_large_messages_are_exported_whole(
    talk: Talker, services: Services
) -> None:
    sizes = {}
    for length, count in ((1, 450), (400_000, 5), (1_500_000, 2)):
        conversation_id = await start_conversation(talk)
        await execute(services, _ADD_MESSAGES, conversation_id, length, count)
        sizes[conversation_id] = [2, *[length] * count]
    await start_conversation(talk, "The newest")
    lines = await _export_lines(talk.client)
    assert [line["id"] for line in lines] == await list_ids(talk.client)
    for line in lines[1:]:
        lengths = [len(message["content"]) for message in line["messages"]]
        assert lengths[2:] == sizes[line["id"]][1:]
    rows = await _export_rows(talk.client)
    assert [row["message_id"] for row in rows] == [
        message["id"] for line in lines for message in line["messages"]
    ]


async def test_only_readers_export(
    talk: Talker, world: World, admin: Client, anonymous: Client
) -> None:
    await start_conversation(talk)
    user = await world.user("agent_user", talk.client.tenant_id)
    await start_conversation(talk, caller=user)
    refused(await user.get(_EXPORT), 403, "forbidden")
    refused(await anonymous.get(_EXPORT), 401, "unauthorized")
    foreign = {"agent_id": talk.agent_id}
    assert await _export(admin, **foreign) == ""
    assert await _export_rows(admin, **foreign) == []


async def test_a_key_for_certain_agents_exports_these_alone(talk: Talker) -> None:
    other = await talk.agent()
    mine = await start_conversation(talk)
    await start_conversation(other)
    program = await create_program(talk.client, "tenant_admin", agent_ids=[talk.agent_id])
    assert [line["id"] for line in await _export_lines(program)] == [mine]
    answer = await program.get(_EXPORT, params={"agent_id": other.agent_id})
    refused(answer, 403, "forbidden")


async def test_wrong_parameters_are_named(talk: Talker, subtests: pytest.Subtests) -> None:
    for params, field in (({"format": "xlsx"}, "format"), ({"from": "soon"}, "from")):
        with subtests.test(params=params):
            answer = await talk.client.get(_EXPORT, params=params)
            assert list(refused(answer, 422, "validation_error")["details"]) == [field]
