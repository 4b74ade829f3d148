"""The SQL of messages before or after a place in their conversation, with bounded texts.

A long conversation is read from its end, and a large text in slices: what a page reads depends on
the page alone.
"""

from typing import Final, Literal

import msgspec

from app.security.principal import Principal
from db import fast
from db.fast import Row, tenant_of
from db.session import Tx
from db.views import View

from . import feedback_queries
from .client_queries import calls_of
from .schemas import MessageView

# The texts of a message that are shown whole have so many bytes together; of others, the beginning
# is shown.
MAX_BYTES: Final = 100_000
SHOWN_CHARS: Final = 2_000
Part = Literal["content", "input", "output"]


def _text_of(part: str) -> str:
    """Returns a text as it is, and anything else as JSON."""
    return f"""coalesce(CASE WHEN jsonb_typeof(t.data->'{part}') = 'string'
        THEN t.data->>'{part}' ELSE (t.data->'{part}')::text END, '')"""


def _shorten(part: str) -> str:
    return f"""CASE WHEN s.bytes > {MAX_BYTES} AND length(s.{part}) > {SHOWN_CHARS} THEN
        jsonb_build_object('{part}', left(s.{part}, {SHOWN_CHARS}),
                           '{part}_chars', length(s.{part})) ELSE '{{}}' END"""


_IS_LONG = f"octet_length(e.content) > {MAX_BYTES}"
_MESSAGE = View(
    MessageView,
    "e",
    computed=("content_chars",),
    content=f"""coalesce(
        CASE WHEN {_IS_LONG} THEN left(e.content, {SHOWN_CHARS}) ELSE e.content END, '')""",
    tool_calls="coalesce(c.calls, '[]')",
    sources="coalesce(e.data->'sources', '[]')",
    error="e.data->'error'",
    attachments="coalesce(e.data->'attachments', '[]')",
    feedback=feedback_queries.select_sql("e.id", "e.tenant_id", "$4"),
)
# A walk from entry to entry, because the planner does not know how long a conversation is: for a
# short one it would read all entries and sort them. Each step is `LIMIT 1` by the index of the
# conversation, which no statistics make more expensive than that. The calls of an answer are before
# it, hence on the way.
_PAGE = f"""
WITH RECURSIVE entries AS (
    SELECT (NULL::conversation_entries).*, $start AS place, 0 AS messages
    FROM conversations c
    WHERE ($1::text IS NULL OR c.tenant_id = $1) AND c.id = $2
      AND ($3::text IS NULL OR c.user_id = $3)
  UNION ALL
    SELECT e.*, e.seq, w.messages + (e.type = 'message' AND e.replaced_by IS NULL)::int
    FROM entries w CROSS JOIN LATERAL (
        SELECT * FROM conversation_entries n
        WHERE n.conversation_id = $2 AND n.seq $beyond w.place
        ORDER BY n.seq $direction LIMIT 1
    ) e
    WHERE w.messages < $5
)
SELECT {_MESSAGE.columns}, CASE WHEN {_IS_LONG} THEN length(e.content) END AS content_chars
FROM entries e LEFT JOIN LATERAL (
    SELECT json_agg(s.data || {_shorten("input")} || {_shorten("output")} ORDER BY s.seq) AS calls
    FROM (
        SELECT *, coalesce(octet_length(e.content), 0)
                  + sum(octet_length(input) + octet_length(output)) OVER (ORDER BY seq) AS bytes
        FROM (SELECT t.seq, t.data, {_text_of("input")} AS input, {_text_of("output")} AS output
              FROM entries t
              WHERE ($1::text IS NULL OR t.tenant_id = $1) AND t.type = 'tool_call'
                AND t.seq < e.seq AND t.data->>'message_id' = e.id) texts
    ) s
) c ON e.role = 'assistant'
WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.type = 'message' AND e.replaced_by IS NULL
ORDER BY e.seq
"""
# By its id alone, which no statistics change: `IS TRUE` is used with no index.
_PLACE = """(
    SELECT p.seq FROM conversation_entries p
    WHERE p.id = $6 AND ($1::text IS NULL OR p.tenant_id = $1)
      AND (p.conversation_id = $2) IS TRUE AND p.type = 'message')"""
_END = str(2**63 - 1)


def _page_sql(start: str, beyond: str, direction: str) -> str:
    sql = _PAGE.replace("$start", f"{start}::bigint").replace("$beyond", beyond)
    return sql.replace("$direction", direction)


_LAST = _page_sql(_END, "<", "DESC")
_BEFORE = _page_sql(_PLACE, "<", "DESC")
_AFTER = _page_sql(_PLACE, ">", "ASC")


class MessageRange(msgspec.Struct, frozen=True):
    """The last messages of a conversation, the last ones before a message, or the first ones after
    one.
    """

    before: str | None
    after: str | None
    limit: int


async def list_range(
    tx: Tx, principal: Principal, conversation_id: str, wanted: MessageRange, limit: int
) -> list[MessageView]:
    """Returns up to `limit` messages, the oldest first."""
    only_user = None if principal.may("conversations:read") else principal.user_id
    args: list[object] = [conversation_id, only_user, principal.user_id, limit]
    sql = _LAST
    if wanted.before is not None:
        sql = _BEFORE
        args.append(wanted.before)
    elif wanted.after is not None:
        sql = _AFTER
        args.append(wanted.after)
    rows = await fast.rows(tx, tenant_of(tx), sql, *args)
    return [_build(row) for row in rows]


def _build(row: Row) -> MessageView:
    chars = row["content_chars"]
    return _MESSAGE.build(row, content_chars=msgspec.UNSET if chars is None else chars)


_IS_MESSAGE = """
SELECT 1 FROM conversation_entries
WHERE ($1::text IS NULL OR tenant_id = $1) AND conversation_id = $2 AND type = 'message' AND id = $3
"""
_FIND_TEXT = f"""
SELECT substr(text, $5 + 1, $6) AS text, length(text) AS total_chars FROM (
    SELECT CASE $4 WHEN 'content' THEN coalesce(e.content, '')
                   WHEN 'input' THEN {_text_of("input")}
                   ELSE {_text_of("output")} END AS text
    FROM conversation_entries e
    JOIN conversations o ON o.tenant_id = e.tenant_id AND o.id = e.conversation_id
    LEFT JOIN LATERAL (
        SELECT t.data FROM {calls_of("e")} AND t.data->>'message_id' = e.id
          AND t.data->>'id' = $7
        ORDER BY t.seq LIMIT 1
    ) t ON true
    WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.conversation_id = $2 AND e.id = $3
      AND e.type = 'message' AND ($8::text IS NULL OR o.user_id = $8)
      AND ($4 = 'content' OR t.data IS NOT NULL)
) found
"""


async def is_message(tx: Tx, conversation_id: str, message_id: str) -> bool:
    return bool(await fast.value(tx, tenant_of(tx), _IS_MESSAGE, conversation_id, message_id))


class TextRange(msgspec.Struct, frozen=True):
    """A part of a message's content, or of the input or output of one of its calls."""

    part: Part
    call_id: str | None
    offset: int
    length: int


async def find_text(
    tx: Tx, principal: Principal, conversation_id: str, message_id: str, wanted: TextRange
) -> Row | None:
    only_user = None if principal.may("conversations:read") else principal.user_id
    ids = (conversation_id, message_id)
    place = (wanted.part, wanted.offset, wanted.length, wanted.call_id)
    return await fast.row(tx, tenant_of(tx), _FIND_TEXT, *ids, *place, only_user)
