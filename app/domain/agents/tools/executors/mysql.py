"""Database tools on MySQL and MariaDB."""

from typing import Any, Final

import aiomysql

from app.domain.agents.tools.configs import DatabaseConfig
from app.domain.agents.tools.errors import ToolFailed
from app.net import databases
from app.net.failures import describe_failure

from .protocol import OUTPUT_BYTES, ExecutorEnvironment, Task
from .rows import build_result, rows_too_large
from .sql import Statement

_MAX_BYTES = 4 * OUTPUT_BYTES
_AUTH_ERRORS: Final = {1044, 1045, 1698}
_TIMEOUT_ERRORS: Final = {3024, 1969, 1317}


async def run(
    task: Task[DatabaseConfig],
    environment: ExecutorEnvironment,
    login: databases.Login,
    statement: Statement,
    params: list[Any],
) -> dict[str, Any]:
    read_only = list(task.config.allowed_operations) == ["select"]
    try:
        async with (
            databases.mysql(environment.egress.guard, login, task.timeout_seconds) as connection,
            connection.cursor(aiomysql.SSCursor) as cursor,
        ):
            await _set_statement_timeout(cursor, task.timeout_seconds)
            start = "START TRANSACTION READ ONLY" if read_only else "START TRANSACTION"
            await cursor.execute(start)
            await cursor.execute(statement.sql, tuple(params))
            if cursor.description is None:
                affected_rows = cursor.rowcount
                await connection.commit()
                return build_result([], [], affected_rows)
            columns = [column[0] for column in cursor.description]
            rows = await _fetch_rows(cursor, task.config.max_rows + 1)
            if not statement.is_read_only:
                await connection.commit()
            return build_result(columns, rows, None, task.config.max_rows)
    except aiomysql.OperationalError as error:
        raise _describe(error, login) from error
    except aiomysql.Error as error:
        message = error.args[1] if len(error.args) > 1 else type(error).__name__
        raise ToolFailed("runtime_error", str(message)) from error
    except (TypeError, ValueError) as error:
        raise ToolFailed("runtime_error", "the parameters do not fit the placeholders") from error
    except OSError as error:
        failure = describe_failure(error, login.host, login.port)
        raise ToolFailed("connection_error", failure) from error


def _describe(error: aiomysql.OperationalError, login: databases.Login) -> ToolFailed:
    code = error.args[0] if error.args else 0
    if code in _AUTH_ERRORS:
        return ToolFailed("auth_failed", "the server does not accept this login")
    if code in _TIMEOUT_ERRORS:
        return ToolFailed("timeout", "the server ended the statement")
    if isinstance(error.__cause__, OSError):
        failure = describe_failure(error.__cause__, login.host, login.port)
        return ToolFailed("connection_error", failure)
    return ToolFailed("connection_error", f"no connection: error {code}")


async def _set_statement_timeout(cursor: Any, seconds: float) -> None:
    """Tries the setting of MySQL first, then that of MariaDB."""
    try:
        await cursor.execute(f"SET SESSION max_execution_time = {max(1, round(seconds * 1000))}")
    except aiomysql.Error:
        await cursor.execute(f"SET SESSION max_statement_time = {max(0.001, seconds)}")


async def _fetch_rows(cursor: Any, limit: int) -> list[Any]:
    """Fetches row by row, because a single row can have any size."""
    rows: list[Any] = []
    size = 0
    async for row in cursor:
        if len(rows) >= limit:
            break
        size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if size > _MAX_BYTES:
            raise rows_too_large()
        rows.append(row)
    return rows
