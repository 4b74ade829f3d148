"""Runs user code in the sandbox, for the executors of functions and scripts."""

import asyncio
from typing import Any

import msgspec

from app.domain.agents.tools.errors import ToolFailed
from app.sandbox import packages
from app.sandbox.box import SandboxUnavailable
from app.sandbox.limits import MIB
from app.sandbox.program import Program, RunResult
from app.sandbox.watcher import NoRoom

from .protocol import ExecutorEnvironment, Task

_MAX_LOG_CHARS = 2000
_MACHINE_FULL = (
    "the worker's machine ran short of memory and ended its largest run, which was this one; use "
    "less memory or try again later"
)


async def run_program(
    environment: ExecutorEnvironment, program: Program, task: Task[Any], required: list[str]
) -> RunResult:
    """Runs the program with the task's input on standard input and the `required` packages.
    Raises ToolFailed when the program did not exit by itself.
    """
    home = environment.settings.sandbox_home
    # Reads the metadata of every installed package.
    missing = await asyncio.to_thread(packages.missing, home, required) if required else []
    if missing:
        raise ToolFailed("runtime_error", f"not installed on this worker: {', '.join(missing)}")
    seconds = task.timeout_seconds
    try:
        run = await environment.sandbox.run(program, msgspec.json.encode(task.input), seconds)
    except SandboxUnavailable as error:
        raise ToolFailed("sandbox_unavailable", str(error)) from error
    except NoRoom as error:
        raise ToolFailed("out_of_memory", f"{error}; try again later") from error
    match run.ending:
        case "timeout":
            raise ToolFailed("timeout", f"did not end within {seconds:g} s")
        case "output":
            raise ToolFailed("output_too_large", "the output is more than 1 MiB")
        case "memory":
            mib = environment.sandbox.limits.total_bytes // MIB
            raise ToolFailed("out_of_memory", f"used more than the {mib} MiB of memory that it has")
        case "machine_memory":
            raise ToolFailed("out_of_memory", _MACHINE_FULL)
        case "exited":
            return run


def append_log(message: str, run: RunResult) -> str:
    """Appends the end of the program's log, which has its error."""
    log = run.log.decode(errors="replace").strip()[-_MAX_LOG_CHARS:]
    return f"{message}: {log}" if log else message
