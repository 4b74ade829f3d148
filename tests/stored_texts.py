"""Searches what a test has stored, in all tables and in Redis, for texts that must not be there."""

from typing import Any

import msgspec
from redis.asyncio import Redis

from app.services import Services
from db.session import ALL_TENANTS

_TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind = 'r'
"""


class NewRows(msgspec.Struct):
    """The rows that were stored since `start`; those of earlier tests take seconds to search."""

    services: Services
    transaction_id: str

    @classmethod
    async def start(cls, services: Services) -> "NewRows":
        async with services.db.tx(ALL_TENANTS) as tx:
            transaction_id = await (await tx.raw()).fetchval("SELECT pg_current_xact_id()::text")
        return cls(services, transaction_id)

    async def find(self, *texts: str) -> set[str]:
        """Returns the tables with one of the texts. Fails where no row was stored."""
        tables: set[str] = set()
        row_count = 0
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            for (table,) in await raw.fetch(_TABLES):
                sql = f'SELECT t::text FROM "{table}" t WHERE age(t.xmin) <= age($1::text::xid)'
                rows = await raw.fetch(sql, self.transaction_id)
                row_count += len(rows)
                if any(text in row for (row,) in rows for text in texts):
                    tables.add(table)
        assert row_count
        return tables


async def find_in_redis(redis: Redis, *texts: str) -> list[str]:
    """Returns the keys with one of the texts in their name or value. A test empties Redis before it
    begins, as the values of earlier tests take seconds to read. Fails where Redis is empty.
    """
    values = {str(key): await _read(redis, key) async for key in redis.scan_iter(count=1000)}
    assert values
    return [key for key, value in values.items() if any(text in key + value for text in texts)]


async def _read(redis: Any, key: Any) -> str:
    kind = await redis.type(key)
    match kind if isinstance(kind, str) else kind.decode():
        case "string":
            value = await redis.get(key)
        case "hash":
            value = await redis.hgetall(key)
        case "list":
            value = await redis.lrange(key, 0, -1)
        case "set":
            value = await redis.smembers(key)
        case "zset":
            value = await redis.zrange(key, 0, -1)
        case "stream":
            value = await redis.xrange(key)
        case "none":
            return ""
        case other:
            raise AssertionError(f"cannot look into {other!r}")
    return repr(value)
