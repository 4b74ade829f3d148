"""Which statements a tool may run on Postgres, and for how long."""

import asyncio

import asyncpg
import pytest

from tests.agents.tools.database_tools import create_postgres_tool
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.tenant_postgres import USER, TenantPostgres


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


# Allowed operations


REJECTED_STATEMENTS: list[str] = [
    "INSERT INTO notes (text) VALUES ('a')",
    "UPDATE people SET name = 'x'",
    "DELETE FROM people",
    "DROP TABLE people",
    "CREATE TABLE x (a int)",
    "TRUNCATE people",
    "WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x",
    "SELECT * FROM people FOR UPDATE",
    "SELECT 1; DROP TABLE people",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT ('/etc/passwd'::text).pg_read_file",
    "COPY people TO PROGRAM 'id'",
    "SET default_transaction_read_only = off",
    "no sql",
]


async def test_a_statement_that_is_not_allowed_is_rejected_and_changes_nothing(
    tools: ToolExecutor, reader: str, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for query in REJECTED_STATEMENTS:
        with subtests.test(query=query):
            error = await tools.get_failure(reader, {"query": query})
            assert (error["status"], error["code"]) == ("failed", "query_rejected")
            assert (
                await owner.fetchval("SELECT count(*) FROM people WHERE name LIKE 'person%'") == 250
            )


async def test_the_transaction_of_a_reader_is_read_only(
    tools: ToolExecutor, reader: str, owner: asyncpg.Connection
) -> None:
    error = await tools.get_failure(reader, {"query": "SELECT written()"})
    assert error["code"] == "runtime_error"
    assert "read-only" in error["message"]
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'by a function'") == 0


async def test_a_writer_may_call_a_function_that_writes(
    tools: ToolExecutor, writer: str, owner: asyncpg.Connection
) -> None:
    await tools.get_output(writer, {"query": "SELECT written()"})
    status = await owner.execute("DELETE FROM notes WHERE text = 'by a function'")
    assert status == "DELETE 1"


async def test_writing_returns_the_number_of_rows(
    tools: ToolExecutor, writer: str, owner: asyncpg.Connection
) -> None:
    arguments = {"query": "INSERT INTO notes (text) VALUES ($1), ($2)", "params": ["one", "two"]}
    assert await tools.get_output(writer, arguments) == {
        "columns": [],
        "rows": [],
        "row_count": 2,
        "truncated": False,
    }
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text IN ('one', 'two')") == 2


async def test_returning_returns_rows(
    tools: ToolExecutor, writer: str, owner: asyncpg.Connection
) -> None:
    query = "INSERT INTO notes (text) VALUES ('back') RETURNING text, 1 AS one"
    output = await tools.get_output(writer, {"query": query})
    assert (output["columns"], output["rows"]) == (["text", "one"], [["back", 1]])
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'back'") == 1


async def test_returning_more_than_the_limit_still_writes_all(
    tools: ToolExecutor, postgres: TenantPostgres, owner: asyncpg.Connection
) -> None:
    tool = await create_postgres_tool(
        tools, postgres, max_rows=2, allowed_operations=["select", "insert"]
    )
    query = "INSERT INTO notes (text) SELECT 'many' FROM generate_series(1, 5) RETURNING id"
    output = await tools.get_output(tool, {"query": query})
    assert (output["row_count"], output["truncated"]) == (2, True)
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'many'") == 5


async def test_an_update_of_no_rows_returns_zero(tools: ToolExecutor, writer: str) -> None:
    output = await tools.get_output(writer, {"query": "UPDATE people SET name = '' WHERE id = -1"})
    assert output["row_count"] == 0


async def test_a_statement_that_fails_changes_nothing(
    tools: ToolExecutor, writer: str, owner: asyncpg.Connection
) -> None:
    query = (
        "INSERT INTO notes (text) SELECT 'half' FROM generate_series(1, 2) n WHERE 1 / (n - 2) < 9"
    )
    assert await tools.get_error_code(writer, {"query": query}) == "runtime_error"
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'half'") == 0


async def test_a_table_is_created_and_dropped(
    tools: ToolExecutor, writer: str, owner: asyncpg.Connection
) -> None:
    await tools.get_output(writer, {"query": "CREATE TABLE created (a int)"})
    assert await owner.fetchval("SELECT to_regclass('created')::text") == "created"
    await tools.get_output(writer, {"query": "DROP TABLE created"})
    assert await owner.fetchval("SELECT to_regclass('created')::text") is None


async def test_a_backslash_ends_no_string_whatever_the_settings_of_the_server(
    tools: ToolExecutor, postgres: TenantPostgres, owner: asyncpg.Connection
) -> None:
    await owner.execute("RESET ROLE")
    await owner.execute(f"ALTER ROLE {USER} SET standard_conforming_strings = off")
    try:
        tool = await create_postgres_tool(tools, postgres)
        arguments = {"query": "SELECT 'a\\', ' || pg_backend_pid() || '"}
        output = await tools.get_output(tool, arguments)
        assert output["rows"] == [["a\\", " || pg_backend_pid() || "]]
    finally:
        await owner.execute(f"ALTER ROLE {USER} RESET standard_conforming_strings")
        await owner.execute(f"SET ROLE {USER}")


# Timeouts


async def test_the_timeout_of_a_tool_ends_the_statement_on_the_server(
    tools: ToolExecutor,
    postgres: TenantPostgres,
    owner: asyncpg.Connection,
    subtests: pytest.Subtests,
) -> None:
    for query in [
        "SELECT slow()",
        "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
    ]:
        with subtests.test(query=query):
            tool = await create_postgres_tool(tools, postgres, timeout_ms=400)
            error = await tools.get_failure(tool, {"query": query})
            assert (error["status"], error["code"]) == ("timeout", "timeout")
            await _wait_until_no_tool_is_connected(owner)


async def _wait_until_no_tool_is_connected(owner: asyncpg.Connection) -> None:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'parley'"
    async with asyncio.timeout(10):
        while await owner.fetchval(sql):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_no_connection_is_left_behind(
    tools: ToolExecutor, reader: str, owner: asyncpg.Connection
) -> None:
    await tools.get_output(reader, {"query": "SELECT 1"})
    await tools.get_failure(reader, {"query": "SELECT 1 / 0"})
    await _wait_until_no_tool_is_connected(owner)
