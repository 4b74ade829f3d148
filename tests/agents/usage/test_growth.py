"""The usage report reads sums: its cost does not grow with the number of turns."""

from typing import Any

import msgspec
import pytest

from app.domain.agents.usage import service as usage
from app.domain.agents.usage import summary_queries
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import wait_until
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
# Sums of many tenants, all before the period of a report.
_OLD_ROWS = (
    """
    INSERT INTO tenants (id, name, plan)
    SELECT 'tnt_' || n, 'T', 'free' FROM generate_series(0, 1999) AS n
    """,
    """
    INSERT INTO usage_hours (tenant_id, agent_id, model, hour, prompt_tokens, completion_tokens,
                             cost_usd, turns, conversations, messages, response_time_ms)
    SELECT 'tnt_' || n % 2000, 'agt_' || n, 'acme/0', now() - interval '100 days', 1, 1, 0, 1, 1, 2,
           5
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO usage_days (tenant_id, agent_id, model, day, prompt_tokens, completion_tokens,
                            cost_usd, conversations)
    SELECT 'tnt_' || n % 2000, 'agt_' || n, 'acme/0', current_date - 100, 1, 1, 0, 1
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO usage_count_hours (tenant_id, kind, agent_id, hour, amount)
    SELECT 'tnt_' || n % 2000, 'tool_executions', 'agt_' || n, now() - interval '100 days', 1
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO usage_count_days (tenant_id, kind, agent_id, day, amount)
    SELECT 'tnt_' || n % 2000, 'tool_executions', 'agt_' || n, current_date - 100, 1
    FROM generate_series(1, $1::int) AS n
    """,
    "ANALYZE tenants, usage_hours, usage_days, usage_count_hours, usage_count_days",
)
_IS_ROLLED_UP = """
SELECT NOT EXISTS (SELECT 1 FROM usage WHERE NOT rolled)
   AND NOT EXISTS (SELECT 1 FROM usage_counts) AS is_rolled_up
"""
_SUMS = ("usage_hours", "usage_days", "usage_count_hours", "usage_count_days")
_SMALL, _LARGE = 500, 5000
_OLD = 20_000


def _rows_read(plan: dict[str, Any]) -> float:
    """Returns how many rows of usage the scans of a plan read, with those that a filter removed."""
    rows = 0.0
    if plan.get("Relation Name", "").startswith("usage"):
        read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        rows = read * plan["Actual Loops"]
    return rows + sum(map(_rows_read, plan.get("Plans", [])))


def _decode(plan: Any) -> dict[str, Any]:
    decoded = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    root: dict[str, Any] = decoded[0]["Plan"]
    return root


def _count_blocks(plan: dict[str, Any]) -> int:
    """Returns how many blocks of sums and of their indexes the scans of a plan read."""
    if plan.get("Relation Name") in _SUMS:
        blocks: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return blocks
    return sum(map(_count_blocks, plan.get("Plans", [])))


def _explain_sql(unit: Any, *, is_one: bool) -> str:
    return f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {summary_queries._SUMMARY[unit, is_one]}"


async def _explain(services: Services, tenant_id: str, unit: Any, days: int) -> float:
    sql = _explain_sql(unit, is_one=True)
    (since,) = await run_sql(services, "SELECT now() - $1::int * interval '1 day' AS since", days)
    (row,) = await run_sql(services, sql, tenant_id, since["since"], None, None, tenant_id)
    return _rows_read(_decode(row["QUERY PLAN"]))


async def _roll_up_all(services: Services) -> bool:
    """False while a worker rolls up some of the rows, which `roll_up` skips."""
    await usage.roll_up(services)
    (row,) = await run_sql(services, _IS_ROLLED_UP)
    return bool(row["is_rolled_up"])


async def test_a_report_reads_few_rows_however_many_turns_there_were(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    tenants = {count: await world.tenant() for count in (_SMALL, _LARGE)}
    for count, tenant_id in tenants.items():
        for sql in (_ADD_ROWS, _ADD_COUNTS):
            await run_sql(services, sql, tenant_id, count)
    await wait_until(lambda: _roll_up_all(services))
    # Otherwise the plan depends on the rows that other tests have left, and on when they were seen.
    await run_sql(services, f"ANALYZE usage, usage_counts, {', '.join(_SUMS)}")
    for unit, days in (("hour", 1), ("day", 30), ("day", 10_000)):
        with subtests.test(unit=unit, days=days):
            small, large = [
                await _explain(services, tenant_id, unit, days) for tenant_id in tenants.values()
            ]
            assert large <= 3 * small < 3 * _SMALL


async def test_a_report_on_all_tenants_reads_no_sums_before_its_period(
    services: Services, subtests: pytest.Subtests
) -> None:
    await usage.roll_up(services)
    tx = services.db.begin(ALL_TENANTS)
    raw = await tx.raw()
    for sql in _OLD_ROWS:
        await raw.execute(sql, *([_OLD] if "$1" in sql else []))
    for unit, days in (("hour", 1), ("day", 7), ("day", 90)):
        with subtests.test(unit=unit, days=days):
            since = await raw.fetchval("SELECT now() - $1::int * interval '1 day'", days)
            sql = _explain_sql(unit, is_one=False)
            plan = await raw.fetchval(sql, None, since, None, None, "tnt_1")
            # The rows before the period have about 400; other tests have some in it.
            assert _count_blocks(_decode(plan)) < 200
    await tx.rollback()
