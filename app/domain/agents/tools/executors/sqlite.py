"""Database tools on SQLite files, each statement in a process of its own.

SQLite cannot be interrupted within a step, and sorts large results on disk. A process can be
killed, and has limits for memory and files. It sees the tenant's folder alone. It keeps the user of
its parent, because the files and SQLite's journals beside them are that user's.
"""

from pathlib import Path
from typing import Any

import msgspec

from app.domain.agents.tools.configs import DatabaseConfig
from app.domain.agents.tools.errors import ToolFailed
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed

from .protocol import ExecutorEnvironment, Task
from .rows import build_result
from .sql import Statement

_CHILD = Path(__file__).with_name("sqlite_child.py")
_MAX_FILE_MIB = 256
_MAX_MEMORY_MIB = 768
_MAX_FILES = 100


class _Response(msgspec.Struct):
    columns: list[str] = []
    rows: list[list[Any]] = []
    affected_rows: int | None = None
    code: str | None = None
    message: str = ""


async def run(
    task: Task[DatabaseConfig],
    environment: ExecutorEnvironment,
    statement: Statement,
    params: list[Any],
) -> dict[str, Any]:
    """Runs the statement on a file in the tenant's own folder."""
    config = task.config
    folder = environment.settings.data_dir.absolute() / "sqlite" / task.tenant_id
    read_only = list(config.allowed_operations) == ["select"]
    path = folder / config.database
    if path.is_symlink() or (read_only and not path.is_file()):
        raise ToolFailed("connection_error", "this database does not exist")
    if not read_only:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists() and sum(1 for _ in folder.iterdir()) >= _MAX_FILES:
            raise ToolFailed("runtime_error", f"there are already {_MAX_FILES} files")
    request = {
        "path": str(path),
        "read_only": read_only,
        "statement_reads": statement.is_read_only,
        "sql": statement.sql,
        "params": params,
        "max_rows": config.max_rows,
    }
    response = await _run_script(request, folder, int(task.timeout_seconds) + 1)
    if response.code is not None:
        raise ToolFailed(response.code, response.message)
    return build_result(response.columns, response.rows, response.affected_rows, config.max_rows)


async def _run_script(request: dict[str, Any], folder: Path, seconds: int) -> _Response:
    """The caller's own timeout comes first."""
    limits = Limits(
        seconds=seconds,
        cpu_seconds=seconds,
        memory_mib=_MAX_MEMORY_MIB,
        file_mib=_MAX_FILE_MIB,
        writable=folder,
    )
    try:
        content = await child_process.run(_CHILD, msgspec.json.encode(request), limits=limits)
    except ProcessFailed as error:
        message = "the statement used more time, memory or disk than it may"
        raise ToolFailed("runtime_error", message) from error
    return msgspec.json.decode(content, type=_Response)
