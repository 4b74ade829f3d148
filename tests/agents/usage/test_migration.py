"""What the migration to sums by day keeps of the usage before it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.settings import Settings
from db import migrate
from tests.stores import Stores

BEFORE = "0017"
_USAGE = """
INSERT INTO usage_hours (tenant_id, agent_id, model, hour, prompt_tokens, completion_tokens,
                         cost_usd, turns, conversations, messages, response_time_ms)
SELECT 'ten_1', 'agt_1', 'acme/one', timestamptz '2026-03-14 22:00Z' + n * interval '1 hour',
       10, 1, 0.5, 1, 1, 2, 5
FROM generate_series(0, 3) AS n
"""
_TOOL = """
INSERT INTO tools (tenant_id, id, name, slug, category, tool_type, config, auth_type)
VALUES ('ten_1', 'tol_1', 'Tool', 'tool', 'custom', 'function', '{}', 'none')
"""
_EXECUTIONS = """
INSERT INTO tool_executions (tenant_id, id, tool_id, agent_id, work_id, input, correlation_id,
                             finished_at)
VALUES ('ten_1', 'exe_1', 'tol_1', 'agt_1', 'wrk_1', '{}', 'cor_1', now()),
       ('ten_1', 'exe_2', 'tol_1', NULL, 'wrk_2', '{}', 'cor_1', now() - interval '30 days'),
       ('ten_1', 'exe_3', 'tol_1', NULL, 'wrk_3', '{}', 'cor_1', NULL)
"""


@pytest.fixture
async def behind(stores: Stores) -> Settings:
    return await stores.create_database(BEFORE)


@pytest.fixture
async def raw(behind: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(behind.database_url)
    yield connection
    await connection.close()


async def test_usage_and_executions_of_earlier_days_are_summed_up(
    behind: Settings, raw: asyncpg.Connection
) -> None:
    await raw.execute("INSERT INTO tenants (id, name, plan) VALUES ('ten_1', 'Acme', 'free')")
    for statement in (_USAGE, _TOOL, _EXECUTIONS):
        await raw.execute(statement)
    await migrate.upgrade(behind.sqlalchemy_url)
    days = await raw.fetch(
        "SELECT day::text, prompt_tokens, cost_usd::float, conversations FROM usage_days"
        " ORDER BY day"
    )
    assert [tuple(day) for day in days] == [("2026-03-14", 20, 1.0, 2), ("2026-03-15", 20, 1.0, 2)]
    counts = await raw.fetch("SELECT agent_id, amount FROM usage_count_days ORDER BY day")
    assert [tuple(count) for count in counts] == [("", 1), ("agt_1", 1)]
    assert await raw.fetchval("SELECT sum(amount) FROM usage_count_hours") == 1
