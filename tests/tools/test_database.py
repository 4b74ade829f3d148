"""Tools that ask a database: as whom, what they may do there, and what comes back."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.asking import refused
from tests.ports import free_port
from tests.stores import Stores
from tests.tools.factories import Bench, bench_of
from tests.tools.outside import DATABASE, PASSWORD, USER, OutsidePostgres, running
from tests.world import World
from workers.main import WorkerProcess

_SCHEMA = """
CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL, about jsonb);
INSERT INTO people SELECT n, 'person ' || n FROM generate_series(1, 250) AS n;
CREATE TABLE notes (id serial PRIMARY KEY, text text);
CREATE FUNCTION written() RETURNS int LANGUAGE sql VOLATILE AS
    $$ INSERT INTO notes (text) VALUES ('by a function') RETURNING id $$;
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no such order'; END $$;
CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(60); RETURN 1; END $$;
"""


@pytest.fixture(scope="module")
async def bench(world: World, worker: WorkerProcess) -> Bench:
    return await bench_of(world)


@pytest.fixture(scope="module")
async def postgres() -> AsyncIterator[OutsidePostgres]:
    async with running() as made:
        yield made


@pytest.fixture(scope="module")
async def owner(postgres: OutsidePostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await postgres.connect()
    await connection.execute(f"SET ROLE {USER}")
    await connection.execute(_SCHEMA)
    yield connection
    await connection.close()


def _config(postgres: OutsidePostgres, **more: Any) -> dict[str, Any]:
    base = {"db_type": "postgresql", "host": "127.0.0.1", "database": DATABASE}
    return {**base, "port": postgres.port, **more}


async def _tool(bench: Bench, postgres: OutsidePostgres, **config: Any) -> str:
    auth = {"username": USER, "password": PASSWORD}
    given = _config(postgres, **config)
    return await bench.create("database", given, auth_type="basic", auth_config=auth)


@pytest.fixture(scope="module")
async def reader(bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection) -> str:
    return await _tool(bench, postgres)


@pytest.fixture(scope="module")
async def writer(bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection) -> str:
    operations = ["select", "insert", "update", "delete", "create", "drop"]
    return await _tool(bench, postgres, allowed_operations=operations)


# Reading


async def test_rows_come_with_their_columns(bench: Bench, reader: str) -> None:
    given = {
        "query": "SELECT id, name AS who FROM people WHERE id <= $1 ORDER BY id",
        "params": [2],
    }
    assert await bench.output(reader, given) == {
        "columns": ["id", "who"],
        "rows": [[1, "person 1"], [2, "person 2"]],
        "row_count": 2,
        "truncated": False,
    }


async def test_no_rows_are_a_result_too(bench: Bench, reader: str) -> None:
    output = await bench.output(reader, {"query": "SELECT id FROM people WHERE false"})
    assert (output["columns"], output["rows"], output["row_count"]) == (["id"], [], 0)


@pytest.mark.parametrize(
    ("kind", "value", "back"),
    [
        ("int", 7, 7),
        ("int", "7", 7),
        ("bigint", 2**53, 2**53),
        ("bigint", 2**53 + 1, str(2**53 + 1)),
        ("smallint", -1, -1),
        ("float8", 1.5, 1.5),
        ("float8", 2, 2.0),
        ("real", "0.5", 0.5),
        ("numeric", 12.5, 12.5),
        ("numeric", "12.50", 12.5),
        ("numeric", "0.1234567890123456789", "0.1234567890123456789"),
        ("numeric", 10**20, 1e20),
        ("numeric", "NaN", "NaN"),
        ("text", "Zoë's 🌍", "Zoë's 🌍"),
        ("text", 7, "7"),
        ("varchar", True, "True"),
        ("bool", True, True),
        ("date", "2024-02-29", "2024-02-29"),
        ("time", "03:04:05", "03:04:05"),
        ("timestamp", "2024-02-29T03:04:05", "2024-02-29T03:04:05"),
        ("timestamptz", "2024-02-29T03:04:05Z", "2024-02-29T03:04:05+00:00"),
        ("timestamptz", "2024-02-29T03:04:05+02:00", "2024-02-29T01:04:05+00:00"),
        (
            "uuid",
            "6fa459ea-ee8a-3ca4-894e-db77e160355e",
            "6fa459ea-ee8a-3ca4-894e-db77e160355e",
        ),
        ("bytea", "AP8=", "AP8="),
        ("json", {"a": [1, None]}, '{"a":[1,null]}'),
        ("jsonb", [1, "two"], '[1, "two"]'),
        ("jsonb", "text", '"text"'),
        ("inet", "10.0.0.1", "10.0.0.1"),
        ("int[]", [1, None, 3], [1, None, 3]),
        ("int[]", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ("text[]", ["a", "b,c", ""], ["a", "b,c", ""]),
        ("text[]", [1, "a"], ["1", "a"]),
        ("date[]", ["2024-02-29"], ["2024-02-29"]),
        ("numeric[]", [1, "2.5"], [1, 2.5]),
        ("jsonb[]", [{"a": 1}, None], ['{"a": 1}', None]),
        ("int[]", [], []),
    ],
)
async def test_a_parameter_becomes_what_the_server_wants(
    bench: Bench, reader: str, kind: str, value: object, back: object
) -> None:
    given = {"query": f"SELECT $1::{kind}", "params": [value]}
    assert (await bench.output(reader, given))["rows"] == [[back]]


@pytest.mark.parametrize(
    "kind", ["int", "text", "date", "uuid", "numeric", "bool", "json", "jsonb", "int[]", "bytea"]
)
async def test_null_is_null_for_every_type(bench: Bench, reader: str, kind: str) -> None:
    given = {"query": f"SELECT $1::{kind} IS NULL, $1::{kind}", "params": [None]}
    assert (await bench.output(reader, given))["rows"] == [[True, None]]


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("'NaN'::float8", "nan"),
        ("'-infinity'::float8", "-inf"),
        ("interval '1 day 2 hours'", "1 day, 2:00:00"),
        ("int4range(1, 5)", "[1,5)"),
        ("'empty'::int4range", "empty"),
        ("int4range(NULL, 5)", "(,5)"),
        ("B'101'", "101"),
        ("ROW(1, 'a')", [1, "a"]),
        ("ARRAY[date '2024-02-29']", ["2024-02-29"]),
        ("'a'::name", "a"),
    ],
)
async def test_what_json_has_no_type_for_is_shown_as_text(
    bench: Bench, reader: str, expression: str, shown: object
) -> None:
    assert (await bench.output(reader, {"query": f"SELECT {expression}"}))["rows"] == [[shown]]


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT $1::int", ["seven"]),
        ("SELECT $1::int", [2**40]),
        ("SELECT $1::int", [1.5]),
        ("SELECT $1::date", ["29.2.2024"]),
        ("SELECT $1::uuid", ["no uuid"]),
        ("SELECT $1::numeric", ["much"]),
        ("SELECT $1::bytea", ["no base64!"]),
        ("SELECT $1::int[]", [7]),
        ("SELECT $1::int[]", [["a"]]),
        ("SELECT $1::text", [{"a": 1}]),
        ("SELECT $1::int", []),
        ("SELECT $1::int", [1, 2]),
        ("SELECT 1", [1]),
        ("SELECT $2::int", [1]),
    ],
)
async def test_a_parameter_that_does_not_fit_is_told(
    bench: Bench, reader: str, query: str, params: list[Any]
) -> None:
    assert await bench.code(reader, {"query": query, "params": params}) == "runtime_error"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT nothing FROM people", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT fails()", "no such order"),
    ],
)
async def test_what_the_server_says_is_told(
    bench: Bench, reader: str, query: str, said: str
) -> None:
    error = await bench.failure(reader, {"query": query})
    assert error["code"] == "runtime_error"
    assert said in error["message"]


@pytest.mark.parametrize(
    "given", [{}, {"query": 1}, {"query": "SELECT 1", "params": {}}, {"query": None}]
)
async def test_input_of_another_shape_is_invalid(
    bench: Bench, reader: str, given: dict[str, Any]
) -> None:
    answer = await bench.client.post(f"/v1/tools/{reader}/execute", {"input": given})
    refused(answer, 422, "validation_error")


async def test_rows_beyond_the_limit_are_cut_off(
    bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection
) -> None:
    tool = await _tool(bench, postgres, max_rows=3)
    output = await bench.output(tool, {"query": "SELECT id FROM people ORDER BY id"})
    assert (output["rows"], output["row_count"], output["truncated"]) == ([[1], [2], [3]], 3, True)


async def test_as_many_rows_as_the_limit_are_not_cut_off(
    bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection
) -> None:
    tool = await _tool(bench, postgres, max_rows=3)
    output = await bench.output(tool, {"query": "SELECT id FROM people LIMIT 3"})
    assert (output["row_count"], output["truncated"]) == (3, False)


async def test_an_endless_result_is_not_waited_for(
    bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection
) -> None:
    tool = await _tool(bench, postgres, max_rows=5)
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    output = await bench.output(tool, {"query": query})
    assert (output["row_count"], output["truncated"]) == (5, True)


async def test_rows_of_more_than_a_mebibyte_are_too_large(bench: Bench, reader: str) -> None:
    given = {"query": "SELECT repeat('x', 1100000)"}
    assert await bench.code(reader, given) == "output_too_large"


async def test_a_server_that_sends_gigabytes_is_cut_off(bench: Bench, reader: str) -> None:
    given = {"query": "SELECT repeat('x', 50000000) FROM generate_series(1, 40)"}
    assert await bench.code(reader, given) == "output_too_large"


# What is allowed


@pytest.mark.parametrize(
    "query",
    [
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
    ],
)
async def test_what_is_not_allowed_is_rejected_and_changes_nothing(
    bench: Bench, reader: str, owner: asyncpg.Connection, query: str
) -> None:
    error = await bench.failure(reader, {"query": query})
    assert (error["status"], error["code"]) == ("failed", "query_rejected")
    assert await owner.fetchval("SELECT count(*) FROM people WHERE name LIKE 'person%'") == 250


async def test_the_transaction_of_a_reader_is_read_only(
    bench: Bench, reader: str, owner: asyncpg.Connection
) -> None:
    error = await bench.failure(reader, {"query": "SELECT written()"})
    assert error["code"] == "runtime_error"
    assert "read-only" in error["message"]
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'by a function'") == 0


async def test_a_writer_may_call_what_writes(
    bench: Bench, writer: str, owner: asyncpg.Connection
) -> None:
    await bench.output(writer, {"query": "SELECT written()"})
    deleted = await owner.execute("DELETE FROM notes WHERE text = 'by a function'")
    assert deleted == "DELETE 1"


async def test_writing_tells_how_many_rows(
    bench: Bench, writer: str, owner: asyncpg.Connection
) -> None:
    given = {"query": "INSERT INTO notes (text) VALUES ($1), ($2)", "params": ["one", "two"]}
    assert await bench.output(writer, given) == {
        "columns": [],
        "rows": [],
        "row_count": 2,
        "truncated": False,
    }
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text IN ('one', 'two')") == 2


async def test_returning_gives_rows(bench: Bench, writer: str, owner: asyncpg.Connection) -> None:
    query = "INSERT INTO notes (text) VALUES ('back') RETURNING text, 1 AS one"
    output = await bench.output(writer, {"query": query})
    assert (output["columns"], output["rows"]) == (["text", "one"], [["back", 1]])
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'back'") == 1


async def test_returning_more_than_the_limit_still_writes_all(
    bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection
) -> None:
    tool = await _tool(bench, postgres, max_rows=2, allowed_operations=["select", "insert"])
    query = "INSERT INTO notes (text) SELECT 'many' FROM generate_series(1, 5) RETURNING id"
    output = await bench.output(tool, {"query": query})
    assert (output["row_count"], output["truncated"]) == (2, True)
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'many'") == 5


async def test_writing_that_changes_nothing_tells_so(bench: Bench, writer: str) -> None:
    output = await bench.output(writer, {"query": "UPDATE people SET name = '' WHERE id = -1"})
    assert output["row_count"] == 0


async def test_a_statement_that_fails_leaves_nothing(
    bench: Bench, writer: str, owner: asyncpg.Connection
) -> None:
    query = (
        "INSERT INTO notes (text) SELECT 'half' FROM generate_series(1, 2) n WHERE 1 / (n - 2) < 9"
    )
    assert await bench.code(writer, {"query": query}) == "runtime_error"
    assert await owner.fetchval("SELECT count(*) FROM notes WHERE text = 'half'") == 0


async def test_a_table_is_made_and_dropped(
    bench: Bench, writer: str, owner: asyncpg.Connection
) -> None:
    await bench.output(writer, {"query": "CREATE TABLE made (a int)"})
    assert await owner.fetchval("SELECT to_regclass('made')::text") == "made"
    await bench.output(writer, {"query": "DROP TABLE made"})
    assert await owner.fetchval("SELECT to_regclass('made')::text") is None


async def test_a_backslash_ends_no_string_whatever_the_server_is_set_to(
    bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection
) -> None:
    await owner.execute("RESET ROLE")
    await owner.execute(f"ALTER ROLE {USER} SET standard_conforming_strings = off")
    try:
        tool = await _tool(bench, postgres)
        given = {"query": "SELECT 'a\\', ' || pg_backend_pid() || '"}
        output = await bench.output(tool, given)
        assert output["rows"] == [["a\\", " || pg_backend_pid() || "]]
    finally:
        await owner.execute(f"ALTER ROLE {USER} RESET standard_conforming_strings")
        await owner.execute(f"SET ROLE {USER}")


# Time


@pytest.mark.parametrize(
    "query",
    [
        "SELECT slow()",
        "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
    ],
)
async def test_the_time_of_a_tool_ends_the_statement_on_the_server(
    bench: Bench, postgres: OutsidePostgres, owner: asyncpg.Connection, query: str
) -> None:
    tool = await _tool(bench, postgres, timeout_ms=400)
    error = await bench.failure(tool, {"query": query})
    assert (error["status"], error["code"]) == ("timeout", "timeout")
    async with asyncio.timeout(5):
        while await _running(owner):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def _running(owner: asyncpg.Connection) -> int:
    found: int = await owner.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'parley'"
    )
    return found


async def test_no_connection_is_left_behind(
    bench: Bench, reader: str, owner: asyncpg.Connection
) -> None:
    await bench.output(reader, {"query": "SELECT 1"})
    await bench.failure(reader, {"query": "SELECT 1 / 0"})
    async with asyncio.timeout(5):
        while await _running(owner):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# Who, and where


@pytest.mark.parametrize(
    "auth",
    [
        {"username": USER, "password": "wrong"},
        {"username": USER, "password": ""},
        {"username": "nobody", "password": PASSWORD},
    ],
)
async def test_a_wrong_login_is_a_failed_auth(
    bench: Bench, postgres: OutsidePostgres, auth: dict[str, str]
) -> None:
    tool = await bench.create("database", _config(postgres), auth_type="basic", auth_config=auth)
    assert await bench.code(tool, {"query": "SELECT 1"}) == "auth_failed"


@pytest.mark.parametrize(
    ("auth_type", "auth"),
    [
        ("bearer", {"token": PASSWORD}),
        ("api_key", {"api_key_value": PASSWORD}),
        ("custom", {"headers": {"X-Password": PASSWORD}}),
    ],
)
async def test_an_identity_for_the_web_is_no_login(
    bench: Bench, postgres: OutsidePostgres, auth_type: str, auth: dict[str, Any]
) -> None:
    tool = await bench.create("database", _config(postgres), auth_type=auth_type, auth_config=auth)
    error = await bench.failure(tool, {"query": "SELECT 1"})
    assert error["code"] == "auth_failed"
    assert "basic" in error["message"]


async def test_an_unknown_database_is_told(bench: Bench, postgres: OutsidePostgres) -> None:
    tool = await _tool(bench, postgres, database="nowhere")
    error = await bench.failure(tool, {"query": "SELECT 1"})
    assert error["code"] in {"runtime_error", "auth_failed", "connection_error"}
    assert "nowhere" in error["message"]


async def test_nobody_listening_is_a_connection_error(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    tool = await _tool(bench, postgres, port=free_port())
    assert await bench.code(tool, {"query": "SELECT 1"}) == "connection_error"


async def test_an_unknown_host_is_a_connection_error(
    bench: Bench, postgres: OutsidePostgres, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    monkeypatch.setattr(worker.services.egress.guard, "_resolve", unknown)
    tool = await _tool(bench, postgres, host="db.example")
    assert await bench.code(tool, {"query": "SELECT 1"}) == "connection_error"


async def test_a_server_that_says_something_else_is_told(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        tool = await _tool(bench, postgres, port=port, timeout_ms=2000)
        error = await bench.failure(tool, {"query": "SELECT 1"})
        assert error["code"] == "connection_error", error


async def test_a_server_that_says_nothing_is_a_timeout(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        tool = await _tool(bench, postgres, port=port, timeout_ms=300)
        assert await bench.code(tool, {"query": "SELECT 1"}) == "timeout"


async def test_ssl_that_the_server_does_not_have_is_a_connection_error(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    tool = await _tool(bench, postgres, ssl=True)
    assert await bench.code(tool, {"query": "SELECT 1"}) == "connection_error"


def _secrets(postgres: OutsidePostgres, **more: Any) -> dict[str, Any]:
    base = {"host": "127.0.0.1", "port": postgres.port, "database": DATABASE}
    return {**base, "username": USER, "password": PASSWORD, **more}


async def _with_credential(
    bench: Bench, config: dict[str, Any], secrets: dict[str, Any], type_: str = "database"
) -> str:
    credential = await bench.credential(type_, secrets)
    auth = {"credential_id": credential}
    tool = await bench.create("database", config, auth_type="basic", auth_config=auth)
    await bench.grant(credential, tool)
    return tool


async def test_a_credential_logs_in_where_it_belongs(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    tool = await _with_credential(bench, _config(postgres), _secrets(postgres))
    given = {"query": "SELECT current_user::text"}
    assert (await bench.output(tool, given))["rows"] == [[USER]]


async def test_a_credential_says_itself_where_it_belongs(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    config = {"db_type": "postgresql", "database": DATABASE}
    tool = await _with_credential(bench, config, _secrets(postgres))
    assert (await bench.output(tool, {"query": "SELECT 1"}))["rows"] == [[1]]


async def test_a_name_and_password_of_the_vault_log_in_anywhere(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    secrets = {"username": USER, "password": PASSWORD}
    tool = await _with_credential(bench, _config(postgres), secrets, "basic_auth")
    assert (await bench.output(tool, {"query": "SELECT 1"}))["rows"] == [[1]]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"host": "db.example"},
        {"host": "localhost"},
        {"port": 5},
        {"port": None},
        {"engine": "mysql"},
    ],
)
async def test_a_credential_is_not_shown_to_another_server(
    bench: Bench, postgres: OutsidePostgres, elsewhere: dict[str, Any]
) -> None:
    secrets = {
        name: value for name, value in _secrets(postgres, **elsewhere).items() if value is not None
    }
    tool = await _with_credential(bench, _config(postgres), secrets)
    assert await bench.code(tool, {"query": "SELECT 1"}) == "auth_failed"


async def test_a_credential_without_a_rule_is_not_used(
    bench: Bench, postgres: OutsidePostgres
) -> None:
    auth = {"credential_id": await bench.credential("database", _secrets(postgres))}
    tool = await bench.create("database", _config(postgres), auth_type="basic", auth_config=auth)
    assert await bench.code(tool, {"query": "SELECT 1"}) == "auth_failed"


# SQLite


def _folder(stores: Stores, tenant_id: str) -> Path:
    folder = stores.settings.data_dir / "sqlite" / tenant_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def folder(stores: Stores, bench: Bench) -> Path:
    """The tenant's own, with a database `shop.db` in it."""
    made = _folder(stores, bench.client.tenant_id)
    (made / "shop.db").unlink(missing_ok=True)
    _fill(made / "shop.db", "ours")
    return made


def _fill(path: Path, mark: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size REAL)")
        connection.execute("INSERT INTO things (name, size) VALUES (?, 1.5), ('b', NULL)", [mark])
    connection.close()


async def _sqlite(bench: Bench, database: str = "shop.db", **config: Any) -> str:
    return await bench.create("database", {"db_type": "sqlite", "database": database, **config})


async def test_a_file_of_the_tenant_is_read(bench: Bench, folder: Path) -> None:
    query = "SELECT id, name, size FROM things WHERE id < ? OR name = ? ORDER BY id"
    output = await bench.output(await _sqlite(bench), {"query": query, "params": [2, "b"]})
    assert output == {
        "columns": ["id", "name", "size"],
        "rows": [[1, "ours", 1.5], [2, "b", None]],
        "row_count": 2,
        "truncated": False,
    }


async def test_the_same_name_is_another_file_for_another_tenant(
    bench: Bench, world: World, stores: Stores, folder: Path
) -> None:
    other = await bench_of(world)
    tool = await _sqlite(other)
    assert await other.code(tool, {"query": "SELECT 1"}) == "connection_error"
    _fill(_folder(stores, other.client.tenant_id) / "shop.db", "theirs")
    output = await other.output(tool, {"query": "SELECT name FROM things WHERE id = 1"})
    assert output["rows"] == [["theirs"]]


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
async def test_a_name_that_is_no_plain_file_is_not_saved(bench: Bench, name: str) -> None:
    body = {"name": "T", "category": "database", "auth_type": "none", "tool_type": "database"}
    config = {"db_type": "sqlite", "database": name}
    answer = await bench.client.post("/v1/tools", {**body, "config": config})
    assert "config.database" in refused(answer, 422, "validation_error")["details"]


async def test_an_agents_settings_cannot_climb_either(bench: Bench, folder: Path) -> None:
    tool, agent = await _sqlite(bench), await bench.agent()
    body = {"tool_id": tool, "config_override": {"database": "../other/shop.db"}}
    answer = await bench.client.post(f"/v1/agents/{agent}/tools", body)
    refused(answer, 422, "validation_error")


@pytest.mark.parametrize("operations", [["select"], ["select", "insert"]])
async def test_a_link_is_not_followed(
    bench: Bench, world: World, stores: Stores, folder: Path, operations: list[str]
) -> None:
    other = _folder(stores, await world.tenant())
    _fill(other / "secret.db", "secret")
    link = folder / "link.db"
    link.unlink(missing_ok=True)
    link.symlink_to(other / "secret.db")
    tool = await _sqlite(bench, "link.db", allowed_operations=operations)
    assert await bench.code(tool, {"query": "SELECT * FROM things"}) == "connection_error"


@pytest.mark.parametrize(
    "query",
    [
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
    ],
)
async def test_what_is_more_than_reading_is_rejected(
    bench: Bench, folder: Path, query: str
) -> None:
    assert await bench.code(await _sqlite(bench), {"query": query}) == "query_rejected"


async def test_a_virtual_table_is_never_made(bench: Bench, folder: Path) -> None:
    tool = await _sqlite(bench, allowed_operations=["create", "insert"])
    query = "CREATE VIRTUAL TABLE x USING fts5(a)"
    assert await bench.code(tool, {"query": query}) == "query_rejected"


async def test_a_reader_makes_no_file(bench: Bench, folder: Path) -> None:
    tool = await _sqlite(bench, "missing.db")
    assert await bench.code(tool, {"query": "SELECT 1"}) == "connection_error"
    assert not (folder / "missing.db").exists()


async def test_a_writer_makes_and_fills_its_file(bench: Bench, folder: Path) -> None:
    (folder / "made.db").unlink(missing_ok=True)
    tool = await _sqlite(bench, "made.db", allowed_operations=["create", "insert", "select"])
    await bench.output(tool, {"query": "CREATE TABLE t (a)"})
    given = {"query": "INSERT INTO t VALUES (?), (?)", "params": [1, "zwei"]}
    assert (await bench.output(tool, given))["row_count"] == 2
    output = await bench.output(tool, {"query": "SELECT a FROM t ORDER BY rowid"})
    assert output["rows"] == [[1], ["zwei"]]


async def test_returning_of_sqlite_gives_rows_and_writes(bench: Bench, folder: Path) -> None:
    tool = await _sqlite(bench, allowed_operations=["insert", "select"], max_rows=1)
    query = "INSERT INTO things (name) VALUES ('x'), ('y') RETURNING name"
    output = await bench.output(tool, {"query": query})
    assert (output["rows"], output["truncated"]) == ([["x"]], True)
    count = await bench.output(tool, {"query": "SELECT count(*) FROM things"})
    assert count["rows"] == [[4]]


@pytest.mark.parametrize(
    ("query", "params", "code"),
    [
        ("SELECT * FROM nowhere", [], "runtime_error"),
        ("SELECT ?", [], "runtime_error"),
        ("SELECT 1", [1], "runtime_error"),
        ("SELECT ?", [{"a": 1}], "runtime_error"),
        ("SELECT ?", [2**70], "runtime_error"),
        ("SELECT replace(printf('%.*c', 900000, 'x'), 'x', 'xx')", [], "runtime_error"),
        ("SELECT printf('%.*c', 900000, 'x'), printf('%.*c', 900000, 'x')", [], "output_too_large"),
    ],
)
async def test_what_sqlite_cannot_do_is_told(
    bench: Bench, folder: Path, query: str, params: list[Any], code: str
) -> None:
    assert await bench.code(await _sqlite(bench), {"query": query, "params": params}) == code


async def test_a_file_that_is_no_database_is_told(bench: Bench, folder: Path) -> None:
    (folder / "text.db").write_text("no database at all" * 100, encoding="ascii")
    assert await bench.code(await _sqlite(bench, "text.db"), {"query": "SELECT 1"}) in {
        "runtime_error",
        "connection_error",
    }


_ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"


@pytest.mark.parametrize(
    "query",
    [
        f"{_ENDLESS} count(*) FROM n",
        f"{_ENDLESS} max(a.x) FROM n a, n b",
        f"{_ENDLESS} sum(instr(printf('%.*c', 20000, 'a'), printf('%.*c', 9999, 'a') || x)) FROM n",
    ],
)
async def test_an_endless_query_of_sqlite_ends_with_the_tools_time(
    bench: Bench, folder: Path, query: str
) -> None:
    data = await bench.run(await _sqlite(bench, timeout_ms=400), {"query": query})
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")


async def test_what_sqlite_sorts_fills_no_disk(bench: Bench, folder: Path) -> None:
    """Beside its file it has memory alone, and that ends."""
    query = f"{_ENDLESS} printf('%.*c', 500000, 'x') || x AS t FROM n LIMIT 3000"
    given = {"query": f"SELECT t FROM ({query}) ORDER BY t DESC"}
    assert await bench.code(await _sqlite(bench, timeout_ms=20_000), given) == "runtime_error"


async def test_rows_of_sqlite_beyond_the_limit_are_cut_off(bench: Bench, folder: Path) -> None:
    output = await bench.output(await _sqlite(bench, max_rows=2), {"query": f"{_ENDLESS} x FROM n"})
    assert (output["rows"], output["truncated"]) == ([[1], [2]], True)
