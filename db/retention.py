"""What is deleted once its time is over, by the workers' tidying."""

import asyncpg

_FORGET = (
    "DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours'",
    "DELETE FROM sessions WHERE expires_at < now() - interval '30 days'",
    "DELETE FROM invitations WHERE expires_at < now() - interval '90 days'",
    "DELETE FROM mail_messages WHERE sent_at < now() - interval '30 days'",
    "DELETE FROM one_time_tokens WHERE expires_at < now() - interval '1 day'",
    "DELETE FROM attempts WHERE since < now() - interval '2 days'",
    """
    DELETE FROM chat_jobs j USING agents a
    WHERE j.agent_id = a.id
      AND j.finished_at < now() - least(a.retention_days, 30) * interval '1 day'
    """,
    "DELETE FROM usage WHERE rolled AND created_at < now() - interval '400 days'",
    # What people said is kept for as long as its agent's log settings say.
    """
    DELETE FROM conversation_entries e USING agents a
    WHERE e.tenant_id = a.tenant_id AND e.agent_id = a.id
      AND e.created_at < now() - a.retention_days * interval '1 day'
    """,
    """
    DELETE FROM conversations c USING agents a
    WHERE c.tenant_id = a.tenant_id AND c.agent_id = a.id
      AND c.last_message_at < now() - a.retention_days * interval '1 day'
      AND (c.turn_until IS NULL OR c.turn_until < now())
    """,
    """
    UPDATE conversations c SET title = '' FROM agents a
    WHERE c.tenant_id = a.tenant_id AND c.agent_id = a.id AND c.title <> ''
      AND c.created_at < now() - a.retention_days * interval '1 day'
    """,
    """
    DELETE FROM event_log e USING agents a
    WHERE e.type IN ('agent.chat.message', 'agent.chat.completed')
      AND e.data->>'agent_id' = a.id AND e.tenant_id = a.tenant_id
      AND e.created_at < now() - a.retention_days * interval '1 day'
    """,
)


async def forget(connection: asyncpg.Connection) -> None:
    for statement in _FORGET:
        await connection.execute(statement)
