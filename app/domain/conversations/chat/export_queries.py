"""The SQL of exported messages."""

from typing import Final

from db import fast
from db.fast import Row, tenant_of
from db.session import Tx

from .client_queries import calls_of

_MAX_MESSAGES: Final = 200
# What a batch may have in memory, unless one message alone has more.
_MAX_BYTES: Final = 1_000_000

# The JSON comes as text: it is written as it is.
_LIST = f"""
WITH candidates AS (
    SELECT o.n, m.id FROM unnest($2::text[]) WITH ORDINALITY AS o (id, n) CROSS JOIN LATERAL (
        SELECT id, seq FROM conversation_entries
        WHERE ($1::text IS NULL OR tenant_id = $1) AND conversation_id = o.id AND type = 'message'
          AND replaced_by IS NULL AND seq > CASE WHEN o.n = 1 THEN $3::bigint ELSE 0 END
        ORDER BY seq LIMIT {_MAX_MESSAGES}
    ) m ORDER BY o.n, m.seq LIMIT {_MAX_MESSAGES}
), listed AS (
    SELECT e.id, row_number() OVER (ORDER BY d.n, e.seq) AS place, sum(
               coalesce(octet_length(e.content), 0) + octet_length(e.data::text) + coalesce(
                   (SELECT sum(octet_length(t.data::text)) FROM {calls_of("e")}), 0)
           ) OVER (ORDER BY d.n, e.seq ROWS UNBOUNDED PRECEDING) AS bytes
    FROM candidates d JOIN conversation_entries e
      ON e.id = d.id AND ($1::text IS NULL OR e.tenant_id = $1)
)
SELECT a.conversation_id, a.seq, a.id, a.role, coalesce(a.content, '') AS content, a.status,
       a.created_at, (a.data->'error')::text AS error,
       coalesce(a.data->'sources', '[]')::text AS sources,
       coalesce(a.data->'attachments', '[]')::text AS attachments,
       (SELECT coalesce(jsonb_agg(t.data - '{{message_id,function,is_client}}'::text[]
                                  ORDER BY t.seq), '[]')
        FROM {calls_of("a")} AND t.data->>'message_id' = a.id)::text AS tool_calls,
       (SELECT coalesce(json_agg(json_build_object(
                   'rating', f.rating, 'comment', f.comment, 'user_id', f.user_id,
                   'updated_at', f.updated_at) ORDER BY f.created_at, f.id), '[]')
        FROM message_feedback f
        WHERE f.tenant_id = a.tenant_id AND f.message_id = a.id)::text AS ratings
FROM listed l JOIN conversation_entries a
  ON a.id = l.id AND ($1::text IS NULL OR a.tenant_id = $1)
WHERE l.place = 1 OR l.bytes <= {_MAX_BYTES}
ORDER BY l.place
"""


async def list_messages(tx: Tx, conversation_ids: list[str], after_seq: int) -> list[Row]:
    """Returns the next messages of these conversations, in their order; of the first one, those
    after a place. None are left when it returns none.
    """
    return await fast.rows(tx, tenant_of(tx), _LIST, conversation_ids, after_seq)
