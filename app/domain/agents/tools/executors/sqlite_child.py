"""A child process that runs one statement on one SQLite file. `sqlite.py` starts it with limits.

It reads the request as JSON from standard input and writes the response as JSON to standard output.
It imports only the standard library.
"""

import base64
import json
import math
import sqlite3
import sys
from pathlib import Path
from typing import Any

_MAX_VALUE_BYTES = 1024 * 1024
_MAX_PATTERN_BYTES = 1000
_MAX_PAGES = 65_536
_MAX_BYTES = 4 * 1024 * 1024
_READ_ACTIONS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}
_FORBIDDEN_ACTIONS = {
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_DETACH,
    sqlite3.SQLITE_PRAGMA,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_VTABLE,
}


class _OutputTooLarge(Exception):
    pass


def load() -> None:
    """Seeds SQLite's random numbers while the process can still open the device."""
    sqlite3.connect(":memory:").execute("VALUES (random())").fetchone()


def main() -> None:
    request = json.load(sys.stdin)
    json.dump(_respond(request), sys.stdout)


def _respond(request: dict[str, Any]) -> dict[str, Any]:
    mode = "ro" if request["read_only"] else "rwc"
    address = f"{Path(request['path']).as_uri()}?mode={mode}"
    try:
        connection = sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)
    except sqlite3.Error:
        return _failure("connection_error", "the database cannot be opened")
    try:
        return _run_statement(connection, request)
    except _OutputTooLarge:
        return _failure("output_too_large", "the rows are more than 1 MiB; ask for less")
    except MemoryError:
        return _failure("runtime_error", "the statement takes more memory than it may")
    except sqlite3.Error as error:
        if "not authorized" in str(error) or "prohibited" in str(error):
            return _failure("query_rejected", "the statement does something forbidden")
        return _failure("runtime_error", str(error)[:300])
    except (TypeError, ValueError, OverflowError):
        return _failure("runtime_error", "the parameters do not fit the placeholders")
    finally:
        connection.close()


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _run_statement(connection: sqlite3.Connection, request: dict[str, Any]) -> dict[str, Any]:
    _restrict(connection, read_only=request["read_only"])
    cursor = connection.execute(request["sql"], request["params"])
    columns = [column[0] for column in cursor.description or []]
    if not columns:
        return {"affected_rows": max(0, cursor.rowcount)}
    rows: list[list[Any]] = []
    size = 0
    for row in cursor:
        if len(rows) <= request["max_rows"]:
            size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
            if size > _MAX_BYTES:
                raise _OutputTooLarge
            rows.append([_to_json(cell) for cell in row])
        elif request["statement_reads"]:
            break
    return {"columns": columns, "rows": rows}


def _restrict(connection: sqlite3.Connection, *, read_only: bool) -> None:
    connection.execute(f"PRAGMA max_page_count = {_MAX_PAGES}")
    connection.execute("PRAGMA trusted_schema = off")
    # The process has a limit for memory, but none for files in the temporary folder.
    connection.execute("PRAGMA temp_store = memory")
    if read_only:
        connection.execute("PRAGMA query_only = on")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_PATTERN_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)

    def authorize(action: int, *_: object) -> int:
        is_write = action not in _READ_ACTIONS
        is_denied = action in _FORBIDDEN_ACTIONS or (read_only and is_write)
        return sqlite3.SQLITE_DENY if is_denied else sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)


def _to_json(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode()
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    return cell
