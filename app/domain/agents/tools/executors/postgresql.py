"""Database tools on Postgres."""

import base64
import datetime as dt
import decimal
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import msgspec

from app.domain.agents.tools.configs import DatabaseConfig
from app.domain.agents.tools.errors import ToolFailed
from app.net import databases
from app.net.failures import describe_failure
from app.net.postgres_relay import SessionTooLarge

from .protocol import ExecutorEnvironment, Task
from .rows import build_result, rows_too_large
from .sql import Statement

_CONNECTION_ERRORS: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)


async def run(
    task: Task[DatabaseConfig],
    environment: ExecutorEnvironment,
    login: databases.Login,
    statement: Statement,
    params: list[Any],
) -> dict[str, Any]:
    try:
        async with _begin_transaction(task, environment, login) as connection:
            return await _run_statement(connection, statement, params, task.config.max_rows)
    except SessionTooLarge as error:
        raise rows_too_large() from error
    except asyncpg.QueryCanceledError as error:
        raise ToolFailed("timeout", "the server ended the statement: it took too long") from error
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise ToolFailed("auth_failed", "the server does not accept this login") from error
    except _CONNECTION_ERRORS as error:
        raise ToolFailed("connection_error", f"no connection: {type(error).__name__}") from error
    except asyncpg.PostgresError as error:
        raise ToolFailed("runtime_error", f"{type(error).__name__}: {error}") from error
    except (asyncpg.InterfaceError, ValueError, TypeError, OverflowError) as error:
        raise ToolFailed("runtime_error", f"the parameters do not fit: {error}") from error
    except OSError as error:
        failure = describe_failure(error, login.host, login.port)
        raise ToolFailed("connection_error", failure) from error


@asynccontextmanager
async def _begin_transaction(
    task: Task[DatabaseConfig], environment: ExecutorEnvironment, login: databases.Login
) -> AsyncIterator[asyncpg.Connection]:
    """Opens a connection with one transaction, which the server ends after the task's timeout. It
    is read-only when `select` is the only allowed operation.
    """
    milliseconds = str(max(1, round(task.timeout_seconds * 1000)))
    read_only = list(task.config.allowed_operations) == ["select"]
    async with (
        databases.postgres(
            environment.egress.guard,
            login,
            task.timeout_seconds,
            statement_timeout=milliseconds,
            idle_in_transaction_session_timeout=milliseconds,
            default_transaction_read_only="on" if read_only else "off",
            application_name="parley",
            # The statement is written for this setting: a backslash is no escape character.
            standard_conforming_strings="on",
        ) as connection,
        connection.transaction(readonly=read_only),
    ):
        yield connection


async def _run_statement(
    connection: asyncpg.Connection, statement: Statement, params: list[Any], max_rows: int
) -> dict[str, Any]:
    prepared = await connection.prepare(statement.sql)
    types = prepared.get_parameters()
    if len(types) != len(params):
        message = f"the query has {len(types)} placeholders, and `params` has {len(params)} values"
        raise ToolFailed("runtime_error", message)
    values = [_convert_param(type_.name, value) for type_, value in zip(types, params, strict=True)]
    columns = [attribute.name for attribute in prepared.get_attributes()]
    if not columns:
        await prepared.fetch(*values)
        count = prepared.get_statusmsg().rpartition(" ")[2]
        return build_result([], [], int(count) if count.isdigit() else 0)
    if statement.is_read_only:
        cursor = await prepared.cursor(*values)
        rows = await cursor.fetch(max_rows + 1)
        return build_result(columns, rows, None, max_rows)
    return build_result(columns, await prepared.fetch(*values), None, max_rows)


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
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


def _convert_param(type_name: str, value: Any) -> Any:
    """Converts a JSON value to the Python type that asyncpg expects for a type of Postgres."""
    if value is None:
        return None
    if type_name.endswith("[]") and isinstance(value, list):
        item_type = type_name[:-2]
        return [
            _convert_param(type_name if isinstance(item, list) else item_type, item)
            for item in value
        ]
    if type_name in {"json", "jsonb"}:
        return msgspec.json.encode(value).decode()
    if type_name == "numeric" and isinstance(value, int | float) and not isinstance(value, bool):
        return decimal.Decimal(str(value))
    is_integer = type_name in {"int2", "int4", "int8"}
    if is_integer and isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{type_name} expected")  # the driver would drop the fraction
    if type_name in {"text", "varchar", "bpchar"} and isinstance(value, int | float | bool):
        return str(value)
    if isinstance(value, str) and type_name in _PARSERS:
        try:
            return _PARSERS[type_name](value)
        except decimal.InvalidOperation as error:
            raise ValueError(f"{type_name} expected") from error
    return value
