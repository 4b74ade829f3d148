"""How many rows there are, at a price that does not grow with them.

Up to a bound they are counted; beyond it, the planner's own estimate stands for the number, which
follows the table's statistics. `Counted.exact` says which it is.
"""

from typing import Final

import msgspec

from db import fast
from db.session import Tx

BOUND: Final = 5_000


class Counted(msgspec.Struct, frozen=True):
    total: int
    exact: bool = True


async def rows(
    tx: Tx, tenant: str | None, source: str, *args: object, guessed: str | None = None
) -> Counted:
    """Of `FROM … WHERE …`, whose `$1` is the tenant. `guessed` says the same in words that the
    planner estimates better.
    """
    bounded = f"SELECT count(*) FROM (SELECT 1 {source} LIMIT {BOUND + 1}) bounded"  # noqa: S608
    counted: int = await fast.value(tx, tenant, bounded, *args)
    if counted <= BOUND:
        return Counted(counted)
    plan = await fast.value(
        tx, tenant, f"EXPLAIN (FORMAT JSON) SELECT 1 {guessed or source}", *args
    )
    return Counted(max(int(plan[0]["Plan"]["Plan Rows"]), counted), exact=False)
