"""One page of a list and its total, in one statement.

Only the conditions in use are part of the statement: one plan for all of them would be slow. Totals
are counted up to a bound; beyond it they are the planner's estimate.
"""

from typing import Any, Final

import msgspec

from db import fast
from db.fast import Row
from db.session import Tx

BOUND: Final = 5_000


class Total(msgspec.Struct, frozen=True):
    count: int
    is_exact: bool = True


class Where:
    """Conditions joined by AND, with their arguments. The first one is the tenant, as `$1`; None
    stands for all tenants.
    """

    def __init__(
        self, tenant: str | None, *conditions: str, tenant_column: str = "tenant_id"
    ) -> None:
        self.tenant = tenant
        self.tenant_condition = "$1::text IS NULL" if tenant is None else f"{tenant_column} = $1"
        self.args: list[object] = []
        self._conditions = list(conditions)
        # Conditions that the planner estimates better in another form.
        self._estimated_forms: dict[str, str] = {}

    def require(self, condition: str) -> None:
        """Adds a condition without a value."""
        self._conditions.append(condition)

    def bind(self, value: object) -> str:
        """Adds an argument and returns its placeholder."""
        self.args.append(value)
        return f"${len(self.args) + 1}"

    def add(self, condition: str, value: object) -> None:
        """Adds a condition in which `$n` stands for the value."""
        self._conditions.append(condition.replace("$n", self.bind(value)))

    def equal(self, column: str, value: object) -> None:
        """Adds a condition unless the value is None."""
        if value is not None:
            self.add(f"{column} = $n", value)

    def equal_unseen(self, column: str, value: object) -> None:
        """Adds a condition on a text that the planner does not see, so that it uses no partial
        index whose condition follows from it.
        """
        placeholder = self.bind(value)
        condition = f"{column} = (SELECT {placeholder}::text)"
        self._conditions.append(condition)
        self._estimated_forms[condition] = f"{column} = {placeholder}"

    def between(self, column: str, since: object, until: object) -> None:
        """Adds a condition for each limit that is not None; both are inclusive."""
        if since is not None:
            self.add(f"{column} >= $n", since)
        if until is not None:
            self.add(f"{column} <= $n", until)

    def contain(self, text: str | None, *columns: str) -> None:
        """Adds a case-insensitive search in several columns; % and _ are no wildcards.

        ILIKE takes the product of both lengths where every part of a text almost matches. It serves
        the estimate alone: for strpos the planner always assumes a third of all rows.
        """
        if text:
            placeholder = self.bind(text)
            search = [f"strpos(lower({column}), lower({placeholder})) > 0" for column in columns]
            pattern = f"'%' || {placeholder}::text || '%'"
            estimated = [f"{column} ILIKE {pattern}" for column in columns]
            condition = f"({' OR '.join(search)})"
            self._conditions.append(condition)
            self._estimated_forms[condition] = f"({' OR '.join(estimated)})"

    @property
    def sql(self) -> str:
        return " AND ".join((self.tenant_condition, *self._conditions))

    @property
    def estimated_sql(self) -> str:
        """For an estimate of the total, never for rows."""
        return " AND ".join((self.tenant_condition, *self._list_estimated()))

    @property
    def sql_without_tenant(self) -> str:
        """For an estimate of the total, never for rows. The planner takes the tenant and a thing of
        the tenant for independent conditions and estimates far too low.
        """
        return " AND ".join(("($1::text IS NULL OR true)", *self._list_estimated()))

    def _list_estimated(self) -> list[str]:
        return [self._estimated_forms.get(condition, condition) for condition in self._conditions]


async def fetch_page(
    tx: Tx,
    where: Where,
    page: str,
    limit: int,
    offset: int,
    *,
    counted: str,
    estimated: str | None = None,
) -> tuple[list[Row], Total]:
    """Returns the rows of one page and the total.

    `page` is a SELECT list and the clauses after it, with `$limit` and `$offset`; `counted` is the
    FROM clause of all rows, and `estimated` an equivalent one that the planner estimates better.
    """
    count = _count_sql(counted)
    number = len(where.args) + 2
    page = page.replace("$limit", f"${number}").replace("$offset", f"${number + 1}")
    rows = await fast.rows(
        tx, where.tenant, f"SELECT ({count}) AS total, {page}", *where.args, limit, offset
    )
    total = rows[0]["total"] if rows else 0
    if offset and not rows:
        total = await count_rows(tx, where, counted)
    if total <= BOUND:
        return rows, Total(total)
    return rows, await estimate(tx, where, estimated or counted, total)


async def count_rows(tx: Tx, where: Where, counted: str) -> int:
    """Returns the number of rows, or one more than the bound."""
    return int(await fast.value(tx, where.tenant, _count_sql(counted), *where.args))


def _count_sql(counted: str) -> str:
    return f"SELECT count(*) FROM (SELECT 1 {counted} LIMIT {BOUND + 1}) bounded"


async def estimate(tx: Tx, where: Where, estimated: str, at_least: int) -> Total:
    """Returns the planner's estimate of the rows of a FROM clause."""
    explain = f"EXPLAIN (FORMAT JSON) SELECT 1 {estimated}"
    plan: Any = await fast.value(tx, where.tenant, explain, *where.args)
    return Total(max(int(plan[0]["Plan"]["Plan Rows"]), at_least), is_exact=False)
