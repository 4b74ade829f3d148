"""Database tools on MySQL and MariaDB."""

from typing import Any, Final

import aiomysql

from app.domain.tools.configs import DatabaseConfig
from app.domain.tools.executors.protocol import OUTPUT_BYTES, Surroundings, Task, ToolFailed
from app.domain.tools.executors.rows import result
from app.domain.tools.executors.sql import Statement
from app.kit import databases

_MOST_BYTES = 4 * OUTPUT_BYTES


async def run(
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
                return result([], [], touched)
            columns = [column[0] for column in cursor.description]
            rows = await _fetched(cursor, task.config.max_rows + 1)
            if not statement.only_reads:
                await connection.commit()
            return result(columns, rows, None, task.config.max_rows)
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


async def _fetched(cursor: Any, most: int) -> list[Any]:
    """Row by row: how large they are is the server's choice."""
    rows: list[Any] = []
    room = _MOST_BYTES
    async for row in cursor:
        if len(rows) < most:
            room -= sum(len(cell) for cell in row if isinstance(cell, str | bytes))
            if room < 0:
                raise ToolFailed("output_too_large", "the rows are more than 1 MiB; ask for less")
            rows.append(row)
        else:
            break
    return rows
