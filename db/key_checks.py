"""The stored check values of root keys, one for each key that seals values of this database."""

import asyncpg

_PREFIX = "key_check"


async def read(raw: asyncpg.Connection) -> list[bytes]:
    """Returns no values when the database has no schema yet."""
    if await raw.fetchval("SELECT to_regclass('instance_state') IS NULL"):
        return []
    rows = await raw.fetch(
        "SELECT value FROM instance_state WHERE key LIKE $1 AND value IS NOT NULL ORDER BY key",
        f"{_PREFIX}%",
    )
    return [bytes.fromhex(row["value"]) for row in rows]


async def add(raw: asyncpg.Connection, kid: str, check_value: bytes) -> None:
    """Stores the check value of a key unless another process has stored one."""
    await raw.execute(
        "INSERT INTO instance_state (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
        f"{_PREFIX}:{kid}",
        check_value.hex(),
    )


async def replace(raw: asyncpg.Connection, kid: str, check_value: bytes) -> None:
    """Stores the check value of a key and deletes those of all other keys."""
    await raw.execute(
        "WITH deleted AS (DELETE FROM instance_state WHERE key LIKE $1 AND key <> $2) "
        "INSERT INTO instance_state (key, value) VALUES ($2, $3) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        f"{_PREFIX}%",
        f"{_PREFIX}:{kid}",
        check_value.hex(),
    )
