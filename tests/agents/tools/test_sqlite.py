"""Tools that query SQLite files of their tenant."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from app.domain.agents.tools.executors import sqlite
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolCaller, ToolClient
from tests.assertions import refused
from tests.child_scripts import run_scripts_here
from tests.stores import Stores
from tests.world import World


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


@pytest.fixture(autouse=True)
def _scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements run in this process, except where a test undoes it."""
    run_scripts_here(monkeypatch)


def _create_tenant_folder(stores: Stores, tenant_id: str) -> Path:
    folder = stores.settings.data_dir / "sqlite" / tenant_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def folder(stores: Stores, tools: ToolExecutor) -> Path:
    """The tenant's folder, with a database `shop.db` in it."""
    folder = _create_tenant_folder(stores, tools.tenant_id)
    (folder / "shop.db").unlink(missing_ok=True)
    _create_database(folder / "shop.db", "ours")
    return folder


def _create_database(path: Path, mark: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size REAL)")
        connection.execute("INSERT INTO things (name, size) VALUES (?, 1.5), ('b', NULL)", [mark])
    connection.close()


async def _create_sqlite_tool(tools: ToolCaller, database: str = "shop.db", **config: Any) -> str:
    return await tools.create("database", {"db_type": "sqlite", "database": database, **config})


async def test_a_file_of_the_tenant_is_read(
    tools: ToolExecutor, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    query = "SELECT id, name, size FROM things WHERE id < ? OR name = ? ORDER BY id"
    output = await tools.get_output(
        await _create_sqlite_tool(tools), {"query": query, "params": [2, "b"]}
    )
    assert output == {
        "columns": ["id", "name", "size"],
        "rows": [[1, "ours", 1.5], [2, "b", None]],
        "row_count": 2,
        "truncated": False,
    }


async def test_the_same_name_is_another_file_for_another_tenant(
    tools: ToolExecutor, stores: Stores, folder: Path
) -> None:
    other = ToolExecutor(tools.services)
    tool = await _create_sqlite_tool(other)
    assert await other.get_error_code(tool, {"query": "SELECT 1"}) == "connection_error"
    _create_database(_create_tenant_folder(stores, other.tenant_id) / "shop.db", "theirs")
    output = await other.get_output(tool, {"query": "SELECT name FROM things WHERE id = 1"})
    assert output["rows"] == [["theirs"]]


_INVALID_NAMES: list[str] = [
    "../other/shop.db",
    "..",
    ".",
    "a/../../shop.db",
    "/etc/passwd",
    "sub/shop.db",
    ":memory:",
    "file:shop.db",
    "shop.db?mode=rwc",
    "..%2fshop.db",
    ".hidden",
    "a..b",
    "shop.db\n",
    "-shop",
    "",
]


async def test_a_name_that_is_no_plain_file_is_not_saved(
    tool_client: ToolClient, subtests: pytest.Subtests
) -> None:
    for name in _INVALID_NAMES:
        with subtests.test(name=name):
            answer = await tool_client.request_create(
                "database", {"db_type": "sqlite", "database": name}
            )
            assert "config.database" in refused(answer, 422, "validation_error")["details"]


async def test_an_override_cannot_leave_the_folder(tool_client: ToolClient) -> None:
    tool, agent = await _create_sqlite_tool(tool_client), await tool_client.create_agent()
    body = {"tool_id": tool, "config_override": {"database": "../other/shop.db"}}
    answer = await tool_client.client.post(f"/v1/agents/{agent}/tools", body)
    refused(answer, 422, "validation_error")


async def test_a_link_is_not_followed(
    tools: ToolExecutor, world: World, stores: Stores, folder: Path, subtests: pytest.Subtests
) -> None:
    other = _create_tenant_folder(stores, await world.tenant())
    _create_database(other / "secret.db", "secret")
    link = folder / "link.db"
    link.unlink(missing_ok=True)
    link.symlink_to(other / "secret.db")
    for operations in (["select"], ["select", "insert"]):
        with subtests.test(operations=operations):
            tool = await _create_sqlite_tool(tools, "link.db", allowed_operations=operations)
            assert (
                await tools.get_error_code(tool, {"query": "SELECT * FROM things"})
                == "connection_error"
            )


_REJECTED_STATEMENTS: list[str] = [
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "ATTACH '/tmp/x.db' AS x",
    "PRAGMA database_list",
    "PRAGMA query_only = off",
    "SELECT * FROM pragma_database_list",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "VACUUM INTO '/tmp/x.db'",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "SELECT 1; DROP TABLE things",
    "INSERT INTO things (name) VALUES ('x')",
    "DROP TABLE things",
]


async def test_a_statement_that_does_more_than_read_is_rejected(
    tools: ToolExecutor, folder: Path, subtests: pytest.Subtests
) -> None:
    for query in _REJECTED_STATEMENTS:
        with subtests.test(query=query):
            assert (
                await tools.get_error_code(await _create_sqlite_tool(tools), {"query": query})
                == "query_rejected"
            )


async def test_a_virtual_table_is_never_created(tools: ToolExecutor, folder: Path) -> None:
    tool = await _create_sqlite_tool(tools, allowed_operations=["create", "insert"])
    query = "CREATE VIRTUAL TABLE x USING fts5(a)"
    assert await tools.get_error_code(tool, {"query": query}) == "query_rejected"


async def test_a_file_with_a_write_ahead_log_is_read_and_written(
    tools: ToolExecutor, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    connection = sqlite3.connect(folder / "shop.db")
    connection.execute("PRAGMA journal_mode = wal")
    connection.close()
    for operations, query in (
        (["select", "insert"], "INSERT INTO things (name) VALUES ('c')"),
        (["select"], "SELECT name FROM things WHERE id = 3"),
    ):
        tool = await _create_sqlite_tool(tools, allowed_operations=operations)
        output = await tools.get_output(tool, {"query": query})
    assert output["rows"] == [["c"]]


async def test_a_reader_creates_no_file(tools: ToolExecutor, folder: Path) -> None:
    tool = await _create_sqlite_tool(tools, "missing.db")
    assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "connection_error"
    assert not (folder / "missing.db").exists()


async def test_a_writer_creates_and_fills_its_file(
    tools: ToolExecutor, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    (folder / "new.db").unlink(missing_ok=True)
    tool = await _create_sqlite_tool(
        tools, "new.db", allowed_operations=["create", "insert", "select"]
    )
    await tools.get_output(tool, {"query": "CREATE TABLE t (a)"})
    arguments = {"query": "INSERT INTO t VALUES (?), (?)", "params": [1, "zwei"]}
    assert (await tools.get_output(tool, arguments))["row_count"] == 2
    output = await tools.get_output(tool, {"query": "SELECT a FROM t ORDER BY rowid"})
    assert output["rows"] == [[1], ["zwei"]]


async def test_returning_of_sqlite_returns_rows_and_writes(
    tools: ToolExecutor, folder: Path
) -> None:
    tool = await _create_sqlite_tool(tools, allowed_operations=["insert", "select"], max_rows=1)
    query = "INSERT INTO things (name) VALUES ('x'), ('y') RETURNING name"
    output = await tools.get_output(tool, {"query": query})
    assert (output["rows"], output["truncated"]) == ([["x"]], True)
    count = await tools.get_output(tool, {"query": "SELECT count(*) FROM things"})
    assert count["rows"] == [[4]]


_FAILURES: list[tuple[str, list[Any], str]] = [
    ("SELECT * FROM nowhere", [], "runtime_error"),
    ("SELECT ?", [], "runtime_error"),
    ("SELECT 1", [1], "runtime_error"),
    ("SELECT ?", [{"a": 1}], "runtime_error"),
    ("SELECT ?", [2**70], "runtime_error"),
    ("SELECT replace(printf('%.*c', 900000, 'x'), 'x', 'xx')", [], "runtime_error"),
    ("SELECT printf('%.*c', 900000, 'x'), printf('%.*c', 900000, 'x')", [], "output_too_large"),
]


async def test_an_error_of_sqlite_is_reported(
    tools: ToolExecutor, folder: Path, subtests: pytest.Subtests
) -> None:
    for query, params, code in _FAILURES:
        with subtests.test(query=query, params=params, code=code):
            assert (
                await tools.get_error_code(
                    await _create_sqlite_tool(tools), {"query": query, "params": params}
                )
                == code
            )


async def test_a_file_that_is_no_database_is_a_runtime_error(
    tools: ToolExecutor, folder: Path
) -> None:
    (folder / "text.db").write_text("no database at all" * 100, encoding="ascii")
    tool = await _create_sqlite_tool(tools, "text.db")
    assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "runtime_error"


_ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"


async def test_an_endless_query_of_sqlite_is_a_timeout(
    tools: ToolExecutor, folder: Path, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    for query in [
        f"{_ENDLESS} count(*) FROM n",
        f"{_ENDLESS} max(a.x) FROM n a, n b",
        f"{_ENDLESS} sum(instr(printf('%.*c', 20000, 'a'), printf('%.*c', 9999, 'a') || x)) FROM n",
    ]:
        with subtests.test(query=query):
            data = await tools.run(
                await _create_sqlite_tool(tools, timeout_ms=200), {"query": query}
            )
            assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")


async def test_sorting_in_sqlite_uses_no_disk(
    tools: ToolExecutor, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite sorts in memory only, and its memory is limited."""
    monkeypatch.undo()
    monkeypatch.setattr(sqlite, "_MAX_MEMORY_MIB", 192)
    query = f"{_ENDLESS} printf('%.*c', 500000, 'x') || x AS t FROM n LIMIT 600"
    arguments = {"query": f"SELECT t FROM ({query}) ORDER BY t DESC"}
    assert (
        await tools.get_error_code(await _create_sqlite_tool(tools, timeout_ms=20_000), arguments)
        == "runtime_error"
    )


async def test_rows_of_sqlite_beyond_the_limit_are_cut_off(
    tools: ToolExecutor, folder: Path
) -> None:
    output = await tools.get_output(
        await _create_sqlite_tool(tools, max_rows=2), {"query": f"{_ENDLESS} x FROM n"}
    )
    assert (output["rows"], output["truncated"]) == ([[1], [2]], True)
