"""Selects open work that has no lane, and counts all open work.

Nothing is written here: `db/ledger.py` changes what is selected.
"""

from typing import Final

import asyncpg

# Work of the kinds `$1`, which have lanes, that a process of an earlier release accepted or
# retried. Running work stays as it is: that process writes its outcome.
MISSING_LANE: Final = """
SELECT id FROM work
WHERE kind = ANY($1) AND lane IS NULL AND tenant_id IS NOT NULL AND state = 'pending'
UNION ALL
SELECT id FROM work
WHERE kind = ANY($1) AND lane IS NULL AND tenant_id IS NOT NULL
  AND state = 'leased' AND lease_until < now()
"""

_COUNT_OPEN = """
SELECT kind, state, count(*) AS rows,
       coalesce(extract(epoch FROM now() - min(run_at)), 0)::float AS oldest
FROM work WHERE state IN ('pending', 'leased') GROUP BY kind, state
"""


async def count_open(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    return list(await connection.fetch(_COUNT_OPEN))
