"""Work in the background that the console shows, written without running it."""

from typing import Final

from app.kit.ids import new_id
from app.services import Services
from tests.database import run_sql

_ADD_WORK: Final = """
INSERT INTO work (tenant_id, id, kind, ref_id, state, attempt, max_attempts, last_error,
                  correlation_id, run_at, finished_at)
VALUES ($1, $2::text, $3, 'rec_1', 'dead', 3, 3, $4, $2::text, now(), now())
"""
RETRYABLE: Final = "events.act"
NOT_RETRYABLE: Final = "tools.run"


async def add_dead_work(
    services: Services, tenant_id: str, kind: str = RETRYABLE, error: str = "unexpected OSError"
) -> str:
    work_id = new_id("wrk")
    await run_sql(services, _ADD_WORK, tenant_id, work_id, kind, error)
    return work_id
