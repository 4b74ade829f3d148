"""A batch reads and deletes few rows, however many a table has: every rule of every area.

The tables contain young rows, and have contained old ones.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import msgspec
import pytest

from app.areas import AREAS
from app.domain.automation.incoming.events import IncomingWebhookReceived
from db import ledger
from db.retention import CASCADE_BATCH, PLATFORM_RULES, RetentionRule
from db.session import ALL_TENANTS, Database
from tests.stores import Stores

RULES = (*PLATFORM_RULES, ledger.RETENTION, *AREAS.retention)
_YOUNG_ROWS, _OLD_ROWS = 1000, 100
_AGENTS = 5
_MAX_ROWS_READ = 50

# A new rule whose old rows are not deleted here lacks an entry.
_VALUES: dict[str, dict[str, str]] = {
    "agents": {"id": "'agent-' || n", "retention_days": "30"},
    "tenants": {"id": "'tenant'", "plan": "'free'"},
    "conversations": {"turn_until": "NULL"},
    "event_log": {
        "type": f"CASE WHEN n % 2 = 0 THEN 'agent.chat.message'"
        f" ELSE '{IncomingWebhookReceived.type}' END",
        "test": "n % 5 = 4",
        "data": f"jsonb_build_object('agent_id', 'agent-' || n % {_AGENTS})",
    },
    # Young ones expire later.
    "form_conversations": {"expires_at": "now() + interval '1 hour' - interval '{age}'"},
    "work": {"state": "'done'"},
    "workflow_executions": {"status": "'completed'"},
}
# Tables whose rows are deleted once the row of another table, which a column names, is deleted or
# has expired.
_DELETED_OWNERS = {
    "data_rows": ("data_tables", "table_id"),
    "form_messages": ("form_conversations", "conversation_id"),
    "form_submissions": ("forms", "form_id"),
    "workflow_executions": ("workflows", "workflow_id"),
}
_EVERYWHERE = {"tenant_id": "'tenant'", "agent_id": f"'agent-' || n % {_AGENTS}"}


_COLUMNS = """
SELECT column_name, data_type FROM information_schema.columns
WHERE table_name = $1 AND is_identity = 'NO'
"""


def _value(column: str, data_type: str, batch: str, age: str) -> str:
    """Returns an expression for a column of the row number `n`."""
    texts = f"'{column}-{batch}-' || n"
    return {
        "timestamp with time zone": f"now() - interval '{age}'",
        "date": f"CAST(now() - interval '{age}' AS date)",
        "boolean": "true",
        "json": "'{}'",
        "jsonb": "'{}'",
        "ARRAY": "'{}'",
        "bytea": "''",
        "character varying": texts,
        "text": texts,
    }.get(data_type, "n")


async def _add_rows(
    connection: asyncpg.Connection,
    table: str,
    count: int,
    *,
    batch: str = "",
    age: str = "0",
    **columns: str,
) -> None:
    values = {
        name: _value(name, data_type, batch, age)
        for name, data_type in await connection.fetch(_COLUMNS, table)
    }
    values |= {name: value for name, value in _EVERYWHERE.items() if name in values}
    values |= {name: sql.replace("{age}", age) for name, sql in _VALUES.get(table, {}).items()}
    values |= columns
    await connection.execute(
        f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())}"
        f" FROM generate_series(0, {count - 1}) AS n"
    )


@pytest.fixture(scope="module")
async def connection(stores: Stores) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database whose tables contain young rows."""
    db = Database((await stores.create_database()).sqlalchemy_url, pool_size=1)
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        # The rows refer to rows that do not exist.
        await raw.execute("SET session_replication_role = replica")
        await _add_rows(raw, "tenants", 1)
        await _add_rows(raw, "agents", _AGENTS)
        for table in sorted({rule.table for rule in RULES}):
            await _add_rows(raw, table, _YOUNG_ROWS)
        await _add_deleted_owners(raw)
        yield raw
    await db.close()


async def _add_deleted_owners(connection: asyncpg.Connection) -> None:
    """Adds what some of the old rows belong to, for rules that delete them for that reason."""
    for number, rule in enumerate(RULES):
        owner = _DELETED_OWNERS.get(rule.table)
        if owner and rule.per:
            table, column = owner
            id_sql = f"'{column}-{number}-' || n"
            values: Any = {"batch": f"gone-{number}", "age": "1 day", "id": id_sql}
            await _add_rows(connection, table, _AGENTS, **values)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


async def _count_rows_read(connection: asyncpg.Connection, rule: RetentionRule) -> int:
    plan = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {rule.sql}")
    document = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    names = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return sum(
        sum(node.get(name, 0) for name in names) * node["Actual Loops"]
        for node in _nodes(document[0]["Plan"])
        if "Relation Name" in node
    )


async def test_a_batch_with_nothing_to_delete_reads_few_rows(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for number, rule in enumerate(RULES):
        with subtests.test(table=rule.table, condition=rule.condition):
            await _add_rows(connection, rule.table, _OLD_ROWS, batch=f"{number}", age="4000 days")
            await connection.execute(f"ANALYZE {rule.table}")
            changed = 0
            while count := int((await connection.execute(rule.sql)).rpartition(" ")[2]):
                changed += count
            assert changed > 0
            await connection.execute(f"ANALYZE {rule.table}")
            assert await _count_rows_read(connection, rule) <= _MAX_ROWS_READ


async def test_whether_a_turn_is_finished_is_read_from_an_index(
    connection: asyncpg.Connection,
) -> None:
    """A client may give all its requests one correlation id."""
    (rule,) = [rule for rule in RULES if rule.table == "tool_executions" and rule.clears]
    shared = {"batch": "shared", "correlation_id": "'shared'"}
    await _add_rows(connection, "work", _YOUNG_ROWS, **shared)
    await _add_rows(connection, "tool_executions", _MAX_ROWS_READ, age="4000 days", **shared)
    await connection.execute("ANALYZE work, tool_executions")
    # The executions are read, and once more to be changed.
    assert await _count_rows_read(connection, rule) <= 3 * _MAX_ROWS_READ


_CHILDREN = """
SELECT conrelid::regclass::text AS child FROM pg_constraint
WHERE contype = 'f' AND confdeltype = 'c' AND confrelid = $1::text::regclass
"""


async def test_a_batch_takes_few_rows_of_other_tables_along(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    """Either the rows that refer to a row are deleted first, or the batch is small."""
    for rule in RULES:
        children = [row["child"] for row in await connection.fetch(_CHILDREN, rule.table)]
        remaining = [name for name in children if f"SELECT 1 FROM {name} " not in rule.condition]
        if remaining and not rule.clears:
            with subtests.test(table=rule.table, condition=rule.condition, children=remaining):
                assert rule.batch <= CASCADE_BATCH
