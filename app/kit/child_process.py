"""Runs a Python script in a child process with limits, for library calls that cannot be stopped.

The process ends by its limits, when its script ends, or when the caller is cancelled.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from db.connection_use import check_wait

_BOOTSTRAP = """
import os, resource, runpy, sys
script = sys.argv[1]
cpu, memory, file, open_files, niceness = map(int, sys.argv[2:7])
sys.argv[:] = [script, *sys.argv[7:]]
os.nice(niceness)
for limit, value in (
    (resource.RLIMIT_CPU, cpu),
    # macOS refuses any limit of address space.
    *([(resource.RLIMIT_AS, memory)] if sys.platform != "darwin" else []),
    (resource.RLIMIT_FSIZE, file),
    *([(resource.RLIMIT_NOFILE, open_files)] if open_files else []),
    (resource.RLIMIT_CORE, 0),
):
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
runpy.run_path(script, run_name="__main__")
"""
_MIB = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_CLOSE_SECONDS = 1


class ProcessFailed(Exception):
    """The process returned no output: a limit or an error ended it."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ScriptRefused(Exception):
    """The script refused its input; the message is the script's."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """`memory_mib` is address space. `file_mib` is the largest file that the script may write.
    `open_files` 0 keeps the inherited limit.
    """

    seconds: float
    cpu_seconds: int
    memory_mib: int = 1024
    file_mib: int = 0
    output_bytes: int = 8 * _MIB
    open_files: int = 0
    niceness: int = 0


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
    numbers = (
        limits.cpu_seconds,
        limits.memory_mib * _MIB,
        limits.file_mib * _MIB,
        limits.open_files,
        limits.niceness,
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", _BOOTSTRAP, str(script)),
        *map(str, numbers),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        output = await _communicate(process, content, limits.output_bytes)
        if await process.wait() != 0:
            raise ProcessFailed(f"ended with {process.returncode}", process.returncode)
        return output
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await _close(process)


async def _close(process: asyncio.subprocess.Process) -> None:
    """Reads the rest of the output of an ended process: asyncio closes a pipe at its end only."""
    with suppress(TimeoutError):
        # A process that the script started may keep the pipe open.
        async with asyncio.timeout(_CLOSE_SECONDS):
            while process.stdout is not None and await process.stdout.read(_CHUNK_BYTES):
                pass


async def _communicate(process: asyncio.subprocess.Process, content: bytes, limit: int) -> bytes:
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise ProcessFailed("has no pipes")
    # At the same time as reading: a script may write before it has read all of its input.
    writing = asyncio.create_task(_write(stdin, content))
    try:
        output = bytearray()
        while chunk := await stdout.read(_CHUNK_BYTES):
            output += chunk
            if len(output) > limit:
                raise ProcessFailed(f"wrote more than {limit} bytes")
        return bytes(output)
    finally:
        writing.cancel()
        stdin.close()


async def _write(stdin: asyncio.StreamWriter, content: bytes) -> None:
    with suppress(ConnectionError):
        stdin.write(content)
        await stdin.drain()
    stdin.close()
