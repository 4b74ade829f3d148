"""Selects due work that has no lane, and counts all open work.

Nothing is written here: `db/ledger.py` changes what is selected.
"""

from typing import Final

import asyncpg

# At most `$3` rows of the kinds `$1` that are due and were not dispatched in the last `$2` seconds:
# expired leases, work that was never dispatched, and work whose wake-up may be lost. Each part
# reads an index in its order up to the limit, however long the backlog is. The kinds come in random
# order, so that none has to wait for the backlog of another.
_IS_STALE = "dispatched_at < now() - $2 * interval '1 second'"
_OF_KIND = "kind = kinds.kind AND lane IS NULL"
DUE: Final = f"""
SELECT due.id
FROM (SELECT kind FROM unnest($1::text[]) AS kind ORDER BY random()) kinds CROSS JOIN LATERAL (
    SELECT id FROM (
        SELECT id FROM work
        WHERE {_OF_KIND} AND state = 'leased' AND lease_until < now()
          AND (dispatched_at IS NULL OR {_IS_STALE})
        ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED
    ) expired
    UNION ALL
    SELECT id FROM (
        SELECT id FROM work
        WHERE {_OF_KIND} AND state = 'pending' AND dispatched_at IS NULL AND run_at <= now()
        ORDER BY dispatched_at, run_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ) undispatched
    UNION ALL
    SELECT id FROM (
        SELECT id FROM work
        WHERE {_OF_KIND} AND state = 'pending' AND {_IS_STALE} AND run_at <= now()
        ORDER BY dispatched_at, run_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ) stale
) due
LIMIT $3
"""

# Each part has an index of its own, so that finished work is not read.
_COUNT_OPEN = """
SELECT kind, state, count(*) AS rows,
       coalesce(extract(epoch FROM now() - min(run_at)), 0)::float AS oldest
FROM (
    SELECT kind, state, run_at FROM work WHERE state = 'pending' AND lane IS NULL
    UNION ALL
    SELECT kind, state, run_at FROM work WHERE state = 'pending' AND lane IS NOT NULL
    UNION ALL
    SELECT kind, state, run_at FROM work WHERE state = 'leased'
) open_work
GROUP BY kind, state
"""


async def count_open(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    return list(await connection.fetch(_COUNT_OPEN))
