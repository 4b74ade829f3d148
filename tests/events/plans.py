"""What Postgres really reads for the statements that a request runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec
import pytest

from app.services import Services
from db import fast
from db.session import ALL_TENANTS

# From the sixth time on, Postgres may settle for one plan that must serve all values.
_OFTEN = 7


class Statement(msgspec.Struct, frozen=True):
    sql: str
    args: tuple[object, ...]


class Plan(msgspec.Struct, frozen=True):
    """`nodes` are all steps of it, with the table that each of them reads."""

    nodes: list[dict[str, Any]]

    def read(self, table: str) -> int:
        """How many rows of a table were looked at, kept or not."""
        return sum(_looked_at(node) for node in self.nodes if node.get("Relation Name") == table)

    def scanned(self, table: str) -> list[str]:
        """By which means other than an index a table was read."""
        theirs = (node["Node Type"] for node in self.nodes if node.get("Relation Name") == table)
        return [kind for kind in theirs if "Index" not in kind and "Bitmap Heap" not in kind]

    def sorted_rows(self) -> int:
        """The most that one step put in order."""
        sorts = (node for node in self.nodes if node["Node Type"] == "Sort")
        return max((_rows(node["Plans"][0]) for node in sorts), default=0)


def _rows(node: dict[str, Any]) -> int:
    return int(node["Actual Rows"] * node["Actual Loops"] + 0.5)


def _looked_at(node: dict[str, Any]) -> int:
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    passed_over = sum(node.get(name, 0) for name in removed) * node["Actual Loops"]
    return _rows(node) + int(passed_over + 0.5)


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch, table: str) -> Iterator[list[Statement]]:
    """The statements on a table that run meanwhile; those that only ask for a plan are left out."""
    found: list[Statement] = []
    with monkeypatch.context() as patched:
        for name in ("rows", "value"):
            patched.setattr(fast, name, _noting(getattr(fast, name), table, found))
        yield found


def _noting(real: Any, table: str, found: list[Statement]) -> Any:
    async def run(tx: Any, tenant: str | None, sql: str, *args: object) -> Any:
        if table in sql and not sql.startswith("EXPLAIN"):
            found.append(Statement(sql, (tenant, *args)))
        return await real(tx, tenant, sql, *args)

    return run


async def plan_of(services: Services, statement: Statement) -> Plan:
    """Of a statement that the connection has run often, as those of a busy server have."""
    given = ", ".join(_literal(value) for value in statement.args)
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(f"PREPARE looked_at AS {statement.sql}")
        try:
            for _ in range(_OFTEN):
                await raw.execute(f"EXECUTE looked_at({given})")
            told = await raw.fetchval(
                f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE looked_at({given})"
            )
        finally:
            await raw.execute("DEALLOCATE looked_at")
    return Plan(list(_walk(told[0]["Plan"])))


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _walk(child)


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case int():
            return str(value)
        case list():
            return f"ARRAY[{', '.join(map(_literal, value))}]"
        case datetime():
            return f"'{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"
