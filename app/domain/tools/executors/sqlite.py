"""Database tools on SQLite files, each statement in a process of its own.

The library cannot be stopped in the middle of a step, and sorts on disk what does not fit into
memory; a process can be ended, and its limits hold for both.
"""

from pathlib import Path
from typing import Any

import msgspec

from app.domain.tools.configs import DatabaseConfig
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed
from app.domain.tools.executors.rows import result
from app.domain.tools.executors.sql import Statement
from app.kit import child_process

_CHILD = Path(__file__).with_name("sqlite_child.py")
_FILE_MIB = 256
_MEMORY_MIB = 768
_MOST_FILES = 100


class _Answer(msgspec.Struct):
    columns: list[str] = []
    rows: list[list[Any]] = []
    touched: int | None = None
    code: str | None = None
    message: str = ""


async def run(
    task: Task[DatabaseConfig], around: Surroundings, statement: Statement, params: list[Any]
) -> dict[str, Any]:
    """In the tenant's own folder."""
    config = task.config
    folder = around.settings.data_dir / "sqlite" / task.tenant_id
    reads = list(config.allowed_operations) == ["select"]
    path = folder / config.database
    if path.is_symlink() or (reads and not path.is_file()):
        raise ToolFailed("connection_error", "there is no such database")
    if not reads:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists() and sum(1 for _ in folder.iterdir()) >= _MOST_FILES:
            raise ToolFailed("runtime_error", f"there are {_MOST_FILES} files already")
    asked = {
        "path": str(path.absolute()),
        "reads": reads,
        "only_reads": statement.only_reads,
        "sql": statement.sql,
        "params": params,
        "max_rows": config.max_rows,
    }
    try:
        told = await child_process.run(
            _CHILD,
            msgspec.json.encode(asked),
            cpu_seconds=int(task.seconds) + 1,
            memory_mib=_MEMORY_MIB,
            file_mib=_FILE_MIB,
        )
    except child_process.ProcessFailed as error:
        raise ToolFailed("runtime_error", "the statement took more than it may") from error
    answer = msgspec.json.decode(told, type=_Answer)
    if answer.code is not None:
        raise ToolFailed(answer.code, answer.message)
    return result(answer.columns, answer.rows, answer.touched, config.max_rows)
