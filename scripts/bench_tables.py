"""Measures pages of a data table with a million rows against one with a thousand."""

from collections.abc import Callable
from typing import Any

from bench_events import time_list

from tests.world import Client, World

_FEW = 1_000
_MANY = 1_000_000
_COLUMNS = [
    {"name": "name", "type": "text"},
    {"name": "city", "type": "select", "options": ["London", "Paris", "Rome", "Oslo"]},
    {"name": "amount", "type": "number"},
    {"name": "email", "type": "text", "unique": True},
]
# As the API stores them: the values, and those of indexed columns once more in slots.
_ADD_ROWS = """
INSERT INTO data_rows (tenant_id, table_id, id, values, t1, t2, t3, n1, u1)
SELECT $1::text, $2::text, 'row_' || right($2::text, 12) || lpad(n::text, 14, '0'),
       jsonb_build_object('c1', 'Person ' || n, 'c2', city, 'c3', n % 1000,
                          'c4', n || '@example.com'),
       'Person ' || n, city, n || '@example.com', n % 1000, 'v' || n || '@example.com'
FROM generate_series(1, $3::int) n
CROSS JOIN LATERAL (SELECT (ARRAY['London', 'Paris', 'Rome', 'Oslo'])[1 + n % 4] AS city) c
"""
_ADD_COUNT = """
INSERT INTO data_table_counts (tenant_id, table_id, part, rows) VALUES ($1, $2, 0, $3)
"""
_PAGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("newest rows", {}),
    ("rows by a select", {"filter[city][eq]": "Rome"}),
    ("rows above a number, by it", {"filter[amount][gte]": "990", "sort": "amount"}),
    ("one row by a unique text", {"filter[email][eq]": "77@example.com"}),
)

Row = Callable[..., None]


async def bench(world: World, row: Row) -> None:
    user = await world.user("tenant_admin")
    few, many = [await _create_table(world, user, count) for count in (_FEW, _MANY)]
    for name, query in _PAGES:
        small, large = await time_list(user, few, query), await time_list(user, many, query)
        ratio = large / small
        row(f"data table: {name}", f"{large:.1f} ms", f"{small:.1f} ms", f"{ratio:.1f}-fold",
            "≤ 3-fold", holds=ratio <= 3)  # fmt: skip


async def _create_table(world: World, user: Client, count: int) -> str:
    body = {"name": f"{count} rows", "columns": _COLUMNS}
    answer = await user.post("/api/v1/data-tables", body)
    answer.raise_for_status()
    table_id = answer.json()["data"]["id"]
    async with world.services.db.tx(user.tenant_id) as tx:
        raw = await tx.raw()
        await raw.execute(_ADD_ROWS, user.tenant_id, table_id, count)
        await raw.execute(_ADD_COUNT, user.tenant_id, table_id, count)
        await raw.execute("ANALYZE data_rows")
    return f"/api/v1/data-tables/{table_id}/rows"
