"""Supervises a run: writes its input, reads its output, and kills it when it exceeds a limit."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from app.sandbox.limits import Limits
from app.sandbox.program import Ending, RunResult
from app.sandbox.watcher import WatchedRun


def kill_processes_of(folder: str) -> None:
    """Kills the processes whose command names the folder of a run."""
    name = os.fsencode(folder)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with suppress(OSError):
                if name in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


def kill(process: asyncio.subprocess.Process) -> None:
    """Kills the process group of a run; with bubblewrap, all processes of its namespace.

    `process.kill` would reap the process and lose the exit code that `wait` returns.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _wait_exited(pid: int) -> None:
    """Waits for the process alone; `Process.wait` also waits until all pipes are closed."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, exited = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def wait_closed(process: asyncio.subprocess.Process) -> int:
    """Discards the remaining output of a killed process and returns its exit code."""
    for pipe in (process.stdout, process.stderr):
        while pipe is not None and await pipe.read(65536):
            pass
    return await process.wait()


async def end(process: asyncio.subprocess.Process, folder: str) -> int:
    """Kills the processes of a run, and returns the exit code. While bubblewrap sets a run up, its
    processes are in no common group and outlive each other; their commands name the folder.
    """
    if process.returncode is None:
        kill(process)
        await asyncio.to_thread(kill_processes_of, folder)
    return await wait_closed(process)


class _LimitExceeded(Exception):
    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


class Supervisor:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        limits: Limits,
        watched: WatchedRun,
        folder: str,
    ) -> None:
        self._process = process
        self._folder = folder
        self._limits = limits
        self._watched = watched
        self._output = bytearray()
        self._log = bytearray()

    async def wait(self, content: bytes, timeout_seconds: float) -> RunResult:
        """Writes `content` to standard input and returns the result once the run has ended."""
        ending: Ending = "exited"
        try:
            async with asyncio.timeout(timeout_seconds), asyncio.TaskGroup() as tasks:
                memory_task = tasks.create_task(self._wait_for_watcher())
                tasks.create_task(self._write_input(content))
                readers = [
                    tasks.create_task(self._read_output()),
                    tasks.create_task(self._read_log()),
                ]
                await _wait_exited(self._process.pid)
                # Processes that the run left behind may hold the pipes open.
                kill(self._process)
                await asyncio.wait(readers)
                memory_task.cancel()
        except TimeoutError:
            ending = "timeout"
        except ExceptionGroup as group:
            exceeded = group.subgroup(_LimitExceeded)
            if exceeded is None:
                raise
            ending = next(error.ending for error in _flatten(exceeded))
        if ending == "exited":
            kill(self._process)
            code = await wait_closed(self._process)
        else:
            code = await end(self._process, self._folder)
        if ending == "exited" and code in {128 + signal.SIGXCPU, -signal.SIGXCPU}:
            ending = "timeout"
        return RunResult(ending, code, bytes(self._output), bytes(self._log))

    async def _write_input(self, content: bytes) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        with suppress(ConnectionError):
            # uvloop raises RuntimeError for a pipe that the program has closed by now.
            if not pipe.is_closing():
                pipe.write(content)
            await pipe.drain()
        with suppress(ConnectionError):
            pipe.close()
            await pipe.wait_closed()

    async def _read_output(self) -> None:
        pipe = self._process.stdout
        while pipe is not None and (chunk := await pipe.read(65536)):
            self._output += chunk
            if len(self._output) > self._limits.output_bytes:
                raise _LimitExceeded("output")

    async def _read_log(self) -> None:
        """Stores the beginning of the log and discards the rest."""
        pipe = self._process.stderr
        while pipe is not None and (chunk := await pipe.read(65536)):
            room = self._limits.log_bytes - len(self._log)
            self._log += chunk[: max(0, room)]

    async def _wait_for_watcher(self) -> None:
        raise _LimitExceeded(await self._watched.ending)


def _flatten(group: BaseExceptionGroup[_LimitExceeded]) -> list[_LimitExceeded]:
    errors: list[_LimitExceeded] = []
    for error in group.exceptions:
        errors += _flatten(error) if isinstance(error, BaseExceptionGroup) else [error]
    return errors
