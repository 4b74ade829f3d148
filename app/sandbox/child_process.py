"""Runs a Python script in a child process with limits, for libraries that read foreign bytes, and
for calls that cannot be stopped.

The process has no rights but those in its limits. It ends by its limits, when its script ends, or
when the caller is cancelled. `child_start.py` says what a script looks like.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path

import msgspec

from app.jobs import background
from app.kit import logs
from db.connection_use import check_wait

log = logs.get("child_process")

_START = Path(__file__).with_name("child_start.py")
_MIB = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_CLOSE_SECONDS = 1
_has_logged_missing = False


class ProcessFailed(Exception):
    """The process returned no output: a limit or an error ended it."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ScriptRefused(Exception):
    """The script refused its input; the message is the script's."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """`memory_mib` is address space. The script may read the folder `readable`, its working
    directory, or change files in the folder `writable`, each of `file_mib` at most. Started by
    root, it runs as nobody, except with `writable` or a folder that others may not read.
    """

    seconds: float
    cpu_seconds: int
    memory_mib: int = 1024
    file_mib: int = 0
    output_bytes: int = 8 * _MIB
    open_files: int = 64
    niceness: int = 0
    readable: Path | None = None
    writable: Path | None = None


class Response(msgspec.Struct, frozen=True):
    """The first line of a script's output, and a view of the rest."""

    head: str
    body: memoryview


async def request(script: Path, content: bytes, *arguments: str, limits: Limits) -> Response:
    """Like `run`, for a script whose first line is a head, or `!` and why it refuses its input.
    Raises ScriptRefused for the latter.
    """
    output = await run(script, content, *arguments, limits=limits)
    end = output.find(b"\n")
    if end < 0:
        raise ProcessFailed("wrote no line")
    head = output[:end].decode()
    if head.startswith("!"):
        raise ScriptRefused(head[1:])
    return Response(head, memoryview(output)[end + 1 :])


async def run(script: Path, content: bytes, *arguments: str, limits: Limits) -> bytes:
    """Returns what the script writes to standard output; `content` is its standard input.

    The script has no environment variables. Raises ProcessFailed when the script fails or exceeds
    a limit.
    """
    check_wait("a child process")
    try:
        async with asyncio.timeout(limits.seconds):
            return await _run(script, content, arguments, limits)
    except TimeoutError:
        raise ProcessFailed(f"took more than {limits.seconds:g} s", -signal.SIGKILL) from None


async def _run(script: Path, content: bytes, arguments: tuple[str, ...], limits: Limits) -> bytes:
    folders = (str(folder or "") for folder in (limits.readable, limits.writable))
    numbers = (
        os.getpid(),
        limits.cpu_seconds,
        limits.memory_mib * _MIB,
        limits.file_mib * _MIB,
        limits.open_files,
        limits.niceness,
    )
    started: list[Process] = []

    async def start() -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(_START), str(script)),
            *folders,
            *map(str, numbers),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
        started.append(process)

    try:
        # The event loop would kill a process whose start is cancelled, but not wait for its end.
        await background.run_to_end(start())
        process = started[0]
        output = await _communicate(process, content, limits.output_bytes)
        if await process.wait() != 0:
            raise ProcessFailed(f"ended with {process.returncode}", process.returncode)
        return output
    finally:
        for process in started:
            await _end(process)


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    await _close(process)


async def _close(process: Process) -> None:
    """Reads the rest of the output of an ended process: asyncio closes a pipe at its end only."""
    with suppress(TimeoutError):
        # A process that the script started may keep the pipe open.
        async with asyncio.timeout(_CLOSE_SECONDS):
            while process.stdout is not None and await process.stdout.read(_CHUNK_BYTES):
                pass


async def _communicate(process: Process, content: bytes, limit: int) -> bytes:
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise ProcessFailed("has no pipes")
    # At the same time as reading: a script may write before it has read all of its input.
    writing = asyncio.create_task(_write(stdin, content))
    try:
        _log_missing((await stdout.readline()).decode().strip())
        output = bytearray()
        while chunk := await stdout.read(_CHUNK_BYTES):
            output += chunk
            if len(output) > limit:
                raise ProcessFailed(f"wrote more than {limit} bytes")
        return bytes(output)
    finally:
        writing.cancel()
        stdin.close()


def _log_missing(limits: str) -> None:
    global _has_logged_missing  # noqa: PLW0603  # once per process
    if limits and not _has_logged_missing:
        _has_logged_missing = True
        log.warning("child processes are isolated less", missing=limits)


async def _write(stdin: asyncio.StreamWriter, content: bytes) -> None:
    with suppress(ConnectionError):
        stdin.write(content)
        await stdin.drain()
    stdin.close()
