"""Counts rows in a time that does not grow with the table.

Up to a bound, rows are counted. Beyond it, the total is the planner's estimate; `Total.is_exact`
tells the two apart.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import Select, func, select

from db import fast
from db.session import EXPLAIN, Tx

BOUND: Final = 5_000


class Total(msgspec.Struct, frozen=True):
    count: int
    is_exact: bool = True


async def count_rows(
    tx: Tx, tenant: str | None, source: str, *args: object, estimated_from: str | None = None
) -> Total:
    """Counts the rows of `source`, a `FROM ... WHERE ...` whose `$1` is the tenant.
    `estimated_from` is an equivalent clause that the planner estimates better.
    """
    bounded = f"SELECT count(*) FROM (SELECT 1 {source} LIMIT {BOUND + 1}) bounded"
    count: int = await fast.value(tx, tenant, bounded, *args)
    if count <= BOUND:
        return Total(count)
    explain = f"EXPLAIN (FORMAT JSON) SELECT 1 {estimated_from or source}"
    plan = await fast.value(tx, tenant, explain, *args)
    return Total(max(int(plan[0]["Plan"]["Plan Rows"]), count), is_exact=False)


async def count_statement(tx: Tx, statement: Select[Any]) -> Total:
    """Counts the rows of an ORM statement, which the session scopes to the tenant."""
    session = await tx.session()
    bounded = select(func.count()).select_from(statement.limit(BOUND + 1).subquery())
    count = await session.scalar(bounded) or 0
    if count <= BOUND:
        return Total(count)
    total = select(func.count()).select_from(statement.subquery())
    plan: Any = await session.scalar(total, execution_options={EXPLAIN: True})
    plan = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    # The first node is the count; its child has the rows.
    estimate = int(plan[0]["Plan"]["Plans"][0]["Plan Rows"])
    return Total(max(estimate, count), is_exact=False)
