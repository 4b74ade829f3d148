import asyncio
import base64
import datetime as dt
import decimal
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import aiomysql
import asyncpg
import msgspec

from app.domain.tools.configs import DatabaseConfig, DatabaseInput
from app.domain.tools.executors import sql
from app.domain.tools.executors.protocol import (
    OUTPUT_BYTES,
    Login,
    Surroundings,
    Task,
    ToolFailed,
    of_the_way,
)
from app.domain.tools.executors.sql import Rejected, Statement
from app.kit import databases
from app.kit.egress import EgressError

_SQLITE_BYTES = 8 * 1024 * 1024
_SQLITE_PAGES = 65_536
_PAGE_BYTES = 4096
_LARGEST_INT = 2**53
_STEPS = 1000


async def run(task: Task[DatabaseConfig], around: Surroundings) -> dict[str, Any]:
    config = task.config
    try:
        given = msgspec.convert(task.input, DatabaseInput)
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", f"the input cannot be used: {error}") from error
    try:
        statement = await asyncio.to_thread(
            sql.judged, given.query, config.db_type, list(config.allowed_operations)
        )
    except Rejected as error:
        raise ToolFailed("query_rejected", str(error)) from error
    if config.db_type == "sqlite":
        return await _sqlite(task, around, statement, given.params)
    login = _login(config, task.auth.login)
    try:
        if config.db_type == "postgresql":
            return await _postgres(task, around, login, statement, given.params)
        return await _mysql(task, around, login, statement, given.params)
    except EgressError as error:
        raise of_the_way(error) from error


def _login(config: DatabaseConfig, given: Login | None) -> databases.Login:
    """Where to, and as whom. A credential that names its server is for no other."""
    given = given or Login("", "")
    host = config.host or given.host or ""
    port = config.port or given.port
    if given.host is not None:
        known = databases.PORTS.get(given.engine or config.db_type)
        same = host.lower() == given.host.lower() and (port or known) == (given.port or known)
        if not same or given.engine != config.db_type:
            raise ToolFailed("auth_failed", "the credential belongs to another server")
    if not host:
        raise ToolFailed("connection_error", "the tool names no host")
    mode = given.ssl_mode or "prefer"
    if config.ssl and mode in {"disable", "allow", "prefer"}:
        mode = "require"
    return databases.Login(
        engine=config.db_type,  # type: ignore[arg-type]
        host=host,
        port=port,
        database=config.database or given.database or "",
        username=given.username or "postgres",
        password=given.password,
        ssl_mode=mode,  # type: ignore[arg-type]
    )


# Postgres


async def _postgres(
    task: Task[DatabaseConfig],
    around: Surroundings,
    login: databases.Login,
    statement: Statement,
    params: list[Any],
) -> dict[str, Any]:
    # One transaction, read-only where nothing else is allowed, and ended by the server itself.
    milliseconds = str(max(1, round(task.seconds * 1000)))
    reads = list(task.config.allowed_operations) == ["select"]
    try:
        async with (
            databases.postgres(
                around.egress.guard,
                login,
                task.seconds,
                statement_timeout=milliseconds,
                idle_in_transaction_session_timeout=milliseconds,
                default_transaction_read_only="on" if reads else "off",
                application_name="parley",
            ) as connection,
            connection.transaction(readonly=reads),
        ):
            return await _in_postgres(connection, statement, params, task.config.max_rows)
    except asyncpg.QueryCanceledError as error:
        raise ToolFailed("timeout", "the server ended the statement: it took too long") from error
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise ToolFailed("auth_failed", "the server does not take this login") from error
    except asyncpg.PostgresError as error:
        raise ToolFailed("runtime_error", f"{type(error).__name__}: {error}"[:500]) from error
    except (asyncpg.InterfaceError, ValueError, TypeError, OverflowError) as error:
        raise ToolFailed("runtime_error", f"the parameters do not fit: {error}"[:500]) from error
    except OSError as error:
        raise ToolFailed("connection_error", f"no connection: {type(error).__name__}") from error


async def _in_postgres(
    connection: asyncpg.Connection, statement: Statement, params: list[Any], max_rows: int
) -> dict[str, Any]:
    prepared = await connection.prepare(statement.sql)
    wanted = prepared.get_parameters()
    if len(wanted) != len(params):
        raise ToolFailed(
            "runtime_error",
            f"the query has {len(wanted)} placeholders, and there are {len(params)}",
        )
    values = [_as_postgres(kind.name, value) for kind, value in zip(wanted, params, strict=True)]
    columns = [attribute.name for attribute in prepared.get_attributes()]
    if not columns:
        await prepared.fetch(*values)
        touched = prepared.get_statusmsg().rpartition(" ")[2]
        return _result([], [], int(touched) if touched.isdigit() else 0)
    if statement.only_reads:
        cursor = await prepared.cursor(*values)
        rows = await cursor.fetch(max_rows + 1)
        return _result(columns, rows, None, max_rows)
    return _result(columns, await prepared.fetch(*values), None, max_rows)


_FROM_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamptz": dt.datetime.fromisoformat,
    "uuid": uuid.UUID,
    "numeric": decimal.Decimal,
    "int2": int,
    "int4": int,
    "int8": int,
    "float4": float,
    "float8": float,
    "bytea": lambda text: base64.b64decode(text, validate=True),
}


def _as_postgres(kind: str, value: Any) -> Any:
    """JSON has few types; the server says which one it wants."""
    if kind in {"json", "jsonb"}:
        return msgspec.json.encode(value).decode()
    if kind == "numeric" and isinstance(value, int | float) and not isinstance(value, bool):
        return decimal.Decimal(str(value))
    if kind in {"text", "varchar", "bpchar"} and isinstance(value, int | float | bool):
        return str(value)
    if isinstance(value, str) and kind in _FROM_TEXT:
        try:
            return _FROM_TEXT[kind](value)
        except decimal.InvalidOperation as error:
            raise ValueError(f"{kind} expected") from error
    return value


# MySQL


async def _mysql(
    task: Task[DatabaseConfig],
    around: Surroundings,
    login: databases.Login,
    statement: Statement,
    params: list[Any],
) -> dict[str, Any]:
    reads = list(task.config.allowed_operations) == ["select"]
    try:
        async with (
            databases.mysql(around.egress.guard, login, task.seconds) as connection,
            connection.cursor(aiomysql.SSCursor) as cursor,
        ):
            await _limit_mysql(cursor, task.seconds)
            await cursor.execute("START TRANSACTION READ ONLY" if reads else "START TRANSACTION")
            await cursor.execute(statement.sql, tuple(params))
            if cursor.description is None:
                touched = cursor.rowcount
                await connection.commit()
                return _result([], [], touched)
            columns = [column[0] for column in cursor.description]
            rows = await cursor.fetchmany(task.config.max_rows + 1)
            if not statement.only_reads:
                await cursor.fetchall()
                await connection.commit()
            return _result(columns, rows, None, task.config.max_rows)
    except aiomysql.OperationalError as error:
        code = error.args[0] if error.args else 0
        if code in _MYSQL_REFUSED:
            raise ToolFailed("auth_failed", "the server does not take this login") from error
        if code in _MYSQL_TOO_LONG:
            raise ToolFailed("timeout", "the server ended the statement") from error
        raise ToolFailed("connection_error", f"no connection: error {code}") from error
    except aiomysql.Error as error:
        said = error.args[1] if len(error.args) > 1 else type(error).__name__
        raise ToolFailed("runtime_error", str(said)[:500]) from error
    except (TypeError, ValueError) as error:
        raise ToolFailed("runtime_error", "the parameters do not fit the placeholders") from error
    except OSError as error:
        raise ToolFailed("connection_error", f"no connection: {type(error).__name__}") from error


_MYSQL_REFUSED: Final = {1044, 1045, 1698}
_MYSQL_TOO_LONG: Final = {3024, 1969, 1317}


async def _limit_mysql(cursor: Any, seconds: float) -> None:
    """MySQL and MariaDB have different names for it."""
    try:
        await cursor.execute(f"SET SESSION max_execution_time = {max(1, round(seconds * 1000))}")
    except aiomysql.Error:
        await cursor.execute(f"SET SESSION max_statement_time = {max(0.001, seconds)}")


# SQLite


async def _sqlite(
    task: Task[DatabaseConfig], around: Surroundings, statement: Statement, params: list[Any]
) -> dict[str, Any]:
    """In the tenant's own folder, in a thread that is told to stop when the time is up."""
    folder = around.settings.data_dir / "sqlite" / task.tenant_id
    over = threading.Event()
    work = asyncio.create_task(
        asyncio.to_thread(_in_sqlite, folder, task.config, statement, params, over)
    )
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        over.set()
        await asyncio.wait([work], timeout=2)
        raise


_SQLITE_ALWAYS: Final = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}
_SQLITE_NEVER: Final = {
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_DETACH,
    sqlite3.SQLITE_PRAGMA,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_VTABLE,
}


def _in_sqlite(
    folder: Path,
    config: DatabaseConfig,
    statement: Statement,
    params: list[Any],
    over: threading.Event,
) -> dict[str, Any]:
    reads = list(config.allowed_operations) == ["select"]
    path = folder / config.database
    if path.is_symlink() or (reads and not path.is_file()):
        raise ToolFailed("connection_error", "there is no such database")
    if not reads:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'ro' if reads else 'rwc'}",
            uri=True,
            timeout=5,
            isolation_level=None,
        )
    except sqlite3.Error as error:
        raise ToolFailed("connection_error", "the database cannot be opened") from error
    try:
        _confine(connection, over, reads=reads)
        cursor = connection.execute(statement.sql, params)
        columns = [column[0] for column in cursor.description or []]
        rows = cursor.fetchmany(config.max_rows + 1) if columns else []
        touched = None if columns else max(0, cursor.rowcount)
        if columns and not statement.only_reads:
            cursor.fetchall()
        return _result(columns, rows, touched, config.max_rows)
    except sqlite3.ProgrammingError as error:
        raise ToolFailed("runtime_error", str(error)[:300]) from error
    except sqlite3.Error as error:
        if over.is_set():
            raise ToolFailed("timeout", "the statement took too long") from error
        if "not authorized" in str(error) or "prohibited" in str(error):
            raise ToolFailed(
                "query_rejected", "the statement does what is never allowed"
            ) from error
        raise ToolFailed("runtime_error", str(error)[:300]) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ToolFailed("runtime_error", "the parameters do not fit") from error
    finally:
        connection.close()


def _confine(connection: sqlite3.Connection, over: threading.Event, *, reads: bool) -> None:
    connection.execute(f"PRAGMA max_page_count = {_SQLITE_PAGES}")
    connection.execute("PRAGMA trusted_schema = off")
    if reads:
        connection.execute("PRAGMA query_only = on")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SQLITE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)
    connection.set_progress_handler(lambda: int(over.is_set()), _STEPS)

    def judge(action: int, *_: object) -> int:
        refused = action in _SQLITE_NEVER or (reads and action not in _SQLITE_ALWAYS)
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    connection.set_authorizer(judge)


# Results


def _result(
    columns: list[str], rows: Iterable[Any], touched: int | None, max_rows: int = 0
) -> dict[str, Any]:
    cells = [[_plain(value) for value in row] for row in rows]
    truncated = touched is None and len(cells) > max_rows
    if truncated:
        cells = cells[:max_rows]
    output = {
        "columns": columns,
        "rows": cells,
        "row_count": len(cells) if touched is None else touched,
        "truncated": truncated,
    }
    if len(msgspec.json.encode(output)) > OUTPUT_BYTES:
        raise ToolFailed("output_too_large", "the rows are more than 1 MiB; ask for less")
    return output


def _plain(value: Any) -> Any:
    """As JSON can hold it, numbers as numbers where nothing is lost."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return value if abs(value) <= _LARGEST_INT else str(value)
        case decimal.Decimal():
            return _number(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return str(value)
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | asyncpg.Record():
            return [_plain(item) for item in value]
    return str(value)


def _number(value: decimal.Decimal) -> Any:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) <= _LARGEST_INT:
        return int(value)
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)
