"""Database tools on a real MySQL-compatible server."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiomysql
import msgspec
import pytest

from tests.agents.tools.executor import ToolExecutor
from tests.ports import free_port

PASSWORD = "pw-of-the-shop"
_STATEMENTS = [
    "CREATE DATABASE shop",
    f"CREATE USER 'shop'@'%' IDENTIFIED BY '{PASSWORD}'",
    "GRANT ALL ON shop.* TO 'shop'@'%'",
    """
    CREATE TABLE shop.items (
        id int PRIMARY KEY AUTO_INCREMENT, name varchar(50), price decimal(10, 2), added datetime
    )
    """,
    """
    INSERT INTO shop.items (name, price, added)
    VALUES ('100% wool', 12.5, '2026-01-01 10:00'), ('it''s silk', 30, NULL), ('linen', NULL, NULL)
    """,
]


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


class MysqlShop(msgspec.Struct):
    """A MySQL server with a table, and a user whose tools query it."""

    tools: ToolExecutor
    port: int

    async def run_query(self, query: str, *params: Any, **config: Any) -> dict[str, Any]:
        auth = {"username": "shop", "password": config.pop("password", PASSWORD)}
        server = {"db_type": "mysql", "host": "127.0.0.1", "port": self.port, "database": "shop"}
        tool_id = await self.tools.create(
            "database", {**server, **config}, auth_type="basic", auth_config=auth
        )
        return await self.tools.run(tool_id, {"query": query, "params": list(params)})


@contextmanager
def _run_server(program: str, folder: Path, port: int) -> Iterator[None]:
    common = ["--no-defaults", f"--datadir={folder}/data"]
    user = ["--user=root"] if os.geteuid() == 0 else []
    install = ["mariadb-install-db", *common, *user, "--skip-test-db"]
    install.append("--auth-root-authentication-method=normal")
    subprocess.run(install, check=True, capture_output=True)
    listen = [f"--socket={folder}/socket", f"--port={port}", "--bind-address=127.0.0.1"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [program, *common, *user, *listen, f"--pid-file={folder}/pid"], stderr=log
        )
    try:
        yield
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
async def port() -> AsyncIterator[int]:
    program = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.fail("mariadbd is not installed (Debian: mariadb-server-core, mariadb-client-core)")
    folder, port = Path(tempfile.mkdtemp(prefix="parley-mariadb-")), free_port()
    with _run_server(program, folder, port):
        await _create_shop(f"{folder}/socket")
        yield port


async def _create_shop(socket: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                connection = await aiomysql.connect(unix_socket=socket, user="root")
                break
            except (aiomysql.Error, OSError):
                await asyncio.sleep(0.05)
    cursor = await connection.cursor()
    for statement in _STATEMENTS:
        await cursor.execute(statement)
    await connection.commit()
    connection.close()


@pytest.fixture
def shop(tools: ToolExecutor, port: int) -> MysqlShop:
    return MysqlShop(tools, port)


async def test_rows_are_returned_with_columns_and_plain_values(shop: MysqlShop) -> None:
    execution = await shop.run_query("SELECT name, price, added FROM items WHERE id = ?", 1)
    assert execution["output"] == {
        "columns": ["name", "price", "added"],
        "rows": [["100% wool", 12.5, "2026-01-01T10:00:00"]],
        "row_count": 1,
        "truncated": False,
    }


async def test_a_percent_sign_in_the_query_is_no_placeholder(shop: MysqlShop) -> None:
    execution = await shop.run_query("SELECT name FROM items WHERE name LIKE '100%' AND id = ?", 1)
    assert execution["output"]["rows"] == [["100% wool"]]


async def test_a_parameter_is_a_value_whatever_it_contains(shop: MysqlShop) -> None:
    nasty = "x' OR 1=1; DROP TABLE items; -- \\"
    execution = await shop.run_query("SELECT count(*) FROM items WHERE name = ?", nasty)
    assert execution["output"]["rows"] == [[0]]


async def test_rows_are_cut_at_max_rows(shop: MysqlShop) -> None:
    execution = await shop.run_query("SELECT id FROM items ORDER BY id", max_rows=2)
    assert (execution["output"]["rows"], execution["output"]["truncated"]) == ([[1], [2]], True)


async def test_an_allowed_change_is_committed(shop: MysqlShop) -> None:
    allowed = ["select", "insert"]
    execution = await shop.run_query(
        "INSERT INTO items (name) VALUES (?)", "cotton", allowed_operations=allowed
    )
    assert execution["output"]["row_count"] == 1
    count = await shop.run_query("SELECT count(*) FROM items WHERE name = 'cotton'")
    assert count["output"]["rows"] == [[1]]


_REJECTED_STATEMENTS: list[str] = [
    "DELETE FROM items",
    "SELECT 1; DROP TABLE items",
    "SELECT load_file('/etc/passwd')",
    "SELECT * FROM items INTO OUTFILE '/tmp/items'",
    "SET GLOBAL general_log = 1",
    "SELECT 1 /*!50000 UNION SELECT count(*) FROM items */",
]


async def test_a_statement_that_does_more_than_read_is_rejected(
    shop: MysqlShop, subtests: pytest.Subtests
) -> None:
    for query in _REJECTED_STATEMENTS:
        with subtests.test(query=query):
            execution = await shop.run_query(query)
            assert execution["error"]["code"] == "query_rejected"


async def test_a_wrong_password_is_auth_failed(shop: MysqlShop) -> None:
    execution = await shop.run_query("SELECT 1", password="not-the-one")
    assert execution["error"]["code"] == "auth_failed"


async def test_a_query_that_takes_too_long_is_a_timeout(shop: MysqlShop) -> None:
    columns = "information_schema.columns"
    query = f"SELECT count(*) FROM {columns} a, {columns} b, {columns} c, {columns} d"
    execution = await shop.run_query(query, timeout_ms=300)
    assert (execution["status"], execution["error"]["code"]) == ("timeout", "timeout")
