"""Measures how fast the clean-up deletes finished work."""

import time

from app.services import Services
from db.session import ALL_TENANTS
from workers.sweep import clean_up

DELETED_COUNT = 100_000
EXPIRED_WORK = """
INSERT INTO work (id, kind, ref_id, dedupe_key, state, max_attempts, correlation_id, finished_at)
SELECT 'wrk_' || n, 'bench.expired', 'ref_' || n, n, 'done', 1, 'cor_' || n,
       now() - interval '8 days' - n * interval '1 millisecond'
FROM generate_series(1, $1::int) n
"""


async def deletion_rate(services: Services) -> float:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        await raw.execute(EXPIRED_WORK, DELETED_COUNT)
        started = time.perf_counter()
        while await clean_up(services):
            pass
        seconds = time.perf_counter() - started
        if await raw.fetchval("SELECT count(*) FROM work WHERE kind = 'bench.expired'"):
            raise RuntimeError("the clean-up has left finished work")
    return DELETED_COUNT / seconds
