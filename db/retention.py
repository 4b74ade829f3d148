"""What is deleted once its time is over, by the workers' tidying."""

import asyncpg

_FORGET = (
    "DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours'",
    "DELETE FROM sessions WHERE expires_at < now() - interval '30 days'",
    "DELETE FROM invitations WHERE expires_at < now() - interval '90 days'",
    "DELETE FROM mail_messages WHERE sent_at < now() - interval '30 days'",
    "DELETE FROM one_time_tokens WHERE expires_at < now() - interval '1 day'",
    "DELETE FROM attempts WHERE since < now() - interval '2 days'",
)


async def forget(connection: asyncpg.Connection) -> None:
    for statement in _FORGET:
        await connection.execute(statement)
