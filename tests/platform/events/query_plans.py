"""The query plans of the statements that a request runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec
import pytest

from app.services import Services
from db import fast
from db.session import ALL_TENANTS

# From the sixth execution on, Postgres may use one generic plan for all values.
_EXECUTIONS = 7


class Statement(msgspec.Struct, frozen=True):
    sql: str
    args: tuple[object, ...]


class Plan(msgspec.Struct, frozen=True):
    """`nodes` are all steps of the plan, each with the table that it reads."""

    nodes: list[dict[str, Any]]

    def split_count(self) -> "tuple[Plan, Plan]":
        """Returns the plan of a page without the count of all rows, and the plan of that count."""
        count = next(node for node in self.nodes if _is_count(node))
        counted = list(_walk(count))
        return Plan([node for node in self.nodes if node not in counted]), Plan(counted)

    def rows_read(self, table: str) -> int:
        """Counts the rows of a table that were read, also those that a filter removed."""
        return sum(_rows_read(node) for node in self.nodes if node.get("Relation Name") == table)

    def scans_without_index(self, table: str) -> list[str]:
        """Returns the types of the steps that read a table without an index."""
        node_types = (
            node["Node Type"] for node in self.nodes if node.get("Relation Name") == table
        )
        return [kind for kind in node_types if "Index" not in kind and "Bitmap Heap" not in kind]

    def sorted_rows(self) -> int:
        """Returns the largest number of rows that one step sorted."""
        sorts = (node for node in self.nodes if node["Node Type"] == "Sort")
        return max((_rows_returned(node["Plans"][0]) for node in sorts), default=0)


def _is_count(node: dict[str, Any]) -> bool:
    return node.get("Parent Relationship") == "InitPlan" and node["Node Type"] == "Aggregate"


def _rows_returned(node: dict[str, Any]) -> int:
    return int(node["Actual Rows"] * node["Actual Loops"] + 0.5)


def _rows_read(node: dict[str, Any]) -> int:
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    rows_removed = sum(node.get(name, 0) for name in removed) * node["Actual Loops"]
    return _rows_returned(node) + int(rows_removed + 0.5)


@contextmanager
def record_statements(monkeypatch: pytest.MonkeyPatch, table: str) -> Iterator[list[Statement]]:
    """Yields the statements on a table that run meanwhile, without EXPLAIN statements."""
    statements: list[Statement] = []
    with monkeypatch.context() as patched:
        for name in ("rows", "value"):
            patched.setattr(fast, name, _record_into(getattr(fast, name), table, statements))
        yield statements


def _record_into(function: Any, table: str, statements: list[Statement]) -> Any:
    async def run(tx: Any, tenant: str | None, sql: str, *args: object) -> Any:
        if table in sql and not sql.startswith("EXPLAIN"):
            statements.append(Statement(sql, (tenant, *args)))
        return await function(tx, tenant, sql, *args)

    return run


async def explain(services: Services, statement: Statement) -> Plan:
    """Returns the plan after several executions on one connection, as on a busy server."""
    args = ", ".join(_literal(value) for value in statement.args)
    execution = f"EXECUTE explained({args})" if args else "EXECUTE explained"
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(f"PREPARE explained AS {statement.sql}")
        try:
            for _ in range(_EXECUTIONS):
                await raw.execute(execution)
            plan = await raw.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {execution}")
        finally:
            await raw.execute("DEALLOCATE explained")
    return Plan(list(_walk(plan[0]["Plan"])))


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
