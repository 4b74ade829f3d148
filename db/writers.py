"""Which transactions of this database have written something and are still open."""

from datetime import datetime

import asyncpg


async def read_time(raw: asyncpg.Connection) -> datetime:
    """Returns the time of the server."""
    time: datetime = await raw.fetchval("SELECT clock_timestamp()")
    return time


async def has_writer_since_before(raw: asyncpg.Connection, time: datetime) -> bool:
    """Whether a transaction that began before that time is open and has written."""
    exists: bool = await raw.fetchval(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_xid IS NOT NULL AND xact_start < $1 AND pid <> pg_backend_pid())",
        time,
    )
    return exists
