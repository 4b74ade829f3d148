"""SQL of usage: a row per turn and model, rolled up into hours and days in the background.

Sums add the hours or days and the rows that are not rolled up yet. Both come from one snapshot, so
that every row counts exactly once.
"""

from datetime import datetime

from db import fast
from db.fast import Row
from db.session import Tx

from . import caller_queries

_SUMS = """
coalesce(sum(conversations), 0)::bigint AS conversations,
coalesce(sum(messages), 0)::bigint AS messages,
coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS tokens,
coalesce(sum(turns), 0)::bigint AS turns,
coalesce(sum(failures), 0)::bigint AS failures,
coalesce(sum(response_time_ms), 0)::bigint AS response_time_ms
"""


def _count_ratings(rating: str) -> str:
    return f"""(
    SELECT count(*) FROM message_feedback
    WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND rating = '{rating}'
      AND ($3::timestamptz IS NULL OR message_at > $3)) AS ratings_{rating}"""


_COUNTS = ("conversations", "messages", "turns", "failures", "response_time_ms")
_TOKENS = ("prompt_tokens", "completion_tokens")


def turn_count_sql(name: str) -> str:
    """A count of a row of `usage`. Of previews, only tokens and costs count."""
    return f"CASE WHEN source = 'preview' THEN 0 ELSE {name} END AS {name}"


_ROW_COUNTS = ", ".join(map(turn_count_sql, _COUNTS))
_SUMMED = ", ".join((*_TOKENS, *_COUNTS))
_SUMMED_ROW = f"{', '.join(_TOKENS)}, {_ROW_COUNTS}"
# None has its last message before it began.
_BY_SOURCE = """(
    SELECT coalesce(json_object_agg(source, began), '{}') FROM (
        SELECT source, count(*) AS began FROM conversations
        WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND source <> 'preview'
          AND ($3::timestamptz IS NULL OR last_message_at > $3 AND created_at > $3)
        GROUP BY source
    ) of_source) AS conversations_by_source"""
_SUM_BY_AGENT = f"""
SELECT {_SUMS}, {_count_ratings("up")}, {_count_ratings("down")}, {_BY_SOURCE} FROM (
    SELECT {_SUMMED}
    FROM usage_hours
    WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2
      AND ($3::timestamptz IS NULL OR hour >= $3)
    UNION ALL
    SELECT {_SUMMED_ROW}
    FROM usage
    WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND NOT rolled
      AND ($3::timestamptz IS NULL OR created_at > $3)
    UNION ALL
    -- Of the hour in which the period begins, only the rows after its begin count.
    SELECT {_SUMMED_ROW}
    FROM usage
    WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND rolled
      AND created_at > $3
      AND created_at < date_trunc('hour', $3, 'UTC') + interval '1 hour'
      AND date_trunc('hour', $3, 'UTC') < $3
) counted
"""

# A turn that ends while its tenant is deleted leaves rows without a tenant; they are left out.
# Concurrent roll-ups lock hours and days in the same order.
_ROLL_UP = f"""
WITH claimed AS (
    UPDATE usage SET rolled = true
    WHERE ctid IN (SELECT ctid FROM usage WHERE NOT rolled LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING tenant_id, agent_id, model, date_trunc('hour', created_at, 'UTC') AS hour,
              coalesce(caller_id, user_id, '') AS caller_id, source,
              prompt_tokens, completion_tokens, cost_usd, {_ROW_COUNTS}
), summed AS (
    SELECT tenant_id, agent_id, model, hour, sum(prompt_tokens) AS prompt_tokens,
           sum(completion_tokens) AS completion_tokens, sum(cost_usd) AS cost_usd,
           sum(turns) AS turns, sum(conversations) AS conversations, sum(messages) AS messages,
           sum(failures) AS failures, sum(response_time_ms) AS response_time_ms, count(*) AS rows
    FROM claimed GROUP BY tenant_id, agent_id, model, hour
), owned AS (
    SELECT * FROM summed WHERE EXISTS (SELECT 1 FROM tenants WHERE tenants.id = summed.tenant_id)
), hours AS (
    INSERT INTO usage_hours AS h (tenant_id, agent_id, model, hour, prompt_tokens,
                                  completion_tokens, cost_usd, turns, conversations, messages,
                                  failures, response_time_ms)
    SELECT tenant_id, agent_id, model, hour, prompt_tokens, completion_tokens, cost_usd, turns,
           conversations, messages, failures, response_time_ms
    FROM owned ORDER BY agent_id, model, hour
    ON CONFLICT (agent_id, model, hour) DO UPDATE
    SET prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = h.completion_tokens + excluded.completion_tokens,
        cost_usd = h.cost_usd + excluded.cost_usd, turns = h.turns + excluded.turns,
        conversations = h.conversations + excluded.conversations,
        messages = h.messages + excluded.messages, failures = h.failures + excluded.failures,
        response_time_ms = h.response_time_ms + excluded.response_time_ms
), days AS (
    INSERT INTO usage_days AS d (tenant_id, day, agent_id, model, prompt_tokens, completion_tokens,
                                 cost_usd, turns, conversations)
    SELECT tenant_id, (hour AT TIME ZONE 'UTC')::date AS day, agent_id, model, sum(prompt_tokens),
           sum(completion_tokens), sum(cost_usd), sum(turns), sum(conversations)
    FROM owned GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant_id, day, agent_id, model) DO UPDATE
    SET prompt_tokens = d.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = d.completion_tokens + excluded.completion_tokens,
        cost_usd = d.cost_usd + excluded.cost_usd, turns = d.turns + excluded.turns,
        conversations = d.conversations + excluded.conversations
), calls AS (
    SELECT tenant_id, hour, agent_id, caller_id, source, sum(prompt_tokens) AS prompt_tokens,
           sum(completion_tokens) AS completion_tokens, sum(cost_usd) AS cost_usd,
           sum(turns) AS turns, sum(conversations) AS conversations, 0 AS requests
    FROM claimed
    WHERE EXISTS (SELECT 1 FROM tenants WHERE tenants.id = claimed.tenant_id)
    GROUP BY 1, 2, 3, 4, 5
), {caller_queries.ADD}, named AS ({caller_queries.ADD_NAMES})
SELECT coalesce(sum(rows), 0)::bigint FROM summed
"""


async def sum_by_agent(
    tx: Tx, tenant: str | None, agent_id: str, since: datetime | None
) -> Row | None:
    return await fast.row(tx, tenant, _SUM_BY_AGENT, agent_id, since)


async def roll_up(tx: Tx, limit: int) -> int:
    """Adds up to `limit` rows to their hours; returns the number of rows."""
    return int(await (await tx.raw()).fetchval(_ROLL_UP, limit))


def insert_sql(source: str, parameter: str, agent_id: str, correlation_id: str) -> str:
    """Returns an INSERT of a turn's usage, as a part of a larger statement. The rows come from one
    JSON parameter, named `u`; `source` is the FROM clause up to the join with them.
    """
    return f"""
    INSERT INTO usage (tenant_id, agent_id, conversation_id, message_id, user_id, caller_id,
                       source, model,
                       prompt_tokens, completion_tokens, cost_usd, turns, conversations, messages,
                       failures, response_time_ms, correlation_id)
    SELECT $1, {agent_id}, u.conversation_id, u.message_id, u.user_id, u.caller_id, u.source,
           u.model,
           u.prompt_tokens, u.completion_tokens, u.cost_usd, u.turns, u.conversations, u.messages,
           u.failures, u.response_time_ms, {correlation_id}
    {source} jsonb_to_recordset({parameter}::jsonb)
      AS u(conversation_id text, message_id text, user_id text, caller_id text, source text,
           model text,
           prompt_tokens int, completion_tokens int, cost_usd numeric, turns int,
           conversations int, messages int, failures int,
           response_time_ms int)"""


_ADD = insert_sql("FROM", "$3", "$2", "$4") + " ON CONFLICT (message_id, model) DO NOTHING"

# The response time of a turn is on the row of the agent's own model.
_LIST_BY_CORRELATION = """
SELECT message_id AS id, model, failures, response_time_ms, created_at,
       CASE WHEN failures > 0 THEN
           (SELECT e.data->'error'->>'message' FROM conversation_entries e
            WHERE e.id = usage.message_id AND e.tenant_id = usage.tenant_id) END AS error
FROM usage
WHERE tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND correlation_id = $2
ORDER BY created_at, message_id LIMIT $3
"""


async def add(tx: Tx, tenant: str, agent_id: str, rows: str, correlation_id: str) -> None:
    await fast.execute(tx, tenant, _ADD, agent_id, rows, correlation_id)


async def list_by_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_BY_CORRELATION, correlation_id, limit)
