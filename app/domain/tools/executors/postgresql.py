"""Database tools on Postgres."""

import base64
import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from typing import Any, Final

import asyncpg
import msgspec

from app.domain.tools.configs import DatabaseConfig
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed
from app.domain.tools.executors.rows import result
from app.domain.tools.executors.sql import Statement
from app.kit import databases
from app.kit.postgres_relay import SessionTooLarge


async def run(
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
                # What the text was written for: a backslash in a string is a backslash.
                standard_conforming_strings="on",
            ) as connection,
            connection.transaction(readonly=reads),
        ):
            return await _in_postgres(connection, statement, params, task.config.max_rows)
    except SessionTooLarge as error:
        raise ToolFailed(
            "output_too_large", "the rows are more than 1 MiB; ask for less"
        ) from error
    except asyncpg.QueryCanceledError as error:
        raise ToolFailed("timeout", "the server ended the statement: it took too long") from error
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise ToolFailed("auth_failed", "the server does not take this login") from error
    except _POSTGRES_AWAY as error:
        raise ToolFailed("connection_error", f"no connection: {type(error).__name__}") from error
    except asyncpg.PostgresError as error:
        raise ToolFailed("runtime_error", f"{type(error).__name__}: {error}"[:500]) from error
    except (asyncpg.InterfaceError, ValueError, TypeError, OverflowError) as error:
        raise ToolFailed("runtime_error", f"the parameters do not fit: {error}"[:500]) from error
    except OSError as error:
        raise ToolFailed("connection_error", f"no connection: {type(error).__name__}") from error


_POSTGRES_AWAY: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)


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
        return result([], [], int(touched) if touched.isdigit() else 0)
    if statement.only_reads:
        cursor = await prepared.cursor(*values)
        rows = await cursor.fetch(max_rows + 1)
        return result(columns, rows, None, max_rows)
    return result(columns, await prepared.fetch(*values), None, max_rows)


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
    if value is None:
        return None
    if kind.endswith("[]") and isinstance(value, list):
        return [_as_postgres(kind if isinstance(item, list) else kind[:-2], item) for item in value]
    if kind in {"json", "jsonb"}:
        return msgspec.json.encode(value).decode()
    if kind == "numeric" and isinstance(value, int | float) and not isinstance(value, bool):
        return decimal.Decimal(str(value))
    if kind in {"int2", "int4", "int8"} and isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{kind} expected")  # the driver would cut it off
    if kind in {"text", "varchar", "bpchar"} and isinstance(value, int | float | bool):
        return str(value)
    if isinstance(value, str) and kind in _FROM_TEXT:
        try:
            return _FROM_TEXT[kind](value)
        except decimal.InvalidOperation as error:
            raise ValueError(f"{kind} expected") from error
    return value
