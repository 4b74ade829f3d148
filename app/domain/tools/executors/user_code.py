"""Runs user code in the sandbox, for the executors of functions and scripts."""

import asyncio
from typing import Any

import msgspec

from app.domain.tools.errors import ToolFailed
from app.domain.tools.executors.protocol import ExecutorEnvironment, Task
from app.kit.sandbox import packages
from app.kit.sandbox.box import SandboxUnavailable
from app.kit.sandbox.program import Program, RunResult

_MAX_LOG_CHARS = 2000


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
    match run.ending:
        case "timeout":
            raise ToolFailed("timeout", f"did not end within {seconds:g} s")
        case "output":
            raise ToolFailed("output_too_large", "the output is more than 1 MiB")
        case "memory":
            raise ToolFailed("runtime_error", "used more memory than it may")
        case "exited":
            return run


def append_log(message: str, run: RunResult) -> str:
    """Appends the end of the program's log, which has its error."""
    log = run.log.decode(errors="replace").strip()[-_MAX_LOG_CHARS:]
    return f"{message}: {log}" if log else message
