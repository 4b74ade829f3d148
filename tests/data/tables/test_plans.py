"""Pages of a large table read no more rows than they must, whatever the statistics say."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.domain.data.tables.row_statement_queries import BOUND
from app.services import Services
from tests.data.tables.api import create_table, list_rows
from tests.database import run_sql
from tests.platform.events.query_plans import explain, record_statements
from tests.world import Client, World

_ROWS = 40_000
# One row in 1,000 has the rare status; `n` is unlike the order of creation, which is that of `day`.
_INSERT = """
INSERT INTO data_rows (tenant_id, table_id, id, values, t1, n1, n2)
SELECT $1::text, $2::text, 'row_' || $2::text || lpad(i::text, 8, '0'),
       jsonb_build_object('c1', s, 'c2', n, 'c3', i), s, n, i
FROM (SELECT i, CASE WHEN i % 1000 = 7 THEN 'rare' ELSE 'common' END AS s,
             i::bigint * 7919 % $3::int AS n
      FROM generate_series(1, $3::int) i) x
"""
_COUNT = "INSERT INTO data_table_counts (tenant_id, table_id, part, rows) VALUES ($1, $2, 0, $3)"


class LargeTable(msgspec.Struct):
    owner: Client
    table: dict[str, Any]


@pytest.fixture(scope="module")
async def large(world: World) -> AsyncIterator[LargeTable]:
    owner = await world.user("agent_developer")
    columns = [
        {"name": "status", "type": "text"},
        {"name": "n", "type": "integer"},
        {"name": "day", "type": "integer"},
    ]
    table = await create_table(owner, columns)
    for sql in (_INSERT, _COUNT):
        await run_sql(world.services, sql, owner.tenant_id, table["id"], _ROWS)
    await run_sql(world.services, "ANALYZE data_rows")
    yield LargeTable(owner, table)
    for sql in ("DELETE FROM data_rows WHERE tenant_id = $1",):
        await run_sql(world.services, sql, owner.tenant_id)


# The parameters of a page, and how many rows it reads beside the count.
_PAGES: list[tuple[dict[str, str], int]] = [
    ({}, 20),
    ({"sort": "n"}, 20),
    ({"sort": "-n"}, 20),
    ({"sort": "-updated_at"}, 20),
    ({"filter[status]": "rare"}, 20),
    ({"filter[status]": "common"}, 20),
    ({"filter[status]": "common", "sort": "n"}, 100),
    ({"filter[status]": "rare", "sort": "n"}, 100),
    ({"filter[status][in]": "rare,none", "sort": "n"}, 100),
    ({"filter[n][gte]": "39000"}, 1100),
    ({"filter[n][gte]": "39000", "sort": "n"}, 20),
    ({"filter[n][gte]": "1000"}, 100),
    ({"filter[n][eq]": "77"}, 20),
    ({"filter[status][is_null]": "true"}, 0),
    # Two bounds of one column.
    ({"filter[n][gte]": "20000", "filter[n][lt]": "20100"}, 200),
    ({"filter[n][lt]": "20100", "filter[n][gte]": "20000", "sort": "-n"}, 20),
    ({"filter[day][gte]": "20000", "filter[day][lt]": "20100", "sort": "n"}, 200),
    # The driver is the condition with the fewest rows, in any order of the parameters.
    ({"filter[status]": "common", "filter[n]": "77"}, 1100),
    ({"filter[n]": "77", "filter[status]": "common"}, 1100),
    ({"filter[status]": "common", "filter[n][lt]": "50", "sort": "day"}, 1200),
    # Values that grow with the id: the matching rows are at the far end of the sort order.
    ({"filter[day][lt]": "3000"}, 11_200),
    ({"filter[day][lt]": "3000", "page": "3"}, 11_200),
    ({"filter[day][gte]": "37000", "sort": "created_at"}, 11_200),
    ({"filter[day][gte]": "3000"}, 100),
    # Of two conditions with many rows, the one with fewer is the driver.
    ({"filter[day][lt]": "3000", "filter[status]": "common"}, 25_000),
    ({"filter[day][gte]": "3000", "filter[status]": "common"}, 3200),
]


async def test_a_page_reads_few_rows(
    large: LargeTable,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    for params, most in _PAGES:
        with subtests.test(params=params):
            with record_statements(monkeypatch, "data_rows") as statements:
                await list_rows(large.owner, large.table, **params)
            for statement in statements:
                plan = await explain(services, statement)
                assert plan.scans_without_index("data_rows") == []
                assert plan.rows_read("data_rows") <= BOUND + 1 + most + 20


async def test_the_total_of_a_whole_table_is_exact(large: LargeTable) -> None:
    body = await list_rows(large.owner, large.table)
    assert body["pagination"]["total"] == _ROWS
    assert "estimated" not in body["pagination"]
