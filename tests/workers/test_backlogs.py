"""The statements that workers and web processes repeat, with a long backlog."""

import pytest

from app.services import Services
from db import backlog, ledger
from db.session import ALL_TENANTS
from tests.database import fetch_rows
from tests.platform.events.query_plans import Statement, explain
from tests.workers.factories import BRIEF, QUICK, execute

_KINDS = [QUICK.name, BRIEF.name]
_COUNT = 1000
_LIMIT = 10

# Of two kinds: work that was just dispatched, lost wake-ups, work that was never dispatched,
# retries that are not due yet, and finished work.
_ADD = """
INSERT INTO work (id, tenant_id, kind, max_attempts, correlation_id, state, run_at, dispatched_at)
SELECT concat('wrk_', kind, age.number, n), $1, kind, 1, 'cor', state,
       now() + (wait - n) * interval '1 ms', now() - age.minutes * interval '1 minute'
FROM generate_series(1, $2::int) n, unnest($3::text[]) kind,
     (VALUES (1, 'pending', 0, 0), (2, 'pending', 10, 0), (3, 'pending', NULL, 0),
             (4, 'pending', NULL, 9999999), (5, 'done', 10, 0))
       AS age(number, state, minutes, wait)
"""
_DUE = 4 * _COUNT


@pytest.fixture(autouse=True)
async def _backlog(services: Services, tenant: str) -> None:
    await execute(services, _ADD, tenant, _COUNT, _KINDS)
    await execute(services, "ANALYZE work")


async def test_a_poll_reads_no_more_rows_than_it_dispatches(services: Services) -> None:
    plan = await explain(services, Statement(ledger._DISPATCH_DUE, (_KINDS, 30, _LIMIT)))
    # The index, the join with the table and the update read each row.
    assert plan.rows_read("work") == 3 * _LIMIT
    assert plan.scans_without_index("work") == ["ModifyTable"]


async def test_counting_open_work_reads_no_finished_work(services: Services) -> None:
    await execute(services, "UPDATE work SET state = 'done' WHERE id NOT LIKE '%00'")
    await execute(services, "ANALYZE work")
    plan = await explain(services, Statement(backlog._COUNT_OPEN, ()))
    rows = await fetch_rows(services, backlog._COUNT_OPEN)
    # Work of other kinds may still arrive from what earlier tests have left running.
    assert plan.rows_read("work") == sum(row["rows"] for row in rows)
    counts = {(row["kind"], row["state"]): row["rows"] for row in rows if row["kind"] in _KINDS}
    assert counts == {(kind, "pending"): 4 * _COUNT // 100 for kind in _KINDS}


async def test_every_due_row_is_dispatched_once(services: Services) -> None:
    work_ids: list[str] = []
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        while due := await ledger.dispatch_due(raw, _KINDS, 30, _COUNT + 7):
            work_ids += [item.id for item in due]
    assert len(work_ids) == len(set(work_ids)) == _DUE
