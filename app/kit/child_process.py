"""Runs a Python script in a child process with limits, for library calls that cannot be stopped.

The process ends by the kernel's limits, when its script ends, or when the caller is cancelled.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

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


class ProcessFailed(Exception):
    """The process returned no output: a limit or an error ended it."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


async def run(
    script: Path,
    content: bytes,
    *arguments: str,
    cpu_seconds: int,
    memory_mib: int = 1024,
    file_mib: int = 1,
    output_bytes: int = 8 * _MIB,
    open_files: int = 0,
    niceness: int = 0,
) -> bytes:
    """Returns what the script writes to standard output; `content` is its standard input.

    The script has no environment variables. `open_files` 0 keeps the inherited limit. Raises
    ProcessFailed when the script fails or writes more than `output_bytes`.
    """
    limits = (cpu_seconds, memory_mib * _MIB, file_mib * _MIB, open_files, niceness)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", _BOOTSTRAP, str(script)),
        *map(str, limits),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        output = await _communicate(process, content, output_bytes)
        if await process.wait() != 0:
            raise ProcessFailed(f"ended with {process.returncode}", process.returncode)
        return output
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _communicate(process: asyncio.subprocess.Process, content: bytes, limit: int) -> bytes:
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise ProcessFailed("has no pipes")
    with suppress(ConnectionError):
        stdin.write(content)
        await stdin.drain()
    stdin.close()
    output = bytearray()
    while chunk := await stdout.read(64 * 1024):
        output += chunk
        if len(output) > limit:
            raise ProcessFailed(f"wrote more than {limit} bytes")
    return bytes(output)
