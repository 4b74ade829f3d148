"""Runs the work of executions one row at a time, so that a test decides about the order."""

from typing import Any

from app.domain.platform.events.service import emit_dead
from app.services import Services
from tests.database import fetch_rows, run_sql
from workers.runner import Runner

_DUE = """
SELECT id FROM work WHERE tenant_id = $1 AND (kind LIKE 'workflows.%' OR kind LIKE '%.report_%')
  AND (state = 'pending' AND run_at <= now() OR state = 'leased' AND lease_until < now())
ORDER BY id
"""


class Hand:
    """Runs work in place of a worker."""

    def __init__(self, services: Services, tenant_id: str) -> None:
        self.services = services
        self.tenant_id = tenant_id
        self.runner = Runner(services, on_any_dead=emit_dead, max_consecutive=1)

    async def list_due(self) -> list[str]:
        return [row["id"] for row in await self.fetch(_DUE, self.tenant_id)]

    async def run(self, work_id: str) -> None:
        await self.runner.run(work_id)

    async def run_due(self) -> None:
        """Runs all that is due, and what becomes due by that."""
        while due := await self.list_due():
            for work_id in due:
                await self.run(work_id)

    async def make_due(self, *, timers: bool = True) -> None:
        """Moves the times of timers, or of retries, to now."""
        await self.sql(
            "UPDATE work SET run_at = now() WHERE tenant_id = $1 AND kind = 'workflows.node'"
            " AND state = 'pending' AND ref_id LIKE '%:timer' = $2",
            self.tenant_id,
            timers,
        )

    async def repeat(self) -> int:
        """Delivers all finished work of nodes again, as if its outcome had not been recorded."""
        rows = await self.sql(
            "UPDATE work SET state = 'pending', finished_at = NULL, attempt = 0, run_at = now()"
            " WHERE tenant_id = $1 AND kind = 'workflows.node' AND state = 'done' RETURNING id",
            self.tenant_id,
        )
        for row in rows:
            await self.run(row["id"])
        return len(rows)

    async def fetch(self, sql: str, *args: object) -> list[dict[str, Any]]:
        return await fetch_rows(self.services, sql, *args)

    async def sql(self, sql: str, *args: object) -> list[dict[str, Any]]:
        return await run_sql(self.services, sql, *args)

    async def count_events(self, execution_id: str) -> dict[str, int]:
        """Returns how many events of each type there are about an execution."""
        rows = await self.fetch(
            "SELECT split_part(type, 'execution.', 2) AS name, count(*) AS count FROM event_log"
            " WHERE tenant_id = $1 AND data->>'execution_id' = $2 GROUP BY type",
            self.tenant_id,
            execution_id,
        )
        return {row["name"]: row["count"] for row in rows}
