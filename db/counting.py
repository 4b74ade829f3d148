"""How many rows there are, at a price that does not grow with them.

Up to a bound they are counted. Beyond it, the planner's estimate is used, which follows the table's
statistics; `Total.is_exact` says which it is.
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
    """Counts the rows of `FROM … WHERE …`, whose `$1` is the tenant. `estimated_from` is the same
    in a form that the planner estimates better.
    """
    bounded = f"SELECT count(*) FROM (SELECT 1 {source} LIMIT {BOUND + 1}) bounded"
    count: int = await fast.value(tx, tenant, bounded, *args)
    if count <= BOUND:
        return Total(count)
    explain = f"EXPLAIN (FORMAT JSON) SELECT 1 {estimated_from or source}"
    plan = await fast.value(tx, tenant, explain, *args)
    return Total(max(int(plan[0]["Plan"]["Plan Rows"]), count), is_exact=False)


async def count_statement(tx: Tx, statement: Select[Any]) -> Total:
    """Counts the rows of an ORM statement, which its session scopes to the tenant."""
    session = await tx.session()
    bounded = select(func.count()).select_from(statement.limit(BOUND + 1).subquery())
    count = await session.scalar(bounded) or 0
    if count <= BOUND:
        return Total(count)
    whole = select(func.count()).select_from(statement.subquery())
    plan: Any = await session.scalar(whole, execution_options={EXPLAIN: True})
    plan = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    # Below the node that counts is the one that is counted.
    estimate = int(plan[0]["Plan"]["Plans"][0]["Plan Rows"])
    return Total(max(estimate, count), is_exact=False)
