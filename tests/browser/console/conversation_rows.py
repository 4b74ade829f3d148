"""Conversations that the console shows, written without the HTTP API."""

import json
from typing import Any, Final

from app.kit.ids import new_id
from tests.database import fetch_rows
from tests.scripted_agents import Talker

_INSERT: Final = """
INSERT INTO conversations (tenant_id, id, agent_id, source, title, visitor, message_count,
                           last_message_at, failed_answers, ratings_up, ratings_down)
SELECT $1, c->>'id', $2, c->>'source', c->>'title', NULLIF(c->'visitor', 'null'),
       (c->>'message_count')::int, now() - (c->>'minutes')::int * interval '1 minute',
       (c->>'failed_answers')::int, (c->>'ratings_up')::int, (c->>'ratings_down')::int
FROM jsonb_array_elements($3::text::jsonb) AS c
"""
_INSERT_ENTRIES: Final = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                  status, data)
SELECT $1, e->>'id', $2, $3, e->>'type', e->>'role', e->>'content',
       CASE WHEN e->'data' ? 'error' THEN 'failed' ELSE 'complete' END,
       e->'data'
FROM jsonb_array_elements($4::text::jsonb) AS e
"""
_INSERT_MANY: Final = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                  data)
SELECT c.tenant_id, 'msg_' || c.id || '_' || n, c.agent_id, c.id, 'message',
       (ARRAY['assistant', 'user'])[n % 2 + 1],
       'Message ' || n || repeat(' and some more words', n % 9), '{}'
FROM conversations c, generate_series(1, $2::int) AS n WHERE c.id = $1 ORDER BY n
"""
_READ_SINCE: Final = "UPDATE conversation_readers SET read_until = now() - interval '1 hour'"


async def begin_to_read(talk: Talker) -> None:
    """What happened within the last hour is unread."""
    await talk.client.get("/api/v1/conversations")
    where = " WHERE tenant_id = $1"
    await fetch_rows(talk.world.services, _READ_SINCE + where, talk.client.tenant_id)


async def add_conversation(talk: Talker, title: str, **fields: Any) -> str:
    row = {
        "id": new_id("cnv"),
        "title": title,
        "source": "embed",
        "visitor": None,
        "message_count": 2,
        "minutes": 0,
        "failed_answers": 0,
        "ratings_up": 0,
        "ratings_down": 0,
        **fields,
    }
    await fetch_rows(
        talk.world.services,
        _INSERT,
        talk.client.tenant_id,
        talk.agent_id,
        json.dumps([row]),
    )
    return str(row["id"])


async def add_turn(
    talk: Talker, conversation_id: str, question: str, answer: str, **data: Any
) -> None:
    """`data` is that of the answer; its `call` is a call of a tool."""
    message_id, call = new_id("msg"), data.pop("call", None)
    entries: list[dict[str, Any]] = [
        {"id": new_id("msg"), "type": "message", "role": "user", "content": question, "data": {}},
        {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "content": answer,
            "data": data,
        },
    ]
    if call is not None:
        shape = {"id": "call_1", "tool_id": None, "status": "completed", "execution_time_ms": 12}
        body = {**shape, **call, "message_id": message_id}
        row = {"id": new_id("tcl"), "type": "tool_call", "role": "tool", "content": None}
        entries.insert(1, {**row, "data": body})
    await fetch_rows(
        talk.world.services,
        _INSERT_ENTRIES,
        talk.client.tenant_id,
        talk.agent_id,
        conversation_id,
        json.dumps(entries),
    )


async def add_messages(talk: Talker, conversation_id: str, number: int) -> None:
    await fetch_rows(talk.world.services, _INSERT_MANY, conversation_id, number)
