"""One statement on one SQLite file; started by `sqlite` with limits on, and with nothing else.

Takes what to do as JSON on standard input and tells what came of it on standard output. It imports
nothing but the standard library.
"""

import base64
import json
import math
import sqlite3
import sys
from pathlib import Path
from typing import Any

_VALUE_BYTES = 1024 * 1024
_PATTERN_BYTES = 1000
_PAGES = 65_536
_MOST_BYTES = 4 * 1024 * 1024
_ALWAYS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}
_NEVER = {
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_DETACH,
    sqlite3.SQLITE_PRAGMA,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_VTABLE,
}


class _TooMuch(Exception):
    pass


def main() -> None:
    asked = json.load(sys.stdin)
    json.dump(_answer(asked), sys.stdout)


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    mode = "ro" if asked["reads"] else "rwc"
    address = f"{Path(asked['path']).as_uri()}?mode={mode}"
    try:
        connection = sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)
    except sqlite3.Error:
        return _failed("connection_error", "the database cannot be opened")
    try:
        return _done(connection, asked)
    except _TooMuch:
        return _failed("output_too_large", "the rows are more than 1 MiB; ask for less")
    except MemoryError:
        return _failed("runtime_error", "the statement takes more memory than it may")
    except sqlite3.Error as error:
        refused = "not authorized" in str(error) or "prohibited" in str(error)
        if refused:
            return _failed("query_rejected", "the statement does what is never allowed")
        return _failed("runtime_error", str(error)[:300])
    except (TypeError, ValueError, OverflowError):
        return _failed("runtime_error", "the parameters do not fit")
    finally:
        connection.close()


def _failed(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _done(connection: sqlite3.Connection, asked: dict[str, Any]) -> dict[str, Any]:
    _confine(connection, reads=asked["reads"])
    cursor = connection.execute(asked["sql"], asked["params"])
    columns = [column[0] for column in cursor.description or []]
    if not columns:
        return {"touched": max(0, cursor.rowcount)}
    rows: list[list[Any]] = []
    room = _MOST_BYTES
    for row in cursor:
        if len(rows) <= asked["max_rows"]:
            room -= sum(len(cell) for cell in row if isinstance(cell, str | bytes))
            if room < 0:
                raise _TooMuch
            rows.append([_plain(cell) for cell in row])
        elif asked["only_reads"]:
            break
    return {"columns": columns, "rows": rows}


def _confine(connection: sqlite3.Connection, *, reads: bool) -> None:
    connection.execute(f"PRAGMA max_page_count = {_PAGES}")
    connection.execute("PRAGMA trusted_schema = off")
    # Memory is limited; what the library would write to a temporary folder is not.
    connection.execute("PRAGMA temp_store = memory")
    if reads:
        connection.execute("PRAGMA query_only = on")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _PATTERN_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)

    def judge(action: int, *_: object) -> int:
        refused = action in _NEVER or (reads and action not in _ALWAYS)
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    connection.set_authorizer(judge)


def _plain(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode()
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    return cell


if __name__ == "__main__":
    main()
