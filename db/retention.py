"""What is deleted once its time is over, by the workers' tidying: a batch at a time."""

import asyncpg

_BATCH = 5000


def _old(table: str, condition: str, join: str = "") -> str:
    """Rows of a table that meet a condition, at most a batch of them."""
    return f"""
    DELETE FROM {table} WHERE ctid IN (
        SELECT t.ctid FROM {table} t {join} WHERE {condition} LIMIT {_BATCH}
    )
    """  # noqa: S608  # our own text


# What people said is kept for as long as its agent's log settings say.
_AGENT = "JOIN agents a ON a.id = t.agent_id AND a.tenant_id = t.tenant_id"
_KEPT = "now() - a.retention_days * interval '1 day'"
_IDLE = "(t.turn_until IS NULL OR t.turn_until < now())"

_FORGET = (
    _old("idempotency_keys", "t.created_at < now() - interval '24 hours'"),
    _old("sessions", "t.expires_at < now() - interval '30 days'"),
    _old("invitations", "t.expires_at < now() - interval '90 days'"),
    _old("mail_messages", "t.sent_at < now() - interval '30 days'"),
    _old("one_time_tokens", "t.expires_at < now() - interval '1 day'"),
    _old("attempts", "t.since < now() - interval '2 days'"),
    _old("usage", "t.rolled AND t.created_at < now() - interval '400 days'"),
    # As long as the longest period that figures are asked for.
    _old("tool_executions", "t.executed_at < now() - interval '90 days'"),
    # With their attempts. What is still to be delivered is never that old.
    _old("deliveries", "t.created_at < now() - interval '90 days' AND t.status <> 'pending'"),
    _old("incoming_payloads", "t.created_at < now() - interval '90 days'"),
    _old(
        "event_log",
        "t.type = 'system.incoming_webhook.received' AND t.created_at < now() - interval '90 days'",
    ),
    _old(
        "chat_jobs",
        "t.finished_at < now() - least(a.retention_days, 30) * interval '1 day'",
        _AGENT,
    ),
    _old("conversation_entries", f"t.created_at < {_KEPT}", _AGENT),
    _old("conversations", f"t.last_message_at < {_KEPT} AND {_IDLE}", _AGENT),
    _old(
        "event_log",
        "t.type IN ('agent.chat.message', 'agent.chat.completed') AND NOT t.test"
        f" AND t.created_at < {_KEPT}",
        "JOIN agents a ON a.id = t.data->>'agent_id' AND a.tenant_id = t.tenant_id",
    ),
)
# A tool's run stays for its figures; what an agent said to it goes with the agent's log.
_UNSAY = f"""
UPDATE tool_executions t SET input = '{{}}', output = NULL, error_message = NULL FROM agents a
WHERE t.agent_id = a.id AND t.tenant_id = a.tenant_id AND a.retention_days < 90
  AND (t.input::text <> '{{}}' OR t.output IS NOT NULL OR t.error_message IS NOT NULL)
  AND t.executed_at < {_KEPT}
"""  # noqa: S608
_UNTITLE = f"""
UPDATE conversations t SET title = '' FROM agents a
WHERE t.agent_id = a.id AND t.tenant_id = a.tenant_id AND t.title <> '' AND t.created_at < {_KEPT}
"""  # noqa: S608


async def forget(connection: asyncpg.Connection) -> None:
    """Each statement is a transaction of its own, so that nothing is locked for long."""
    for statement in _FORGET:
        while (await connection.execute(statement)).rpartition(" ")[2] == str(_BATCH):
            pass
    await connection.execute(_UNTITLE)
    await connection.execute(_UNSAY)
