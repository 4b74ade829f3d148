"""The usage report reads sums: its cost does not grow with the number of turns."""

from typing import Any

import msgspec
import pytest

from app.domain.usage import service as usage
from app.domain.usage import summary_queries
from app.services import Services
from tests.database import run_sql
from tests.world import World

_ADD_ROWS = """
INSERT INTO usage (tenant_id, agent_id, conversation_id, message_id, source, model, prompt_tokens,
                   completion_tokens, cost_usd, turns, conversations, messages, response_time_ms,
                   created_at)
SELECT $1::text, $1 || n % 5, '', $1 || n, 'console', 'acme/' || n % 2, 1, 1, 0, 1, 1, 2, 5,
       now() - (n % 20) * interval '1 day' - (n % 23) * interval '1 minute'
FROM generate_series(1, $2::int) AS n
"""
_ADD_COUNTS = """
INSERT INTO usage_counts (tenant_id, kind, id, agent_id, created_at)
SELECT $1::text, 'tool_executions', $1 || n, $1 || n % 5, now() - (n % 20) * interval '1 day'
FROM generate_series(1, $2::int) AS n
"""
_SMALL, _LARGE = 1000, 20_000


def _rows_read(plan: dict[str, Any]) -> float:
    """Returns how many rows the scans of a plan read, with those that a filter removed."""
    rows = 0.0
    if "Relation Name" in plan:
        read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        rows = read * plan["Actual Loops"]
    return rows + sum(map(_rows_read, plan.get("Plans", [])))


async def _explain(services: Services, tenant_id: str, unit: Any, days: int) -> float:
    statement = summary_queries._SUMMARY[unit, True]
    sql = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
    (since,) = await run_sql(services, "SELECT now() - $1::int * interval '1 day' AS since", days)
    (row,) = await run_sql(services, sql, tenant_id, since["since"], None, None, tenant_id)
    plan = row["QUERY PLAN"]
    decoded = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    return _rows_read(decoded[0]["Plan"])


async def test_a_report_reads_few_rows_however_many_turns_there_were(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    tenants = {count: await world.tenant() for count in (_SMALL, _LARGE)}
    for count, tenant_id in tenants.items():
        for sql in (_ADD_ROWS, _ADD_COUNTS):
            await run_sql(services, sql, tenant_id, count)
    await usage.roll_up(services)
    await run_sql(services, "ANALYZE usage")
    for unit, days in (("hour", 1), ("day", 30), ("day", 10_000)):
        with subtests.test(unit=unit, days=days):
            small, large = [
                await _explain(services, tenant_id, unit, days) for tenant_id in tenants.values()
            ]
            assert large <= 3 * small < 3 * _SMALL
