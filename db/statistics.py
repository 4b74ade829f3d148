"""Updates the planner's statistics of tables that grow fast.

Autovacuum looks for such tables once a minute. Until then, statements and foreign-key checks use
plans that were made while a table was almost empty, and read all of it. Updated statistics make
every connection plan anew.
"""

from typing import Final

import asyncpg

# A plan for a table of this size uses indexes, and stays right however large the table becomes.
_LARGE_PAGES: Final = 1_000

_GROWN = f"""
SELECT quote_ident(relname) AS name FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
  AND relpages < {_LARGE_PAGES}
  AND pg_relation_size(oid) / current_setting('block_size')::int > 2 * relpages + 4
"""


async def analyze_grown_tables(connection: asyncpg.Connection) -> list[str]:
    """Updates the statistics of tables that have doubled in size; returns the names of these."""
    names = [row["name"] for row in await connection.fetch(_GROWN)]
    for name in names:
        # Another worker may be doing it already.
        await connection.execute(f"ANALYZE (SKIP_LOCKED) {name}")
    return names
